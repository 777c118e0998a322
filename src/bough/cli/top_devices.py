"""Devices on the screen of `bough top`: a tree, each in the colour of the job that holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bough.cli import devices as listed
from bough.cli import words
from bough.cli.asking import Look
from bough.cli.grid import Cell, Column, Grid, bar, bare, cells, clipped, draw
from bough.cli.palette import DEVICES, HUES
from bough.records import DeviceRecord, JobRecord

#: How a device is drawn in a strip, by its state; one that is held, in the hue of its job.
SIGNS: Final = {"free": "·", "held": "■", "taken": "▒", "unhealthy": "✗", "drained": "–"}
METER: Final = 5
HOT, TOO_HOT = 80.0, 90.0

TREE: Final = (
    Column("Device"),
    Column("State", rank=4),
    Column("Whose", cut=12),
    Column("Busy", if_any=True),
    Column("Memory", if_any=True, rank=1),
    Column("°C", right=True, if_any=True, rank=2),
    Column("W", right=True, if_any=True, rank=3),
    Column("", cut=16, if_any=True),
)


def measured(devices: Sequence[DeviceRecord]) -> tuple[float | None, float | None]:
    """How busy they are on average, and what they draw together; None: nobody knows."""
    busy = [d.utilisation for d in devices if d.utilisation is not None]
    watts = [d.watts for d in devices if d.watts is not None]
    return sum(busy) / len(busy) if busy else None, sum(watts) if watts else None


def rooted(
    devices: Sequence[DeviceRecord], jobs: Sequence[JobRecord], look: Look, room: int | None
) -> list[str]:
    """Devices as a tree; where there is no room for all, a strip for each node."""
    nodes = list(listed.nodes(devices))
    if not nodes:
        return [look.paint("There are no devices. Look again: bough devices check", "waits")]
    names = {job.id: job.name for job in jobs}
    found = [(node, [device_row(alike, names) for alike in listed.groups(node)]) for node in nodes]
    if room is None or sum(1 + len(rows) for _, rows in found) < room:
        return full_tree(found, look)
    strips = [strip(node, look) for node in nodes]
    return strips if len(strips) <= room else shortened(strips, nodes, look, room)


def full_tree(
    found: Sequence[tuple[list[DeviceRecord], list[list[Cell]]]], look: Look
) -> list[str]:
    """Each node, and below it its devices."""
    titles, *drawn = draw(Grid(TREE, [row for _, rows in found for row in rows]), look.width,
                          look.colour)  # fmt: skip
    lines, left = [titles], iter(drawn)
    for node, rows in found:
        lines.append(listed.head(node, look))
        lines += [next(left) for _ in rows]
    return lines


def shortened(
    strips: list[str], nodes: Sequence[list[DeviceRecord]], look: Look, room: int
) -> list[str]:
    rest = [device for node in nodes[room - 1 :] for device in node]
    free = sum(device.state == "free" for device in rest)
    text = f"and {len(strips) - room + 1} more nodes, {len(rest)} devices, {free} free; d shows all"
    return [*strips[: room - 1], look.paint(clipped(text, look.width), "quiet")]


def strip(node: list[DeviceRecord], look: Look) -> str:
    """A node on one line, a sign for each of its devices."""
    first = node[0]
    name = clipped(bare("/".join([*first.path, first.node])), look.width // 3)
    room = max(look.width - cells(name) - 32, 8)
    signs = "".join(look.paint(*sign(device)) for device in node[:room])
    more = "…" if len(node) > room else ""
    free = sum(device.state == "free" for device in node)
    busy, watts = measured(node)
    facts = [f"{free} free"]
    facts += [] if busy is None else [f"{busy:.0%} busy"]
    facts += [] if watts is None else [f"{watts:,.0f} W"]
    return f"{look.paint(name, 'name')}  {signs}{more}  {look.paint(', '.join(facts), 'quiet')}"


def sign(device: DeviceRecord) -> tuple[str, str]:
    """One device as one letter, and what its colour means."""
    if device.state == "held":
        return SIGNS["held"], hue(device.job)
    return SIGNS[device.state], DEVICES[device.state]


def hue(id: str) -> str:
    """The colour of a job, the same on its devices and in the list of jobs."""
    first, _, member = id.partition(".")
    number = int(first) + int(member or 0) if (first + member).isdecimal() else 0
    return f"hue-{number % len(HUES)}"


def device_row(alike: list[DeviceRecord], names: Mapping[str, str]) -> list[Cell]:
    device = alike[0]
    busy, heat = device.utilisation, device.temperature
    whose = f"{SIGNS['held']} {device.job} {bare(names.get(device.job, device.user))}".rstrip()
    fever = "" if heat is None or heat < HOT else "waits" if heat < TOO_HOT else "wrong"
    return [
        Cell(f"  {words.runs(each.index for each in alike)}"),
        Cell(device.state, DEVICES[device.state]),
        Cell(whose, hue(device.job)) if device.job else Cell(""),
        Cell("" if busy is None else f"{bar(busy, METER)} {busy:4.0%}", "works"),
        Cell(memory(device)),
        Cell("" if heat is None else f"{heat:.0f}", fever),
        Cell("" if device.watts is None else f"{device.watts:.0f}"),
        Cell(bare(device.note), DEVICES[device.state]),
    ]


def memory(device: DeviceRecord) -> str:
    """A bar, and the numbers."""
    if not device.memory_bytes or device.memory_used_bytes is None:
        return listed.memory(device)
    share = device.memory_used_bytes / device.memory_bytes
    return f"{bar(share, METER)} {listed.memory(device)}"

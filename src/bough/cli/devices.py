"""`bough devices`: what there is, node by node, whose it is, how it fares; and taking it away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Final

import click

from bough.cli import asking, references
from bough.cli.grid import Cell, Column, Grid, bare, cells, clipped, draw, wrapped
from bough.cli.palette import DEVICES
from bough.cli.words import runs
from bough.core.units import format_size
from bough.errors import InputError, NotFoundError, nearest
from bough.records import DeviceRecord

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.client import Client

COLUMNS: Final = (
    Column("Device"),
    Column("State"),
    Column("Whose", cut=12),
    Column("Busy", right=True, if_any=True),
    Column("Memory", right=True, if_any=True),
    Column("°C", right=True, if_any=True, rank=2),
    Column("W", right=True, if_any=True, rank=3),
    Column("", cut=16, if_any=True),
)
#: As the states begin.
NOTE_INDENT: Final = 8


@click.group("devices", invoke_without_command=True)
@asking.watch_option
@asking.json_option
@click.pass_context
def command(context: click.Context, watch: float | None, as_json: bool) -> None:
    """Show the devices, node by node: whose they are and how they fare."""
    if context.invoked_subcommand is not None:
        return
    with asking.connect() as client:
        asking.present(client.devices, render, as_json, watch=watch)


@command.command("check")
@asking.json_option
def check(as_json: bool) -> None:
    """Look at all devices anew, now."""
    with asking.connect() as client:
        asking.present(client.check_devices, render, as_json)


@command.command("drain")
@click.argument("node", required=False, type=references.NODE)
@asking.json_option
def drain(node: str | None, as_json: bool) -> None:
    """Let NODE take nothing new; what runs there goes on.

    Where there is one node only, its name may be left out.
    """
    with asking.connect() as client:
        name = the_node(client.devices(), node)
        said(client, client.drain(name, True), as_json, f"{name} takes nothing new.", "undrain")


@command.command("undrain")
@click.argument("node", required=False, type=references.NODE)
@asking.json_option
def undrain(node: str | None, as_json: bool) -> None:
    """Let NODE take jobs again."""
    with asking.connect() as client:
        name = the_node(client.devices(), node)
        said(client, client.drain(name, False), as_json, f"{name} takes jobs again.", "drain")


@command.command("quarantine")
@click.argument("device", metavar="[NODE:]DEVICE", type=references.DEVICE)
@asking.json_option
def quarantine(device: str, as_json: bool) -> None:
    """Use this device no more; a job on it leaves it.

    \b
    bough devices quarantine 3
    bough devices quarantine node-2:3
    """
    with asking.connect() as client:
        name, number = the_device(client.devices(), device)
        done = client.quarantine(name, number, True)
        said(client, done, as_json, f"Device {name}:{number} is not used any more.", "release")


@command.command("release")
@click.argument("device", metavar="[NODE:]DEVICE", type=references.DEVICE)
@asking.json_option
def release(device: str, as_json: bool) -> None:
    """Use a device of the quarantine again."""
    with asking.connect() as client:
        name, number = the_device(client.devices(), device)
        done = client.quarantine(name, number, False)
        said(client, done, as_json, f"Device {name}:{number} is used again.", "quarantine")


def said(
    client: Client, found: Sequence[DeviceRecord], as_json: bool, done: str, undo: str
) -> None:
    """What was done, and how to undo it."""
    if as_json:
        asking.print_json(found)
        return
    back = f"bough devices {undo} {click.get_current_context().params.get('node') or ''}".strip()
    device = click.get_current_context().params.get("device")
    back = f"bough devices {undo} {device}" if device else back
    asking.print_lines([f"{done} Undo: {asking.look().paint(back, 'type')}"])


def the_node(devices: Sequence[DeviceRecord], name: str | None) -> str:
    """The one that is meant."""
    names = list(dict.fromkeys(device.node for device in devices))
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise InputError("which node?", field="NODE", hint=f"one of: {', '.join(names)}")
    if name not in names:
        raise NotFoundError(f"no node is called {name!r} ({nearest(name, names)})")
    return name


def the_device(devices: Sequence[DeviceRecord], text: str) -> tuple[str, int]:
    """A device by its number, and its node where there are several."""
    node, _, number = text.rpartition(":")
    if not number.isdecimal():
        raise InputError(f"{text!r} is no device", field="DEVICE", hint="like 3, or node-2:3")
    name = the_node(devices, node or None)
    there = [device.index for device in devices if device.node == name]
    if int(number) not in there:
        raise NotFoundError(f"{name} has no device {number}; it has {runs(there)}")
    return name, int(number)


# ------------------------------------------------------------------------------------- showing


def render(devices: Sequence[DeviceRecord], look: Look) -> list[str]:
    """Domains and nodes as a tree, and each node's devices as a table below it."""
    if not devices:
        text = "There are no devices. Look again: " + look.paint("bough devices check", "type")
        return [text] if look.people else []
    found = [(head(node, look), [row(alike) for alike in groups(node)]) for node in nodes(devices)]
    rows = [row for _, below in found for row in below]
    titles, *drawn = with_notes(rows, look)
    lines, left = [*titles], iter(drawn)
    for title, below in found:
        lines += [title, *chain.from_iterable(islice(left, len(below)))]
    return lines


def with_notes(rows: list[list[Cell]], look: Look) -> list[list[str]]:
    """The titles, then the lines of each row: what ails a device is told in full."""
    told = [row[-1] for row in rows]
    plain = draw(Grid(COLUMNS, rows), look.width)[1:]
    if all(line.endswith(note.text) for line, note in zip(plain, told, strict=True)):
        return [[line] for line in draw(Grid(COLUMNS, rows), look.width, look.colour)]
    bare_rows = [[*row[:-1], Cell("")] for row in rows]
    titles, *drawn = draw(Grid(COLUMNS, bare_rows), look.width, look.colour)
    found = [[titles]]
    for line, note in zip(drawn, told, strict=True):
        below = wrapped(note.text, look.width, NOTE_INDENT) if note.text else []
        found.append([line, *(" " * NOTE_INDENT + look.paint(x, note.meaning) for x in below)])
    return found


def head(node: list[DeviceRecord], look: Look) -> str:
    """The line above a node's devices."""
    first = node[0]
    name = bare("/".join([*first.path, first.node]))
    kind = bare(first.kind + (f" ({first.model})" if first.model else ""))
    free = sum(device.state == "free" for device in node)
    facts = [f"{len(node)} × {kind}", f"{free} free"]
    known = [device.watts for device in node if device.watts is not None]
    facts += [f"{sum(known):,.0f} W"] if known else []
    text = clipped(f"  {', '.join(facts)}", look.width - cells(name))
    return look.paint(name, "name") + look.paint(text, "quiet")


def nodes(devices: Sequence[DeviceRecord]) -> Iterator[list[DeviceRecord]]:
    """Those of each node, in the order of the tree."""
    place = {device.node: (device.path, device.node) for device in devices}
    first = {node: number for number, node in enumerate(place)}
    ordered = sorted(devices, key=lambda d: (d.path, first[d.node], d.index))
    for _, found in groupby(ordered, key=lambda device: device.node):
        yield list(found)


def groups(node: list[DeviceRecord]) -> Iterator[list[DeviceRecord]]:
    """Neighbours of which there is the same to say."""

    def say(device: DeviceRecord) -> tuple[object, ...]:
        meters = (device.memory_used_bytes, device.temperature, device.watts, device.utilisation)
        alone = device.index if any(meter is not None for meter in meters) else -1
        return device.state, device.job, device.user, device.note, alone

    for _, found in groupby(node, key=say):
        yield list(found)


def row(alike: list[DeviceRecord]) -> list[Cell]:
    device = alike[0]
    job = f"job {device.job}" + (f" of {device.user}" if device.user else "") if device.job else ""
    busy = device.utilisation
    return [
        Cell(f"  {runs(each.index for each in alike)}"),
        Cell(device.state, DEVICES[device.state]),
        Cell(bare(job)),
        Cell("" if busy is None else f"{busy:.0%}"),
        Cell(memory(device)),
        Cell("" if device.temperature is None else f"{device.temperature:.0f}"),
        Cell("" if device.watts is None else f"{device.watts:.0f}"),
        Cell(bare(device.note), DEVICES[device.state]),
    ]


def memory(device: DeviceRecord) -> str:
    """ "34/80GiB"."""
    if device.memory_bytes is None:
        return ""
    whole = format_size(device.memory_bytes)
    if device.memory_used_bytes is None:
        return whole
    used = format_size(device.memory_used_bytes)
    unit = whole.lstrip("0123456789.")
    return f"{used.removesuffix(unit)}/{whole}"

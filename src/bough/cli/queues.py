"""`bough queue`: the tenancy tree, what each queue holds and may count on; and how to change it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from bough.cli import asking, references, words
from bough.cli.grid import Cell, Column, Grid, bar, bare, draw
from bough.cli.options import Duration, Share
from bough.core.model import INFINITY, Queue
from bough.core.units import format_duration
from bough.errors import InputError, NotFoundError, nearest
from bough.records import QueueRecord

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.client import Client

BAR_WIDTH: Final = 10
COLUMNS: Final = (
    Column("Queue", cut=12),
    Column("", rank=2),
    Column("Uses", right=True),
    Column("Entitled", right=True),
    Column("Guarantee", right=True, rank=1),
    Column("Limit", right=True, rank=1),
    Column("Weight", right=True, rank=5),
    Column("Run", right=True),
    Column("Wait", right=True),
    Column("Past dev-h", right=True, rank=6),
    Column("Budget left", right=True, if_any=True, rank=3),
    Column("", if_any=True),
)


@click.group("queue")
def command() -> None:
    """List, show, make and change queues."""


@command.command("ls")
@asking.watch_option
@asking.json_option
def ls(watch: float | None, as_json: bool) -> None:
    """List the queues as the tree they are."""
    with asking.connect() as client:
        asking.present(client.queues, render, as_json, watch=watch)


@command.command("show", cls=asking.Watchable)
@click.argument("name", type=references.QUEUE)
@asking.watch_option
@asking.json_option
def show(name: str, watch: float | None, as_json: bool) -> None:
    """Show all of one queue."""
    with asking.connect() as client:
        asking.present(lambda: find(client, name), render_one, as_json, watch=watch)


@command.command("set")
@click.argument("name", type=references.QUEUE)
@click.option("--guarantee", type=click.IntRange(0), metavar="N", help="Devices it gets back.")
@click.option("--limit", metavar="N|none", help="Devices it never exceeds.")
@click.option("--weight", type=Share(0.0), metavar="X", help="Share of what is left over; 1.")
@click.option("--parent", metavar="QUEUE", type=references.QUEUE, help="Stands below it; '' none.")
@click.option("--borrow/--no-borrow", default=None, help="May use what others leave.")
@click.option("--dominant/--no-dominant", default=None, help="Counts by what it uses most.")
@click.option("--pause/--resume", "paused", default=None, help="Starts nothing, or again.")
@click.option("--budget", metavar="HOURS|none", help="Device-hours it may still use.")
@click.option("--half-life", type=Duration(), metavar="TIME", help="Past use counts half then; 0.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND=N", help="Limit of a kind of device.")
@asking.json_option
def set_(name: str, as_json: bool, **given: Any) -> None:
    """Make queue NAME, or change what is given and leave the rest.

    \b
    bough queue set vision --guarantee 4 --limit 8
    bough queue set interns --parent vision --no-borrow --budget 100
    """
    change = changes(given)
    with asking.connect() as client:
        before = next((q.queue for q in client.queues() if q.queue.name == name), None)
        queue = changed(before or Queue(name=name), change)
        record = client.set_queue(queue)
    if as_json:
        asking.print_json(record)
        return
    look = asking.look()
    asking.print_lines(told(before, record.queue, look))


# ------------------------------------------------------------------------------------ changing


def changes(given: dict[str, Any]) -> dict[str, Any]:
    """What was given, as fields of a queue."""
    fields = ("guarantee", "weight", "parent", "borrow", "dominant", "paused")
    found = {name: given[name] for name in fields if given[name] is not None}
    if given["half_life"] is not None:
        found["half_life_seconds"] = given["half_life"]
    if given["limit"] is not None:
        found["limit"] = (
            None if given["limit"] == "none" else number("--limit", given["limit"], int)
        )
    if given["budget"] is not None:
        hours = given["budget"]
        found["budget_device_hours"] = (
            INFINITY if hours == "none" else number("--budget", hours, float)
        )
    limits = {}
    for text in given["kinds"]:
        kind, _, most = text.partition("=")
        if not kind or not most:
            raise InputError(f"{text!r} is no limit", field="--kind", hint="write a100=4")
        limits[kind] = None if most == "none" else number("--kind", most, int)
    return found | ({"kind_limits": limits} if limits else {})


def number(option: str, text: str, kind: type[int] | type[float]) -> int | float:
    try:
        found = kind(text)
    except ValueError:
        found = -1
    if not 0 <= found < INFINITY:
        raise InputError(f"{text!r} is no number", field=option, hint="like 8, or none")
    return found


def changed(queue: Queue, change: dict[str, Any]) -> Queue:
    """Limits of kinds are changed one by one."""
    if "kind_limits" in change:
        limits = queue.kind_limits | change["kind_limits"]
        change = change | {"kind_limits": {k: n for k, n in limits.items() if n is not None}}
    return msgspec.structs.replace(queue, **change)


def told(before: Queue | None, after: Queue, look: Look) -> list[str]:
    """What was done, and how to have it as it was."""
    if before is None:
        use = look.paint(f"bough run -q {after.name} -- …", "type")
        return [f"Made queue {after.name}. Use it with {use}"]
    undo = [
        option for field in before.__struct_fields__ for option in option_of(before, after, field)
    ]
    if not undo:
        return [f"Queue {after.name} is like that already."]
    back = look.paint(f"bough queue set {after.name} {' '.join(undo)}", "type")
    return [f"Changed queue {after.name}. As it was: {back}"]


def option_of(before: Queue, after: Queue, field: str) -> Iterator[str]:
    """The option that brings a field back."""
    old, new = getattr(before, field), getattr(after, field)
    if old == new:
        return
    if field == "kind_limits":
        for kind in {**old, **new}:
            if old.get(kind) != new.get(kind):
                yield f"--kind {kind}={old.get(kind, 'none')}"
        return
    flags = {
        "borrow": ("--no-borrow", "--borrow"),
        "dominant": ("--no-dominant", "--dominant"),
        "paused": ("--resume", "--pause"),
    }
    if field in flags:
        yield flags[field][bool(old)]
    elif field == "half_life_seconds":
        yield f"--half-life {format_duration(old)}"
    elif field == "budget_device_hours":
        yield f"--budget {plain(old)}"
    else:
        yield f"--{field} {plain(old)}"


def plain(value: Any) -> str:
    if value is None or value == INFINITY:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value) or "''"


# ------------------------------------------------------------------------------------- showing


def find(client: Client, name: str) -> QueueRecord:
    found = {each.queue.name: each for each in client.queues()}
    if name not in found:
        raise NotFoundError(f"no queue is called {name!r} ({nearest(name, found)})")
    return found[name]


def ordered(queues: Sequence[QueueRecord]) -> Iterator[tuple[int, QueueRecord]]:
    """Each below its parent, with its depth."""
    names = {each.queue.name for each in queues}
    below: dict[str, list[QueueRecord]] = {}
    for each in queues:
        parent = each.queue.parent if each.queue.parent in names else ""
        below.setdefault(parent, []).append(each)
    left = [(0, each) for each in reversed(below.get("", []))]
    while left:
        depth, each = left.pop()
        yield depth, each
        left += [(depth + 1, child) for child in reversed(below.get(each.queue.name, []))]


def render(queues: Sequence[QueueRecord], look: Look) -> list[str]:
    rows = [row(depth, each) for depth, each in ordered(queues)]
    lines = draw(Grid(COLUMNS, rows), look.width, look.colour)
    if look.people and len(queues) == 1:
        more = look.paint("bough queue set NAME --guarantee 2", "type")
        lines += ["", f"There is one queue for all. Another: {more}"]
    return lines


def row(depth: int, each: QueueRecord) -> list[Cell]:
    queue = each.queue
    borrowed = each.used > each.entitled
    left = each.budget_left_device_hours
    spent = left is not None and left <= 0
    return [
        Cell("  " * depth + bare(queue.name), "name"),
        Cell(filled(each), "waits" if borrowed else "works"),
        Cell(str(each.used)),
        Cell(str(each.entitled)),
        Cell(str(queue.guarantee) if queue.guarantee else "–"),
        Cell("–" if queue.limit is None else str(queue.limit)),
        Cell(f"{queue.weight:g}"),
        Cell(str(each.running) if each.running else "–"),
        Cell(str(each.waiting) if each.waiting else "–", "waits" if each.waiting else ""),
        Cell(words.hours(each.history_device_hours * 3600)),
        Cell("" if left is None else f"{left:,.1f}h", "wrong" if spent else ""),
        Cell("paused" if queue.paused else "", "waits"),
    ]


def filled(each: QueueRecord, width: int = BAR_WIDTH) -> str:
    """What it uses of what it may count on; full, too, where it borrows beyond that."""
    return bar(each.used / each.entitled if each.entitled else float(each.used > 0), width)


def render_one(each: QueueRecord, look: Look) -> list[str]:
    queue = each.queue
    lines = [look.paint(f"Queue {bare(queue.name)}", "name") + ("  paused" if queue.paused else "")]
    kinds = ", ".join(f"{kind} {most}" for kind, most in queue.kind_limits.items())
    facts = {
        "below": bare(queue.parent) or "the root",
        "uses": f"{each.used} devices; {each.entitled} it may count on  {filled(each)}",
        "jobs": f"{each.running} running, {each.waiting} waiting",
        "guarantee": f"{queue.guarantee} devices it gets back on demand",
        "limit": ("none" if queue.limit is None else f"{queue.limit} devices")
        + (f"; {kinds}" if kinds else ""),
        "weight": f"{queue.weight:g} among its siblings"
        + (", by the resource its jobs use most" if queue.dominant else ""),
        "borrows": "what others leave" if queue.borrow else "nothing",
        "past use": words.hours(each.history_device_hours * 3600) + " device-hours"
        + (f", half after {format_duration(queue.half_life_seconds)}" if queue.half_life_seconds
           else ", which does not count"),
        "budget": "none set" if each.budget_left_device_hours is None
        else f"{each.budget_left_device_hours:,.1f} device-hours left",
    }  # fmt: skip
    return lines + [look.paint(label.ljust(11), "quiet") + text for label, text in facts.items()]

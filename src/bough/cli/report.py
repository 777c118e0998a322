"""`bough report usage`: device-hours, waits and failures of some time, also as CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from bough.cli import asking, clock, words
from bough.cli.clock import Moment
from bough.cli.grid import Cell, Column, Grid, bar, bare, draw
from bough.core.moments import format_time
from bough.errors import InputError
from bough.localtime import LOCAL
from bough.records import UsageRow

if TYPE_CHECKING:
    from bough.cli.asking import Look

BAR_WIDTH: Final = 12
DEFAULT_DAYS: Final = 30
CSV: Final = ("who", "jobs", "device_hours", "waited_hours", "failed", "energy_kwh")


@click.group("report")
def command() -> None:
    """What was used, by whom."""


@command.command("usage")
@click.option("--since", type=Moment(), metavar="TIME", help="30d (ago), today, 2026-11-01; 30d.")
@click.option("--until", type=Moment(), metavar="TIME", help="Else until now.")
@click.option(
    "--by",
    type=click.Choice(["user", "queue", "job"]),
    default="user",
    show_default=True,
    help="One row for each of these.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@asking.json_option
def usage(since: float | None, until: float | None, by: str, as_csv: bool, as_json: bool) -> None:
    """Device-hours, time spent waiting and failures of some time.

    A job counts with the part of it that lies in that time.

    \b
    bough report usage --since 2026-11-01 --until 2026-12-01 --by queue --csv
    """
    if as_json and as_csv:
        raise InputError("--json and --csv cannot both be printed")
    now = clock.now()
    begin = now - DEFAULT_DAYS * words.DAY_SECONDS if since is None else since
    end = now if until is None else until
    if begin >= end:
        raise InputError("ends before it begins", field="--until")
    with asking.connect() as client:
        rows = client.usage(since=begin, until=until, by=by)
    if as_json:
        asking.print_json(rows)
    elif as_csv:
        print_csv(rows)
    else:
        asking.print_lines(partial(render, by=by, window=(begin, end))(rows, asking.look()))


def print_csv(rows: Sequence[UsageRow]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(CSV)
    for row in rows:
        cells = (getattr(row, name) for name in CSV)
        writer.writerow(["" if cell is None else cell for cell in cells])


def render(
    rows: Sequence[UsageRow], look: Look, *, by: str, window: tuple[float, float]
) -> list[str]:
    """The most first, with its part of all as a bar."""
    since, until = (format_time(at, look.now, LOCAL) for at in window)
    until = "now" if window[1] >= look.now else until
    head = [look.paint(f"{since} to {until}", "quiet")] if look.people else []
    if not rows:
        return [*head, "Nothing was used in that time."] if look.people else []
    ordered = sorted(rows, key=lambda row: (-row.device_hours, row.who))
    most = max(row.device_hours for row in rows)
    columns = (
        Column(by.capitalize(), cut=12),
        Column("Device-hours", right=True),
        Column("", rank=2),
        Column("Share", right=True, rank=1),
        Column("Jobs", right=True),
        Column("Failed", right=True),
        Column("Waited", right=True),
        Column("kWh", right=True, if_any=True, rank=3),
    )
    whole = sum(row.device_hours for row in rows)
    cells = [line(row, whole, most) for row in ordered]
    if len(rows) > 1:
        cells.append([Cell(c.text, "name") for c in line(total(rows), whole, 0)])
    return head + draw(Grid(columns, cells), look.width, look.colour)


def line(row: UsageRow, whole: float, most: float) -> list[Cell]:
    return [
        Cell(bare(row.who), "name"),
        Cell(words.hours(row.device_hours * 3600)),
        Cell(bar(row.device_hours / most, BAR_WIDTH, " ") if most else "", "works"),
        Cell(f"{row.device_hours / whole:.0%}" if whole else "–"),
        Cell(f"{row.jobs:,}"),
        Cell(f"{row.failed:,}" if row.failed else "–", "wrong" if row.failed else ""),
        Cell(words.span(row.waited_hours * 3600)),
        Cell("" if row.energy_kwh is None else f"{row.energy_kwh:,.3g}"),
    ]


def total(rows: Sequence[UsageRow]) -> UsageRow:
    energy = [row.energy_kwh for row in rows if row.energy_kwh is not None]
    return UsageRow(
        who="all",
        jobs=sum(row.jobs for row in rows),
        device_hours=sum(row.device_hours for row in rows),
        waited_hours=sum(row.waited_hours for row in rows),
        failed=sum(row.failed for row in rows),
        energy_kwh=sum(energy) if energy else None,
    )

"""How numbers and tables look in a terminal."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bough.core.units import format_duration

Row = dict[str, Any]

DAY_SECONDS = 86_400
#: Between two columns.
GAP = 3
#: Width when stdout is no terminal: files and pipes have room.
FILE_WIDTH = 160


def duration(seconds: float | None) -> str:
    """Two units at most: 45s, 3h12m, 301d."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if abs(seconds) < 0.0005:
        return f"{seconds * 1e6:.0f}µs" if seconds else "0s"
    return format_duration(seconds, 1 if abs(seconds) >= 100 * DAY_SECONDS else 2)


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}%"


def count(number: float | None) -> str:
    return "–" if number is None else f"{number:,.0f}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def times(factor: float | None) -> str:
    return "–" if factor is None else f"×{factor:.2f}"


def short(number: float | None) -> str:
    if number is None:
        return "–"
    return count(number) if abs(number) >= 100 else f"{number:.3g}"


class Column(NamedTuple):
    """One metric as a column; docs/metrics.md says what it means."""

    key: str
    title: str
    write: Callable[[Any], str]
    #: Which is better, for marking the best: min, max, or neither.
    best: Callable[[list[float]], float] | None = None
    #: Left out when it is 0 everywhere.
    if_any: bool = False
    #: Columns of higher rank are dropped first when the terminal is narrow.
    rank: int = 0


COLUMNS = (
    Column("completed", "done", count),
    Column("rejected", "rejected", count, if_any=True),
    Column("failed", "failed", count, if_any=True, rank=2),
    Column("unfinished", "unfinished", count, if_any=True),
    Column("mean_jct_seconds", "mean JCT", duration, min),
    Column("mean_jct_over_bound", "× bound", times, min, rank=1),
    Column("p50_jct_seconds", "p50", duration, min, rank=3),
    Column("p99_jct_seconds", "p99", duration, min, rank=1),
    Column("makespan_seconds", "makespan", duration, min, rank=2),
    Column("deadline_ratio_submitted", "deadlines", percent, max, rank=1),
    Column("utilisation", "used", percent, max),
    Column("unfair_ratio", "unfair", percent, min, rank=4),
    Column("preemptions", "preempted", count, if_any=True, rank=5),
    Column("resizes", "resized", count, if_any=True, rank=5),
    Column("migrations", "moved", count, if_any=True, rank=6),
    Column("lost_device_hours", "lost dev-h", short, min, if_any=True, rank=6),
    Column("energy_kwh", "kWh", short, min, rank=1),
    Column("carbon_kg", "kg CO2", short, min, rank=1),
    Column("cost", "cost", short, min, rank=1),
    Column("most_of_a_budget", "of budget", percent, rank=1),
    Column("decision_p99_seconds", "decision p99", duration, rank=7),
)


def show(rows: Sequence[Row], columns: Sequence[Column], leading: Sequence[str]) -> None:
    """Print rows with their leading words, the best of each column in bold."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else FILE_WIDTH
    shown = fitting(rows, [c for c in columns if worth_showing(c, rows)], leading, width)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in leading:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for column in shown:
        table.add_column(column.title, justify="right", no_wrap=True)
    for row in rows:
        cells = [marked(column, row, rows) for column in shown]
        table.add_row(*(plain(row[name]) for name in leading), *cells)
    Console(width=width, highlight=False).print(table)


def worth_showing(column: Column, rows: Sequence[Row]) -> bool:
    values = [row.get(column.key) for row in rows]
    return any(values) if column.if_any else any(value is not None for value in values)


def fitting(
    rows: Sequence[Row], columns: list[Column], leading: Sequence[str], width: int
) -> list[Column]:
    """As many columns as there is room for; the least important go first."""

    def needed(column: Column) -> int:
        return GAP + max(len(column.title), *(len(column.write(row[column.key])) for row in rows))

    room = width - sum(
        GAP + max(len(name), *(len(plain(row[name])) for row in rows)) for name in leading
    )
    left = list(columns)
    for column in sorted(columns, key=lambda c: c.rank, reverse=True):
        if sum(map(needed, left)) <= room or column.rank == 0:
            break
        left.remove(column)
    return left


def marked(column: Column, row: Row, rows: Sequence[Row]) -> str:
    """The cell, bold where it is the best and others are not."""
    text = column.write(row[column.key])
    values = [r[column.key] for r in rows if r[column.key] is not None]
    if column.best is None or row[column.key] is None:
        return text
    best = column.write(column.best(values))
    worse = any(column.write(value) != best for value in values)
    return f"[bold green]{text}[/]" if text == best and worse else text


def plain(value: Any) -> str:
    """A leading word, with what rich would take for markup left as it is."""
    text = "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return text.replace("[", r"\[")

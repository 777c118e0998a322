"""Tables for a terminal: they fit its width, and the least important column gives way first."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from bough.cli.palette import painted

#: Between two columns.
GAP: Final = 2
#: Width when stdout is no terminal: files and pipes have room.
FILE_WIDTH: Final = 200


class Cell(NamedTuple):
    """Some text and what its colour means."""

    text: str
    meaning: str = ""


class Column(NamedTuple):
    """One column of a table."""

    title: str
    right: bool = False
    #: Columns of higher rank are left out first where there is no room; 0: it always stays.
    rank: int = 0
    #: It may be cut to this width where there is no room; 0: never.
    cut: int = 0
    #: It is left out when all its cells are empty.
    if_any: bool = False


class Grid(NamedTuple):
    """A table, not yet drawn."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


def width_now() -> int:
    """Columns of the terminal that is written to."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else FILE_WIDTH


def draw(grid: Grid, width: int, colour: bool = False) -> list[str]:
    """The table's lines, its titles first."""
    kept = [
        number
        for number, column in enumerate(grid.columns)
        if not column.if_any or any(row[number].text for row in grid.rows)
    ]
    natural = {n: max(map(cells, _texts(grid, n)), default=0) for n in kept}
    widths = fitted(grid.columns, natural, width)
    titles = [Cell(column.title, "name") for column in grid.columns]
    return [_line(row, grid.columns, widths, colour) for row in [titles, *grid.rows]]


def fitted(columns: Sequence[Column], natural: dict[int, int], width: int) -> dict[int, int]:
    """Which columns are shown, and how wide each is."""
    shown = dict(natural)
    least = {n: min(w, columns[n].cut) if columns[n].cut else w for n, w in natural.items()}

    def needed() -> int:
        return sum(least[n] for n in shown) + GAP * (len(shown) - 1)

    for number in sorted(natural, key=lambda n: columns[n].rank, reverse=True):
        if needed() <= width or columns[number].rank == 0:
            break
        del shown[number]
    over = sum(shown.values()) + GAP * (len(shown) - 1) - width
    # Letter by letter, from whatever has most to give.
    while over > 0:
        number = max(shown, key=lambda n: shown[n] - least[n])
        if shown[number] == least[number]:
            break
        shown[number] -= 1
        over -= 1
    return shown


def _texts(grid: Grid, number: int) -> Iterable[str]:
    yield grid.columns[number].title
    for row in grid.rows:
        yield row[number].text


def _line(
    row: Sequence[Cell], columns: Sequence[Column], widths: dict[int, int], colour: bool
) -> str:
    parts, last = [], max(widths)
    for number, width in widths.items():
        text, meaning = row[number]
        text = clipped(text, width)
        space = " " * (width - cells(text))
        shown = painted(text, meaning, colour) if text else ""
        right = columns[number].right
        parts.append(space + shown if right else shown if number == last else shown + space)
    return (" " * GAP).join(parts).rstrip()


@lru_cache(maxsize=4096)
def cells(text: str) -> int:
    """Columns of the terminal that it takes: wide letters two, joined marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def clipped(text: str, width: int) -> str:
    """Cut to that width, which shows."""
    if cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def bare(text: str) -> str:
    """Without what would move the cursor: others choose names, and print what they like."""
    return "".join(c if c.isprintable() else "�" for c in text)


def wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Prose in lines."""
    import textwrap

    return textwrap.wrap(text, max(width - indent, 20), break_on_hyphens=False) or [""]


def bar(share: float, width: int, rest: str = "░") -> str:
    """A share of 1 as a bar, to an eighth of a letter."""
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (" ▏▎▍▌▋▊▉"[part] if part else "")).ljust(width, rest)

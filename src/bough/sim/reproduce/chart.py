"""Ours beside theirs as bars, in one SVG file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from bough.errors import InputError
from bough.sim.reproduce.page import number
from bough.sim.reproduce.rows import Row

WIDTH: Final = 860
#: Where bars begin, and how long the longest is.
LEFT, LONGEST = 380, 380
BAR, GAP, TITLE = 9, 7, 34
#: Told apart by those who do not see all colours, and in print.
OURS, THEIRS = "#0072b2", "#d55e00"


def check(path: Path) -> None:
    """InputError unless the file is to be an SVG: told before anything runs."""
    if path.suffix.lower() != ".svg":
        raise InputError("is no format of charts", file=str(path), hint="give it the ending .svg")


def write(drawn: str, path: Path) -> None:
    """Write the chart."""
    try:
        path.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from None


def chart(rows: Sequence[Row]) -> str:
    """A panel for each metric, a pair of bars for each number."""
    body: list[str] = []
    top = legend(body)
    for metric in dict.fromkeys(row.metric for row in rows):
        own = [row for row in rows if row.metric == metric]
        most = max(max(row.ours, row.theirs) for row in own) or 1.0
        body.append(text(12, top + 20, metric.replace("_", " "), "title"))
        top += TITLE
        for row in own:
            label = f"{row.trace.partition('/')[2]}: {row.policy}"
            body.append(text(LEFT - 8, top + BAR + 3, label, "label"))
            for k, (value, colour) in enumerate(((row.ours, OURS), (row.theirs, THEIRS))):
                length, y = max(LONGEST * value / most, 1.0), top + k * BAR
                body.append(
                    f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 1}" '
                    f'fill="{colour}"/>'
                )
                body.append(text(LEFT + length + 5, y + BAR - 1, number(value), "value"))
            top += 2 * BAR + GAP
    style = (
        "text{font:10px sans-serif;fill:#222}.title{font-size:13px;font-weight:bold}"
        ".label{text-anchor:end}.value{font-size:8px}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 10}" '
        f'width="{WIDTH}" height="{top + 10}">\n<style>{style}</style>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def legend(body: list[str]) -> int:
    """Which colour is whose; where the rest begins."""
    for x, name, colour in ((LEFT, "ours", OURS), (LEFT + 70, "theirs", THEIRS)):
        body.append(f'<rect x="{x}" y="10" width="12" height="10" fill="{colour}"/>')
        body.append(text(x + 17, 19, name, ""))
    return 28


def text(x: float, y: float, words: str, kind: str) -> str:
    """A line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>'

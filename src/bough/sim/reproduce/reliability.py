"""How often forecasts were right, as curves in one SVG file: on the diagonal they say what is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bough.sim.reproduce.chart import text
from bough.sim.reproduce.rows import Row

WIDTH, HEIGHT = 640, 430
#: The square of the plot, and how long its sides are.
LEFT, TOP, SIDE = 60, 20, 350
#: Told apart by those who do not see all colours (Okabe and Ito), and by their marks in print.
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
#: So far off the diagonal it may be.
BAND: Final = 0.08
BEFORE: Final = "ends before p"


def chart(rows: Sequence[Row]) -> str:
    """What part of the jobs ended before the moments that so much of them should."""
    body = axes()
    curves = dict.fromkeys((row.trace, row.policy) for row in rows)
    for number, (trace, policy) in enumerate(curves):
        mine = [row for row in rows if (row.trace, row.policy) == (trace, policy)]
        points = [(row.theirs, row.ours) for row in mine if row.metric.startswith(BEFORE)]
        within = next((row.ours for row in mine if row.metric.startswith("ends within")), None)
        name = f"{trace.partition('/')[2]}, {policy}"
        if within is not None:
            name += f": {within:.0%} within p10–p90"
        body += curve(number, name, points)
    style = (
        "text{font:10px sans-serif;fill:#222}.title{font-size:12px}.middle{text-anchor:middle}"
        ".end{text-anchor:end}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}">\n<style>{style}</style>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def axes() -> list[str]:
    """The square, the diagonal with its band, and words."""
    above = [(0.0, 0.0), (0.0, BAND), (1.0 - BAND, 1.0), (1.0, 1.0)]
    inside = " ".join([*(at(x, y) for x, y in above), *(at(y, x) for x, y in reversed(above))])
    body = [
        f'<polygon points="{inside}" fill="#ddd"/>',
        f'<polyline points="{at(0, 0)} {at(1, 1)}" stroke="#888" stroke-dasharray="4 3"/>',
        f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#888"/>',
    ]
    for tenth in range(0, 11, 2):
        along = SIDE * tenth / 10
        words = f"{10 * tenth} %"
        body.append(text(LEFT + along, TOP + SIDE + 14, words, "middle"))
        body.append(text(LEFT - 6, TOP + SIDE - along + 3, words, "end"))
    body.append(text(LEFT + SIDE / 2, TOP + SIDE + 34, "foretold to have ended", "title middle"))
    body.append(text(8, TOP - 7, "really ended by then", "title"))
    return body


def curve(number: int, name: str, points: Sequence[tuple[float, float]]) -> list[str]:
    """A line with its marks, and its name beside the plot."""
    colour = COLOURS[number % len(COLOURS)]
    line = " ".join(at(x, y) for x, y in points)
    body = [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>']
    here = LEFT + SIDE + 20, TOP + 12 + 18 * number
    marks = [*(tuple(map(float, at(x, y).split(","))) for x, y in points), (here[0], here[1] - 4)]
    body += [mark(number, x, y, colour) for x, y in marks]
    return [*body, text(here[0] + 10, here[1], name, "")]


def mark(number: int, x: float, y: float, colour: str) -> str:
    """A dot or a square, by turns."""
    if number % 2:
        box = f'x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6"'
        return f'<rect {box} fill="{colour}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>'


def at(x: float, y: float) -> str:
    """A point of the square."""
    return f"{LEFT + SIDE * x:.1f},{TOP + SIDE * (1.0 - y):.1f}"

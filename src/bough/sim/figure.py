"""A figure for papers: how completion times are distributed and how full the cluster was.

Drawn by matplotlib (the extra `plot`), in the format that the file's name asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bough.core.units import format_duration
from bough.errors import InputError
from bough.sim.record import RunRecord
from bough.sim.results import completion_seconds, over_time

#: Inches: the width of a page's text, so that nothing is scaled and letters keep their size.
SIZE = (7.0, 2.6)
BINS = 160
DAY_SECONDS = 86_400.0
#: Seconds shorter than which nothing is told apart.
LEAST = 0.1
#: Room beside the shortest and the longest of times.
MARGIN = 1.3
#: Seconds that people count in.
MARKS = (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000, 31_536_000)
#: Told apart by those who do not see all colours, and in print (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
STROKES = ("-", "--", "-.", ":")
DOTS_PER_INCH = 200
#: Equal runs give equal files: nothing says when they were made.
DATED = {"pdf": "CreationDate", "svg": "Date", "svgz": "Date"}
SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "svg.hashsalt": "bough",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


def check(path: Path) -> None:
    """InputError where matplotlib is missing, or writes no such format: told before the runs."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        hint = "pip install 'bough[plot]'"
        raise InputError("a figure needs matplotlib", file=str(path), hint=hint) from None
    known = Figure().canvas.get_supported_filetypes()
    if ending(path) not in known:
        hint = f"one of: {', '.join(sorted(known))}"
        raise InputError("is no format of figures", file=str(path), hint=hint)


def ending(path: Path) -> str:
    """What kind of file it is to be."""
    return path.suffix[1:].lower()


def write_figure(path: Path, records: Sequence[RunRecord]) -> None:
    """Draw it."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=SIZE, layout="constrained")
        left, right = figure.subplots(1, 2)
        for i, record in enumerate(records):
            colour, stroke = COLOURS[i % len(COLOURS)], STROKES[i // len(COLOURS) % len(STROKES)]
            draw(left, right, record, color=colour, linestyle=stroke)
        label(left, right)
        figure.legend(loc="outside upper center", ncols=min(len(records), 6), frameon=False)
        undated = {DATED[ending(path)]: None} if ending(path) in DATED else None
        figure.savefig(path, metadata=undated, dpi=DOTS_PER_INCH)


def draw(left: Any, right: Any, record: RunRecord, **look: str) -> None:
    """One policy in both parts."""
    done = np.sort(completion_seconds([job for job in record.jobs if job.state == "done"]))
    share = np.arange(1, len(done) + 1) / max(len(done), 1)
    left.step(done, share, where="post", label=record.policy, linewidth=1.0, **look)
    course = over_time(record, BINS)
    days = np.array(course["seconds"]) / DAY_SECONDS
    right.plot(days, course["utilisation"], linewidth=1.0, **look)


def label(left: Any, right: Any) -> None:
    """What the axes are."""
    left.set_xscale("log")
    left.set_xticks(MARKS, [format_duration(mark, 1) for mark in MARKS])
    left.set_xticks([], minor=True)
    times = [seconds for line in left.lines for seconds in line.get_xdata()] or [1.0]
    left.set_xlim(max(min(times), LEAST) / MARGIN, max(*times, LEAST) * MARGIN)
    left.set(xlabel="completion time", ylabel="share of jobs", ylim=(0, 1))
    right.set(xlabel="days since the first submission", ylabel="devices in use", ylim=(0, 1))
    right.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")
    for part in (left, right):
        part.spines[["top", "right"]].set_visible(False)

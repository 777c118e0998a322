"""Hands out what is left over: jobs that wait start, then sizes go up where that costs least."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from bough.core.filling import Levels, useful_levels
from bough.core.model import INFINITY
from bough.core.policy import View

#: Device time that is saved or lost, for each device more; the row; its size after.
Step = tuple[float, int, int]


def start_more(view: View, granted: list[int], free: int, order: Iterable[int]) -> int:
    """Rows with nothing get their least in this order while it is there; what is left."""
    lo = view.jobs.lo.tolist()
    for row in order:
        if not free:
            break
        if not granted[row] and lo[row] <= free:
            granted[row] = lo[row]
            free -= lo[row]
    return free


def grow(view: View, granted: list[int], free: int, most_first: bool = False) -> int:
    """Rows go up size by size, the one whose device time grows least first; what is left.

    What a job would use from now to its end is compared, at the new size and at the old one, for
    each device more. Sizes that make a job no faster are never given. Where the work is unknown
    the step counts as the dearest. With `most_first` the dearest goes first.
    """
    jobs, levels = view.jobs, useful_levels(view.classes)
    cls, hi, left = jobs.cls.tolist(), jobs.hi.tolist(), jobs.left_or_guess().tolist()

    def step(row: int) -> Step | None:
        found = next_size(levels[cls[row]], granted[row])
        if found is None or found[0] > hi[row]:
            return None
        size, each = found
        cost = left[row] * each if each > 0 else 0.0
        return (-cost if most_first else cost), row, size

    rows = [row for row, size in enumerate(granted) if 0 < size < hi[row]] if free else []
    heap = [found for row in rows if (found := step(row)) is not None]
    heapify(heap)
    while heap and free:
        _, row, size = heappop(heap)
        more = size - granted[row]
        if more <= free:
            granted[row] = size
            free -= more
            after = step(row)
            if after is not None:
                heappush(heap, after)
    return free


def next_size(levels: Levels, size: int) -> tuple[int, float] | None:
    """The next size worth having, and by how much device time grows there.

    For each unit of work and each device more; None beyond the fastest size.
    """
    sizes, speeds = levels
    k = bisect_right(sizes, size)
    if k == len(sizes):
        return None
    before = sizes[k - 1] / speeds[k - 1] if k > 1 else INFINITY
    return sizes[k], (sizes[k] / speeds[k] - before) / (sizes[k] - size)

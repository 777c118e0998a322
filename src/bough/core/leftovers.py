"""Hands out what is left over: jobs that wait start, then sizes go up where that costs least."""

from __future__ import annotations

import numpy as np

from bough.core.alone import level_table
from bough.core.order import fit_in_order
from bough.core.policy import Floats, Ints, View


def start_more(view: View, granted: Ints, order: Ints) -> Ints:
    """Rows with nothing get their least in this order while it is there."""
    free = view.devices - int(granted.sum())
    waiting = order[granted[order] == 0]
    return granted + fit_in_order(view.jobs.lo, free, waiting, skip=True)


def grow(view: View, granted: Ints, most_first: bool = False) -> Ints:
    """Rows go up size by size, the one whose device time grows least first.

    What a job would use from now to its end is compared, at the new size and at the old one, for
    each device more. Sizes that make a job no faster are never given. With `most_first` the
    dearest goes first. Who cannot pay for a step takes none of those behind it.
    """
    granted, free = granted.copy(), view.devices - int(granted.sum())
    rows = ((granted > 0) & (granted < view.jobs.hi)).nonzero()[0] if free > 0 else granted[:0]
    if not len(rows):
        return granted
    row, size, more, cost = _steps(view, rows, granted[rows], most_first)
    # Row by row in the order of their costs; the steps of a row stay in order.
    order = np.lexsort((size, row, cost))
    row, size, more = row[order], size[order], more[order]
    while len(row):
        taken = int(more.cumsum().searchsorted(free, "right"))
        np.maximum.at(granted, rows[row[:taken]], size[:taken])
        free -= int(more[:taken].sum())
        row, size, more = row[taken:], size[taken:], more[taken:]
        place = np.arange(len(row))
        last = np.full(len(rows), len(row))
        np.minimum.at(last, row[more > free], place[more > free])
        able = place < last[row]
        row, size, more = row[able], size[able], more[able]
    return granted


def _steps(
    view: View, rows: Ints, has: Ints, most_first: bool
) -> tuple[Ints, Ints, Ints, Floats]:  # fmt: skip
    """All steps up: whose, to which size, for how many devices, at which cost for each of them."""
    jobs = view.jobs
    table, speeds = level_table(view.classes)
    sizes, cls = table[jobs.cls[rows]], jobs.cls[rows]
    before = np.maximum(sizes[:, :-1], has[:, None])
    up = (sizes[:, 1:] > before) & (sizes[:, 1:] <= jobs.hi[rows, None])
    each = table / np.maximum(speeds, 1e-300)
    dearer = np.maximum(np.diff(each, axis=1), 0.0)
    dearer[:, 0] = 0.0
    more = np.where(up, sizes[:, 1:] - before, 1)
    cost = jobs.left_or_guess()[rows, None] * dearer[cls] / more
    # A cheap step is only reached over the dear one before it.
    cost = np.maximum.accumulate(np.where(up, -cost if most_first else cost, -np.inf), axis=1)
    row, step = up.nonzero()
    return row, sizes[row, step + 1], more[row, step], cost[row, step]

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
    # Steps of equal cost stay in order, so those of a row do.
    order = np.argsort(cost, kind="stable")
    row, size, more = row[order], size[order], more[order]
    while len(row):
        spent = more.cumsum()
        taken = int(spent.searchsorted(free, "right"))
        granted[rows[row[:taken]]] = size[:taken]  # of a row's steps the last one counts
        free -= int(spent[taken - 1]) if taken else 0
        if not free:
            break
        row, size, more = row[taken:], size[taken:], more[taken:]
        place, large = np.arange(len(row)), (more > free).nonzero()[0][::-1]
        last = np.full(len(rows), len(row))
        last[row[large]] = large  # the first of each row, as it is written last
        able = place < last[row]
        row, size, more = row[able], size[able], more[able]
    return granted


def _steps(
    view: View, rows: Ints, has: Ints, most_first: bool
) -> tuple[Ints, Ints, Ints, Floats]:  # fmt: skip
    """All steps up: whose, to which size, for how many devices, at which cost for each of them."""
    jobs = view.jobs
    table, speeds = level_table(view.classes)
    cls = jobs.cls[rows]
    sizes = table[cls]
    before = np.maximum(sizes[:, :-1], has[:, None])
    up = (sizes[:, 1:] > before) & (sizes[:, 1:] <= jobs.hi[rows, None])
    dearer = view.classes.cache.get("dearer")
    if dearer is None:
        dearer = np.maximum(np.diff(table / np.maximum(speeds, 1e-300), axis=1), 0.0)
        dearer[:, 0] = 0.0
        view.classes.cache["dearer"] = dearer
    more = np.where(up, sizes[:, 1:] - before, 1)
    cost = jobs.left_or_guess()[rows, None] * dearer[cls] / more
    # A cheap step is only reached over the dear one before it.
    cost = np.maximum.accumulate(np.where(up, -cost if most_first else cost, -np.inf), axis=1)
    row, step = up.nonzero()
    return row, sizes[row, step + 1], more[row, step], cost[row, step]

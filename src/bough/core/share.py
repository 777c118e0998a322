"""Building blocks of policies: how to hand out devices by order, by equal shares, by greatest gain.

All of them are pure functions of columns and cost a few passes over them, whatever the number
of devices. Three rules hold throughout:

- A row is given 0 or a size its job allows within lo .. hi (lo itself is always allowed).
- Rows that may not be parked (`must`) go before all others, then those of higher priority, then
  those submitted earlier, unless an order is given.
- The same input gives the same output.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bough.core.climb import climb
from bough.core.fast import use_compiled
from bough.core.jobs import Jobs
from bough.core.ladder import Ladder, even, even_ladder, peaks, steepest, steepest_ladder
from bough.core.order import CHUNK, fit_in_order, fit_skipping, in_order, stable_order
from bough.core.policy import Classes, View

__all__ = [
    "fill_in_order", "fit_in_order", "in_order", "marginal_fill", "peaks", "stable_order",
    "use_compiled", "water_fill", "wished",
]  # fmt: skip

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def wished(jobs: Jobs, keep: bool = False) -> Ints:
    """What each row wishes, within its bounds; with `keep`, running rows wish what they hold.

    Rows that may not be parked wish what they hold in any case, as all of that fits.
    """
    lo, hi = jobs.lo, jobs.hi
    wish: Ints = np.maximum(np.minimum(jobs.wish, hi), lo)
    if keep or not (jobs.flat or not np.count_nonzero(jobs.must)):
        holds = (jobs.size if keep else jobs.size * jobs.must).nonzero()[0]
        wish[holds] = np.maximum(np.minimum(jobs.size[holds], hi[holds]), lo[holds])
    return wish


def fill_in_order(view: View, order: Ints, most: Ints | None = None) -> Ints:
    """Each row in turn takes the largest size it may have (and `most` allows) of what is left.

    The leasts of rows that may not be parked are set aside beforehand. What cannot be had once
    cannot be had later, so there are no more passes than distinct sizes (and chunks of rows).
    """
    jobs, sizes = view.jobs, view.classes.sizes
    hi = jobs.hi if most is None else np.minimum(jobs.hi, most)
    granted: Ints = jobs.lo * (jobs.must != 0)
    free = view.devices - int(np.add.reduce(granted))
    start, stop = 0, CHUNK
    while start < len(order) and free > 0:
        rows = order[start:stop]
        lo, cls, aside = jobs.lo[rows], jobs.cls[rows], granted[rows]
        top = np.maximum(floor_size(sizes, cls, hi[rows]), lo)
        while len(rows):
            large = (top > free + aside).nonzero()[0]
            if len(large):
                top[large] = floor_size(sizes, cls[large], free + aside[large])
                able = ((top >= lo) & (top > 0)).nonzero()[0]
                rows, lo, cls, aside, top = (x[able] for x in (rows, lo, cls, aside, top))
            spent = (top - aside).cumsum()
            n = int(spent.searchsorted(free, "right"))
            granted[rows[:n]] = top[:n]
            free -= int(spent[n - 1]) if n else 0
            rows, lo, cls, aside, top = (x[n:] for x in (rows, lo, cls, aside, top))
        start, stop = stop, 3 * stop
    return granted


def floor_size(sizes: Ints, cls: Ints, most: Ints) -> Ints:
    """The largest size of each class that is no larger than `most`."""
    own = sizes[cls]
    step = (own <= most[:, None]).sum(axis=1) - 1
    found: Ints = own[np.arange(len(own)), step]
    return found


def water_fill(
    view: View,
    weights: Floats | None = None,
    order: Ints | None = None,
    least: Ints | None = None,
) -> Ints:
    """Max-min fairness: everybody's least first, then the smallest is raised as far as all can.

    Leasts (`least`, or else `lo`) are granted in order until one does not fit. Then all rise
    together through the sizes they allow, each up to its `hi` and the peak of its speed; what is
    left over goes to the rows that can take their next step with it. With weights, size / weight
    is what is evened out. Rows left out of `order` get nothing.
    """

    def own(lo: Ints) -> Ladder:
        jobs, classes = view.jobs, view.classes
        hi = np.maximum(np.minimum(jobs.hi, peaks(classes)[jobs.cls]), lo)
        return even(classes.sizes[jobs.cls], lo, hi, weights)

    shared = even_ladder(view.classes) if weights is None else None
    return climb(view, shared, own, order, least)


def marginal_fill(
    view: View,
    gain: Floats | None = None,
    weights: Floats | None = None,
    order: Ints | None = None,
    least: Ints | None = None,
) -> Ints:
    """Most speed in sum: everybody's least first, then each device to where it adds most.

    `gain` stands in for the believed speeds (classes x sizes); `weights` multiplies a row's gain.
    Steps are those of the upper concave envelope of each job's speeds, taken steepest first, so
    that the result is optimal wherever the last step taken needs all that is left; what no step
    can use goes to sizes below the envelope. Order and leasts are as in `water_fill`.
    """
    classes = view.classes if gain is None else Classes(view.classes.sizes, gain)

    def own(lo: Ints) -> Ladder:
        jobs = view.jobs
        sizes, speed = classes.sizes[jobs.cls], classes.speed[jobs.cls]
        return steepest(sizes, speed, lo, jobs.hi, weights)

    shared = steepest_ladder(classes)
    granted = climb(view, shared if weights is None else None, own, order, least)
    if shared.spare:
        _use_up(view, classes, granted, weights)
    return granted


def _use_up(view: View, classes: Classes, granted: Ints, weights: Floats | None) -> None:
    """Spend what is left on sizes below the envelope, which gain little, but something."""
    rows = granted.nonzero()[0]
    free = view.devices - int(np.add.reduce(granted))
    sizes, speed = classes.sizes[view.jobs.cls[rows]], classes.speed[view.jobs.cls[rows]]
    hi, every = view.jobs.hi[rows], np.arange(len(rows))
    while free > 0:
        more = sizes - granted[rows, None]
        able = (more > 0) & (more <= free) & (sizes <= hi[:, None])
        gain = speed - classes.speed_at(view.jobs.cls[rows], granted[rows])[:, None]
        slope = np.where(able, gain / np.maximum(more, 1), 0.0)
        if weights is not None:
            slope *= weights[rows, None]
        step = slope.argmax(axis=1)
        best = slope[every, step]
        order = stable_order(-best)[: np.count_nonzero(best > 0)]
        order = order[fit_skipping(more[order, step[order]], free)]
        if not len(order):
            return
        granted[rows[order]] = sizes[order, step[order]]
        free -= int(more[order, step[order]].sum())

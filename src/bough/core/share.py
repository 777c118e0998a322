"""Building blocks of policies: how to hand out devices by order, by equal shares, by greatest gain.

All of them are pure functions of columns and cost a few passes over them, whatever the number
of devices. Three rules hold throughout:

- A row is given 0 or a size its job allows within lo .. hi (lo itself is always allowed).
- Rows that may not be parked (`must`) go before all others, then those of higher priority, then
  those submitted earlier, unless an order is given.
- The same input gives the same output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bough.core.jobs import Jobs
from bough.core.ladder import Ladder, even, even_ladder, peaks, steepest, steepest_ladder
from bough.core.policy import Classes, View

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Key = npt.NDArray[np.bool_] | npt.NDArray[np.uint8] | Ints | Floats

#: Rows looked at first when most of a long queue cannot get anything; doubles from there.
CHUNK = 1024


# ------------------------------------------------------------------------------------- in order


def in_order(view: View, *keys: Key) -> Ints:
    """Rows by ascending keys, the first counting most; those that may not be parked come first.

    Equal rows stay in order of priority, then submission. Keys of few values are cheap as
    booleans or uint8.
    """
    jobs = view.jobs
    more: list[Key] = []
    if np.count_nonzero(jobs.must):
        more.append(jobs.must == 0)
    more.extend(keys)
    if np.count_nonzero(jobs.priority):
        more.append(-jobs.priority)
    if not more:
        return np.arange(jobs.n)
    order = stable_order(more[-1])
    for key in reversed(more[:-1]):
        order = order[stable_order(key[order])]
    return order


def stable_order(key: Key) -> Ints:
    """Rows by ascending key, equal ones in their order; much faster than a stable sort."""
    if key.dtype.itemsize == 1:
        small: Ints = key.argsort(kind="stable")  # counts values, compares nothing
        return small
    order: Ints = np.argsort(key)
    ranked = key[order]
    same = ranked[1:] == ranked[:-1]
    if np.count_nonzero(same):
        _settle_ties(order, same)
    return order


def _settle_ties(order: Ints, same: npt.NDArray[np.bool_]) -> None:
    """Put rows of equal keys back in their order; `same` says which equal their predecessor."""
    n = len(order)
    tied = np.zeros(n, np.bool_)
    tied[1:] = same
    tied[:-1] |= same
    at = tied.nonzero()[0]
    run = np.zeros(n, np.int64)
    np.cumsum(~same, out=run[1:])
    base = run[at] * n
    order[at] = np.sort(base + order[at]) - base


def fit_in_order(size: Ints, devices: int, order: Ints | None = None, skip: bool = False) -> Ints:
    """Grant sizes one after another; stop at the first that does not fit, or pass over it."""
    granted = np.zeros_like(size)
    wanted = size if order is None else size[order]
    if skip:
        got = _fit_skipping(wanted, devices)
        granted[got if order is None else order[got]] = wanted[got]
    else:
        n = int(wanted.cumsum().searchsorted(devices, "right"))
        granted[slice(n) if order is None else order[:n]] = wanted[:n]
    return granted


def _fit_skipping(wanted: Ints, free: int) -> Ints:
    """Which are granted, one after another, when those that do not fit are passed over.

    Each pass grants all up to the first that does not fit, which rules out every later one as
    large as it: so there are no more passes than distinct sizes (and chunks of the queue).
    """
    granted: list[Ints] = []
    start, stop = 0, CHUNK
    while start < len(wanted) and free > 0:
        rows = (wanted[start:stop] <= free).nonzero()[0]
        while len(rows):
            total = wanted[start:stop][rows].cumsum()
            n = int(total.searchsorted(free, "right"))
            granted.append(rows[:n] + start)
            if n == len(rows):
                free -= int(total[-1])
                break
            free -= int(total[n - 1]) if n else 0
            rows = rows[n:]
            rows = rows[wanted[start:stop][rows] <= free]
        start, stop = stop, 3 * stop
    return np.concatenate(granted) if granted else np.zeros(0, np.int64)


# ----------------------------------------------------------------------------------- step by step


def water_fill(view: View, weights: Floats | None = None, order: Ints | None = None) -> Ints:
    """Max-min fairness: everybody's least first, then the smallest is raised as far as all can.

    Leasts are granted in order until one does not fit. Then all rise together through the sizes
    they allow, each up to its `hi` and the peak of its speed; what is left over goes to the rows
    that can take their next step with it. With weights, size / weight is what is evened out.
    """

    def own() -> Ladder:
        jobs, classes = view.jobs, view.classes
        hi = np.maximum(np.minimum(jobs.hi, peaks(classes)[jobs.cls]), jobs.lo)
        return even(classes.sizes[jobs.cls], jobs.lo, hi, weights)

    return _climb(view, even_ladder(view.classes) if weights is None else None, own, order)


def marginal_fill(
    view: View,
    gain: Floats | None = None,
    weights: Floats | None = None,
    order: Ints | None = None,
) -> Ints:
    """Most speed in sum: everybody's least first, then each device to where it adds most.

    `gain` stands in for the believed speeds (classes x sizes); `weights` multiplies a row's gain.
    Steps are those of the upper concave envelope of each job's speeds, taken steepest first.
    """
    classes = view.classes if gain is None else Classes(view.classes.sizes, gain)

    def own() -> Ladder:
        jobs = view.jobs
        sizes, speed = classes.sizes[jobs.cls], classes.speed[jobs.cls]
        return steepest(sizes, speed, jobs.lo, jobs.hi, weights)

    return _climb(view, steepest_ladder(classes) if weights is None else None, own, order)


def _standing(jobs: Jobs) -> Ints | None:
    """Rows that may not be parked, then by priority; None when that is the order of the rows."""
    keys = [key for key in (jobs.must, jobs.priority) if np.count_nonzero(key)]
    if not keys:
        return None
    order = stable_order(-keys[-1])
    return order if len(keys) == 1 else order[stable_order(-keys[0][order])]


def _climb(
    view: View, ladder: Ladder | None, own: Callable[[], Ladder], order: Ints | None
) -> Ints:
    """Grant everybody's least, then climb the ladder of the classes as far as devices reach.

    Without one, or when some bound lies between its rungs, each row climbs its `own` ladder.
    """
    jobs, free = view.jobs, view.devices
    granted = np.zeros(jobs.n, np.int64)
    if order is None:
        order = _standing(jobs)
    lo = jobs.lo if order is None else jobs.lo[order]
    total = lo.cumsum()
    n = int(total.searchsorted(free, "right"))
    if n == 0:
        return granted
    rows: Any = slice(n) if order is None else order[:n]
    free -= int(total[n - 1])
    lo, hi, owner = lo[:n], jobs.hi[rows], jobs.cls[rows]
    if ladder is not None:
        odd = ((lo != ladder.first[owner]) | (hi < ladder.last[owner])).nonzero()[0]
        if len(odd) and not _on_rungs(ladder, owner[odd], lo[odd], hi[odd]):
            ladder = None
    if ladder is None:
        ladder, owner, odd = own(), np.arange(jobs.n)[rows], np.zeros(0, np.int64)
    granted[rows] = _rise(ladder, owner, lo, hi, odd, free) if free else lo
    return granted


def _on_rungs(ladder: Ladder, owner: Ints, lo: Ints, hi: Ints) -> bool:
    """Whether each row begins on a rung, and ends on one or beyond the last."""
    rungs = ladder.rungs[owner]
    begins = (rungs == lo[:, None]).any(axis=1)
    ends = (rungs == hi[:, None]).any(axis=1) | (hi > ladder.last[owner])
    return bool((begins & ends).all())


def _rise(ladder: Ladder, owner: Ints, lo: Ints, hi: Ints, odd: Ints, free: int) -> Ints:
    """Raise rows from lo along the ladder: whole levels first, then single steps in row order.

    The `odd` rows are those whose bounds are not the ends of their ladder.
    """
    many = np.bincount(owner, minlength=ladder.owners)
    climbers = _climbers(ladder, many, owner, lo, hi, odd) if len(odd) else many[ladder.of]
    total = (climbers * ladder.cost).cumsum()[ladder.ends - 1] if len(ladder.of) else ladder.of
    level = int(total.searchsorted(free, "right"))
    size: Ints = ladder.reach(level)[owner]
    if len(odd):
        size = np.maximum(np.minimum(size, hi), lo)
    if level:
        free -= int(total[level - 1])
    while free:
        begin = int(ladder.ends[level - 1]) if level else 0
        able = (climbers[begin:] > 0) & (ladder.cost[begin:] <= free)
        step = int(able.argmax()) if len(able) else 0
        if not len(able) or not able[step]:
            break
        level = int(ladder.ends.searchsorted(begin + step, "right"))
        more = np.maximum(np.minimum(ladder.reach(level + 1)[owner], hi), lo) - size
        rows = more.nonzero()[0]
        rows = rows[_fit_skipping(more[rows], free)]
        size[rows] += more[rows]
        free -= int(more[rows].sum())
        level += 1
    return size


def _climbers(ladder: Ladder, many: Ints, owner: Ints, lo: Ints, hi: Ints, odd: Ints) -> Ints:
    """How many rows can take each step, when the odd ones take only those within lo .. hi."""
    width = ladder.rungs.shape[1]
    at = owner[odd]
    rungs = ladder.rungs[at]
    low = (rungs < lo[odd][:, None]).sum(axis=1)
    high = np.maximum((rungs[:, 1:] <= hi[odd][:, None]).sum(axis=1), low)
    cells = ladder.owners * width
    begin = np.bincount(at * width + np.minimum(low, width - 1), minlength=cells)
    end = np.bincount(at * width + np.minimum(high, width - 1), minlength=cells)
    among = (begin - end).cumsum()[ladder.cell]
    rest = many - np.bincount(at, minlength=ladder.owners)
    counted: Ints = rest[ladder.of] + among
    return counted

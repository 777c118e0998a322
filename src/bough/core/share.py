"""Building blocks of policies: how to hand out devices by order, by equal shares, by greatest gain.

All of them are pure functions of columns and cost a few passes over them, whatever the number
of devices. Three rules hold throughout:

- A row is given 0 or a size its job allows within lo .. hi (lo itself is always allowed).
- Rows that may not be parked (`must`) go before all others, then those of higher priority, then
  those submitted earlier, unless an order is given.
- The same input gives the same output.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
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
NO_ORDER = np.zeros(0, np.int64)

#: The module of compiled twins while they are used.
_compiled: Any = None


def use_compiled(wanted: bool = True) -> bool:
    """Let the compiled twins do the work from now on (or not); whether they do.

    They need the extra `fast`; results are the same. Loading them takes about a second (a few
    when they are compiled for the first time), which pays from some ten thousand plans on.
    """
    global _compiled  # noqa: PLW0603 - how, not what, is computed is the whole process' choice
    _compiled = None
    if wanted:
        with suppress(ImportError):
            _compiled = importlib.import_module("bough.core._compiled")
    return _compiled is not None


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
    """Rows by ascending key, equal ones in their order; many times faster than a stable sort.

    The leading bits of the key and the number of the row are packed into one integer each, and
    integers are sorted as fast as the machine can; what the bits left out would have said is
    checked afterwards, and put right where that is needed at all.
    """
    if key.dtype.itemsize == 1:
        small: Ints = key.argsort(kind="stable")  # counts values, compares nothing
        return small
    room = len(key).bit_length()
    mask = (1 << room) - 1
    bits = (key + 0.0).view(np.int64)  # of floats; adding makes -0.0 equal to 0.0
    bits ^= (bits >> 63) & 0x7FFF_FFFF_FFFF_FFFF  # below zero, larger bits mean a smaller number
    bits &= ~mask
    bits |= np.arange(len(key))
    bits.sort()
    bits &= mask
    ranked = key[bits]
    if np.count_nonzero(ranked[1:] < ranked[:-1]):
        bits = bits[ranked.argsort(kind="stable")]  # nearly sorted, so this costs one pass
    return bits


def fit_in_order(size: Ints, devices: int, order: Ints | None = None, skip: bool = False) -> Ints:
    """Grant sizes one after another; stop at the first that does not fit, or pass over it.

    Looks at the head of the line first: of a long queue, most is never reached.
    """
    if _compiled is not None:
        found: Ints = _compiled.fit_in_order(
            size, devices, NO_ORDER if order is None else order, skip
        )
        return found
    granted = np.zeros_like(size)
    start, stop = 0, CHUNK
    while start < len(size) and devices > 0:
        rows: Any = slice(start, stop) if order is None else order[start:stop]
        wanted = size[rows]
        if skip:
            got: Any = _fit_skipping(wanted, devices)
        else:
            got = slice(int(wanted.cumsum().searchsorted(devices, "right")))
            if got.stop < len(wanted):
                devices = 0
        where = np.arange(start, start + len(wanted)) if order is None else rows
        granted[where[got]] = wanted[got]
        devices -= int(np.add.reduce(wanted[got]))
        start, stop = stop, 3 * stop
    return granted


def _fit_skipping(wanted: Ints, free: int) -> Ints:
    """Which are granted, one after another, when those that do not fit are passed over.

    Each pass grants all up to the first that does not fit, which rules out every later one as
    large as it: so there are no more passes than distinct sizes.
    """
    rows = (wanted <= free).nonzero()[0]
    granted: list[Ints] = []
    while len(rows):
        size = wanted[rows]
        total = size.cumsum()
        if total[-1] <= free:
            granted.append(rows)
            break
        n = int(total.searchsorted(free, "right"))
        if n:
            granted.append(rows[:n])
            free -= int(total[n - 1])
        rows = rows[n:][size[n:] <= free]
    return granted[0] if len(granted) == 1 else np.concatenate([rows[:0], *granted])


def wished(jobs: Jobs, keep: bool = False) -> Ints:
    """What each row wishes, within its bounds; with `keep`, running rows wish what they hold.

    Rows that may not be parked wish what they hold in any case, as all of that fits.
    """
    lo, hi = jobs.lo, jobs.hi
    wish: Ints = np.maximum(np.minimum(jobs.wish, hi), lo)
    if keep or np.count_nonzero(jobs.must):
        holds = (jobs.size if keep else jobs.size * jobs.must).nonzero()[0]
        wish[holds] = np.maximum(np.minimum(jobs.size[holds], hi[holds]), lo[holds])
    return wish


def fill_in_order(view: View, order: Ints, most: Ints | None = None) -> Ints:
    """Each row in turn takes the largest size it may have (and `most` allows) of what is left.

    The leasts of rows that may not be parked are set aside beforehand. What cannot be had once
    cannot be had later, so there are no more passes than distinct sizes (and chunks of rows).
    """
    jobs, classes = view.jobs, view.classes
    lo = jobs.lo
    hi = jobs.hi if most is None else np.maximum(np.minimum(jobs.hi, most), lo)
    granted: Ints = lo * (jobs.must != 0)
    free = view.devices - int(np.add.reduce(granted))
    start, stop = 0, CHUNK
    while start < len(order) and free > 0:
        rows = order[start:stop]
        while len(rows):
            aside = granted[rows]
            within = classes.sizes[jobs.cls[rows]]
            step = (within <= np.minimum(hi[rows], free + aside)[:, None]).sum(axis=1) - 1
            size = within[np.arange(len(rows)), step]
            able = size >= lo[rows]
            rows, size = rows[able], size[able]
            spent = (size - aside[able]).cumsum()
            n = int(spent.searchsorted(free, "right"))
            granted[rows[:n]] = size[:n]
            free -= int(spent[n - 1]) if n else 0
            rows = rows[n:]
        start, stop = stop, 3 * stop
    return granted


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
    must, priority = np.count_nonzero(jobs.must), np.count_nonzero(jobs.priority)
    if not must and not priority:
        return None
    order = stable_order(-jobs.priority) if priority else np.arange(jobs.n)
    return order[stable_order(jobs.must[order] == 0)] if must else order


def _climb(
    view: View, ladder: Ladder | None, own: Callable[[], Ladder], order: Ints | None
) -> Ints:
    """Grant everybody's least, then climb the ladder of the classes as far as devices reach.

    Without one, or when some bound lies between its rungs, each row climbs its `own` ladder.
    """
    jobs, free = view.jobs, view.devices
    if order is None:
        order = _standing(jobs)
    if _compiled is not None and ladder is not None:
        found: Ints = _compiled.climb(
            NO_ORDER if order is None else order,
            jobs.cls, jobs.lo, jobs.hi, free, ladder.rungs, ladder.steps,
        )  # fmt: skip
        if len(found) == jobs.n:
            return found
        ladder = None
    lo = jobs.lo if order is None else jobs.lo[order]
    total = int(np.add.reduce(lo))
    n = jobs.n
    if total > free:
        sums = lo.cumsum()
        n = int(sums.searchsorted(free, "right"))
        total = int(sums[n - 1]) if n else 0
    granted = np.zeros(jobs.n, np.int64)
    if n == 0:
        return granted
    rows: Any = slice(n) if order is None else order[:n]
    if total == free:
        granted[rows] = lo[:n]
        return granted
    lo, hi, owner = lo[:n], jobs.hi[rows], jobs.cls[rows]
    odd: Ints | None = None
    if ladder is not None:
        differs = (lo != ladder.first[owner]) | (hi < ladder.last[owner])
        if np.count_nonzero(differs):
            odd = differs.nonzero()[0]
            if not _on_rungs(ladder, owner[odd], lo[odd], hi[odd]):
                ladder = None
    if ladder is None:
        ladder, owner, odd = own(), np.arange(jobs.n)[rows], None
    granted[rows] = _rise(ladder, owner, lo, hi, odd, free - total)
    return granted


def _on_rungs(ladder: Ladder, owner: Ints, lo: Ints, hi: Ints) -> bool:
    """Whether each row begins on a rung, and ends on one or beyond the last."""
    rungs = ladder.rungs[owner]
    begins = (rungs == lo[:, None]).any(axis=1)
    ends = (rungs == hi[:, None]).any(axis=1) | (hi > ladder.last[owner])
    return bool((begins & ends).all())


def _rise(ladder: Ladder, owner: Ints, lo: Ints, hi: Ints, odd: Ints | None, free: int) -> Ints:
    """Raise rows from lo along the ladder: whole levels first, then single steps in row order.

    The `odd` rows are those whose bounds are not the ends of their ladder.
    """
    climbers = np.bincount(owner, minlength=ladder.owners)[ladder.of]
    if odd is not None:
        climbers += _odd_climbers(ladder, owner[odd], lo[odd], hi[odd])
    spent = (climbers * ladder.cost).cumsum()
    if ladder.tops is not None:
        spent = spent[ladder.tops]
    level = int(spent.searchsorted(free, "right"))
    size: Ints = ladder.reach(level)[owner]
    if odd is not None:
        size[odd] = np.maximum(np.minimum(size[odd], hi[odd]), lo[odd])
    if level:
        free -= int(spent[level - 1])
    while free >= ladder.least[level]:
        if not 0 < ladder.single[level] <= free:
            begin = ladder.ends[level - 1] if level else 0
            able = (ladder.cost[begin:] <= free) & (climbers[begin:] > 0)
            step = int(able.argmax())
            if not able[step]:
                break
            level = ladder.level[begin + step]
        more = ladder.reach(level + 1)[owner]
        if odd is not None:
            more[odd] = np.maximum(np.minimum(more[odd], hi[odd]), lo[odd])
        more -= size
        free -= _step(size, more, ladder.single[level], free)
        level += 1
    return size


def _step(size: Ints, more: Ints, cost: int, free: int) -> int:
    """Let rows take a step in their order as long as devices last; the devices taken.

    Rows that could not pay for an earlier step cannot pay for both now, so that of a level
    where all steps have one cost, those to whom it leads further still are left out.
    """
    if cost:
        rows = (more == cost).nonzero()[0][: free // cost]
        size[rows] += cost
        return cost * len(rows)
    rows = more.nonzero()[0]
    rows = rows[_fit_skipping(more[rows], free)]
    size[rows] += more[rows]
    return int(more[rows].sum())


def _odd_climbers(ladder: Ladder, owner: Ints, lo: Ints, hi: Ints) -> Ints:
    """What is to be added to the rows that can take each step, as these do so within lo .. hi."""
    width = ladder.rungs.shape[1]
    rungs = ladder.rungs[owner]
    low = (rungs < lo[:, None]).sum(axis=1)
    high = np.maximum((rungs[:, 1:] <= hi[:, None]).sum(axis=1), low)
    cells = ladder.owners * width
    begin = np.bincount(owner * width + low, minlength=cells)
    end = np.bincount(owner * width + high, minlength=cells)
    among: Ints = (begin - end).cumsum()[ladder.cell]
    among -= np.bincount(owner, minlength=ladder.owners)[ladder.of]
    return among

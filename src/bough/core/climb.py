"""Climbs a ladder of steps: everybody's least, then whole levels, then single steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bough.core import fast
from bough.core.ladder import Ladder
from bough.core.order import NO_ORDER, fit_skipping, standing
from bough.core.policy import View

Ints = npt.NDArray[np.int64]


def climb(
    view: View,
    ladder: Ladder | None,
    own: Callable[[Ints], Ladder],
    order: Ints | None = None,
    least: Ints | None = None,
) -> Ints:
    """Grant everybody's least, then climb the ladder of the classes as far as devices reach.

    Without one, or when some bound lies between its rungs, each row climbs a ladder of its `own`
    (made from the leasts). Rows left out of `order` get nothing.
    """
    jobs = view.jobs
    if order is None:
        order = standing(jobs)
    elif not len(order):
        return np.zeros(jobs.n, np.int64)
    lo = jobs.lo if least is None else least
    if fast.twins is not None and ladder is not None:
        found: Ints = fast.twins.climb(
            NO_ORDER if order is None else order,
            jobs.cls, lo, jobs.hi, view.devices, ladder.rungs, ladder.steps,
        )  # fmt: skip
        if len(found) == jobs.n:
            return found
        ladder = None
    granted = np.zeros(jobs.n, np.int64)
    turn = lo if order is None else lo[order]
    total, n = int(np.add.reduce(turn)), len(turn)
    if total > view.devices:
        sums = turn.cumsum()
        n = int(sums.searchsorted(view.devices, "right"))
        total = int(sums[n - 1]) if n else 0
    rows: Any = slice(n) if order is None else order[:n]
    granted[rows] = turn[:n]
    if n and total < view.devices:
        granted[rows] = _raised(view, ladder, own, lo, rows, view.devices - total)
    return granted


def _raised(
    view: View, ladder: Ladder | None, own: Callable[[Ints], Ladder], lo: Ints, rows: Any, free: int
) -> Ints:
    """What these rows have when they have climbed from `lo`."""
    least, hi, owner = lo[rows], view.jobs.hi[rows], view.jobs.cls[rows]
    odd: Ints | None = None
    if ladder is not None:
        differs = (least != ladder.first[owner]) | (hi < ladder.last[owner])
        if np.count_nonzero(differs):
            odd = differs.nonzero()[0]
            if not _on_rungs(ladder, owner[odd], least[odd], hi[odd]):
                ladder = None
    if ladder is None:
        ladder, owner, odd = own(lo), np.arange(view.jobs.n)[rows], None
    return _rise(ladder, owner, least, hi, odd, free)


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
    rows = rows[fit_skipping(more[rows], free)]
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

"""Every step up that jobs can take, sorted once by worth, so that sharing is a search for a level.

Sharing devices one by one from a heap costs a heap operation for each device. But jobs of one
class take the same steps at the same worth, so the steps of all classes can be sorted beforehand;
with the number of jobs of each class at hand, one cumulative sum says how far all of them can go.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bough.core.policy import Classes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Two worths that differ by less than this (relatively) differ by rounding only.
ROUNDING_BITS = 36


class Ladder:
    """Rungs (sizes) of each owner, and all steps between them, the worthiest first.

    An owner is a class of jobs, or a single job; its step r leads from rung r to rung r + 1.
    Steps of equal worth to equal sizes make up a level: they are taken together or, where the
    devices do not suffice, in the order of the jobs.
    """

    __slots__ = (
        "cell", "cost", "ends", "first", "last", "lead", "least", "level", "of", "owners",
        "reached", "rungs", "single", "spare", "steps", "tops",
    )  # fmt: skip

    def __init__(self, rungs: Ints, worth: Floats, spare: bool) -> None:
        #: (owners x rungs) ascending; padded by repeating the first and the last.
        self.rungs = np.ascontiguousarray(rungs)
        self.owners = len(rungs)
        self.first: Ints = np.ascontiguousarray(rungs[:, 0])
        self.last: Ints = np.ascontiguousarray(rungs[:, -1])
        #: How often the first is repeated.
        self.lead: Ints = (rungs == self.first[:, None]).sum(axis=1) - 1
        self.lead[self.first == self.last] = 0
        #: Whether some owner has useful sizes that are no rungs.
        self.spare = spare
        cost = np.diff(rungs, axis=1)
        owner, step = np.nonzero(cost)
        after, value = rungs[owner, step + 1], worth[owner, step]
        by_worth = np.lexsort((owner, after, -value))
        #: Step k lifts its owner `of[k]` by `cost[k]` devices; `cell[k]` is its place in `rungs`.
        self.of: Ints = owner[by_worth]
        self.cost: Ints = cost[owner, step][by_worth]
        self.cell: Ints = (owner * rungs.shape[1] + step)[by_worth]
        self._divide(after[by_worth], value[by_worth])
        #: The same for compiled code: owner, cost, rung below and level of each step.
        self.steps: Ints = np.array([self.of, self.cost, step[by_worth], self.level], np.int64)
        self.reached: dict[int, Ints] = {0: self.first}

    def _divide(self, after: Ints, value: Floats) -> None:
        """Divide the steps into levels."""
        count = len(after)
        change = (np.diff(after) != 0) | (np.diff(value) != 0)
        ends = np.append(np.flatnonzero(change) + 1, count)[:count]
        #: Steps of all levels up to each one; the level of each step.
        self.ends: list[int] = ends.tolist()
        self.level: list[int] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0)).tolist()
        #: Last step of each level; None when every step is a level.
        self.tops: Ints | None = None if len(ends) == count else ends - 1
        begins = np.append(0, ends)[:-1]
        low = np.minimum.reduceat(self.cost, begins) if count else ends
        high = np.maximum.reduceat(self.cost, begins) if count else ends
        #: Cost of a step of each level if that is the same for all owners, else 0.
        self.single: list[int] = np.where(low == high, low, 0).tolist()
        #: Cheapest step from each level on; beyond the last, more than any number of devices.
        cheapest = np.minimum.accumulate(low[::-1])[::-1]
        self.least: list[int] = [*cheapest.tolist(), 2**62]

    def reach(self, level: int) -> Ints:
        """The size of each owner once every step below this level has been taken."""
        found = self.reached.get(level)
        if found is None:
            taken = np.bincount(self.of[: self.ends[level - 1]], minlength=self.owners)
            found = self.rungs[np.arange(self.owners), self.lead + taken]
            if len(self.reached) * self.owners < 1_000_000:
                self.reached[level] = found
        return found


def even(sizes: Ints, lo: Ints, hi: Ints, weight: Floats | None = None) -> Ladder:
    """The ladder on which the smaller size (for its weight) goes first: max-min fairness."""
    fits = (sizes <= hi[:, None]).sum(axis=1) - 1
    top = np.maximum(sizes[np.arange(len(sizes)), fits], lo)
    rungs = np.clip(sizes, lo[:, None], top[:, None])
    worth = -rungs[:, 1:].astype(np.float64)
    if weight is not None:
        worth /= weight[:, None]
    return Ladder(rungs, worth, spare=False)


def steepest(
    sizes: Ints, speed: Floats, lo: Ints, hi: Ints, weight: Floats | None = None
) -> Ladder:
    """The ladder on which the greater gain for each device goes first.

    Its rungs are the sizes on the upper concave envelope of the speeds between lo and hi, up to
    the peak: on it, taking the steepest step first is optimal.
    """
    owners, width = sizes.shape
    every = np.arange(owners)
    allowed = (sizes >= lo[:, None]) & (sizes <= hi[:, None])
    at = allowed.argmax(axis=1)
    rungs = np.repeat(sizes[every, at][:, None], width, axis=1)
    worth = np.zeros((owners, width - 1))
    for r in range(1, width):
        more = sizes - sizes[every, at][:, None]
        gain = speed - speed[every, at][:, None]
        slope = np.where(allowed & (more > 0), gain / np.maximum(more, 1), -np.inf)
        best = slope.max(axis=1)
        # The nearest of the steepest, so that sizes on a straight line are rungs too.
        then = (slope >= (best * (1 - 2.0**-ROUNDING_BITS))[:, None]).argmax(axis=1)
        up = best > 0
        if not up.any():
            break
        at = np.where(up, then, at)
        rungs[:, r:] = sizes[every, at][:, None]
        worth[:, r - 1] = np.where(up, best, 0.0)
    if weight is not None:
        worth *= weight[:, None]
    worth = np.minimum.accumulate(_rounded(worth), axis=1)
    faster = speed[:, 1:] > np.maximum.accumulate(np.where(allowed, speed, 0.0), axis=1)[:, :-1]
    useful = (faster & allowed[:, 1:] & (sizes[:, 1:] > lo[:, None])).sum(axis=1)
    spare = bool((useful > (np.diff(rungs, axis=1) > 0).sum(axis=1)).any())
    return Ladder(rungs, worth, spare)


def peaks(classes: Classes) -> Ints:
    """The smallest size at which jobs of each class are fastest."""
    found: Ints = classes.sizes[np.arange(classes.count), classes.speed.argmax(axis=1)]
    return found


def even_ladder(classes: Classes) -> Ladder:
    """The even ladder of these classes, up to the peak of each."""
    made: Ladder | None = classes.cache.get("even ladder")
    if made is None:
        lo = _least(classes)
        made = even(classes.sizes, lo, np.maximum(peaks(classes), lo))
        classes.cache["even ladder"] = made
    return made


def steepest_ladder(classes: Classes) -> Ladder:
    """The steepest ladder of these classes."""
    made: Ladder | None = classes.cache.get("steepest ladder")
    if made is None:
        made = steepest(classes.sizes, classes.speed, _least(classes), classes.sizes[:, -1])
        classes.cache["steepest ladder"] = made
    return made


def _least(classes: Classes) -> Ints:
    """The smallest size of each class."""
    found: Ints = classes.sizes[:, min(1, classes.sizes.shape[1] - 1)]
    return found


def _rounded(worth: Floats) -> Floats:
    """Worths that differ by rounding only made equal, so that they share a level."""
    mantissa, exponent = np.frexp(worth)
    found: Floats = np.ldexp(np.round(np.ldexp(mantissa, ROUNDING_BITS)), exponent - ROUNDING_BITS)
    return found

"""Promises first, then equal shares: what a daemon decides by unless it is told otherwise."""

from __future__ import annotations

import numpy as np

from bough.core.model import INFINITY
from bough.core.policy import Ints, Plan, Policy, View
from bough.core.share import fill_in_order, in_order, peaks, stable_order, water_fill

#: A need this close to changing has changed: clocks and products of times are rounded.
SLACK_SECONDS = 1e-6


class Fair(Policy, frozen=True):
    """Guaranteed jobs get what their deadlines need, the most urgent first; others share evenly.

    Citation: C. L. Liu and J. W. Layland, Journal of the ACM 20 (1973), for the order of
    deadlines; Gu et al., "ElasticFlow", ASPLOS '23, section 4.1, for the least size that keeps
    one; Bertsekas and Gallager, "Data Networks" (1987), section 6.5, for the fill.
    Faithful: each guaranteed job has at least the fewest devices with which it is done in time,
    by its believed speed; what is left is evened out among all.
    Ours: one that cannot be done in time any more gets what makes it fastest; one whose work is
    unknown, its least. A guaranteed job that finds no room holds nobody back, nor does one that
    needs more than all there is to share now: other jobs wait their turn at the head of the line.
    """

    content_with = "peak"

    #: Part of the time left that is kept in reserve: speeds are only believed.
    margin: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise ValueError(f"margin {self.margin} must be 0 or more and less than 1")

    def plan(self, view: View) -> Plan | Ints:
        jobs = view.jobs
        # A queue may have less than one of its jobs needs, for as long as others want theirs.
        able = jobs.lo <= view.devices
        if able.all() and not jobs.guaranteed.any():
            return water_fill(view)
        standing = in_order(view)
        standing = standing[able[standing]]
        promised = standing[jobs.guaranteed[standing] == 1]
        promised = promised[stable_order(jobs.deadline[promised])]
        needed = np.zeros(jobs.n, np.int64)
        needed[promised] = self._needed(view, promised)
        granted = fill_in_order(view, promised, needed)
        first = standing[granted[standing] > 0]
        rest = standing[(granted[standing] == 0) & (jobs.guaranteed[standing] == 0)]
        least = np.where(granted > 0, granted, jobs.lo)
        sizes = water_fill(view, order=np.concatenate([first, rest]), least=least)
        return Plan(sizes, wake_at=self._next_change(view, promised))

    def _needed(self, view: View, rows: Ints) -> Ints:
        """The fewest devices with which each is done in time; if there are none, its best."""
        jobs, classes = view.jobs, view.classes
        cls, lo, hi = jobs.cls[rows], jobs.lo[rows], jobs.hi[rows]
        left, seconds = jobs.left()[rows], (jobs.deadline[rows] - view.now) * (1.0 - self.margin)
        known = left < INFINITY
        speed = np.where(known & (seconds <= 0), INFINITY, 0.0)
        np.divide(left, seconds, out=speed, where=known & (seconds > 0))
        able = (classes.speed[cls] >= speed[:, None]) & (classes.sizes[cls] >= lo[:, None])
        fewest = classes.sizes[cls, able.argmax(axis=1)]
        best = np.maximum(peaks(classes)[cls], lo)
        needed: Ints = np.minimum(np.where(able.any(axis=1), fewest, best), hi)
        return needed

    def _next_change(self, view: View, rows: Ints) -> float:
        """When one of them will need more devices, or fewer.

        What it needs is its work left over its time left; both fall evenly until something else
        happens, so it crosses each of its speeds at a moment that can be told.
        """
        jobs = view.jobs
        rows = rows[(jobs.deadline[rows] < INFINITY) & (jobs.left()[rows] < INFINITY)]
        reserve = (1.0 - self.margin) * view.classes.speed[jobs.cls[rows]]
        slope = reserve - jobs.rate[rows][:, None]
        seconds = (jobs.deadline[rows] - view.now)[:, None]
        ahead = np.full(slope.shape, INFINITY)
        np.divide(
            reserve * seconds - jobs.left()[rows][:, None], slope, out=ahead, where=slope != 0
        )
        ahead = np.where(ahead < seconds, ahead, seconds)
        return view.now + SLACK_SECONDS + float(ahead[ahead > 0].min(initial=INFINITY))

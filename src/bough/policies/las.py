"""Least attained service: short jobs finish soon although nobody knows which they are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bough.core.model import INFINITY
from bough.core.policy import Plan, Policy, View
from bough.core.share import in_order

#: A job this close to a limit is over it: clocks and products of times are rounded.
SLACK_SECONDS = 1e-6


class Las(Policy, frozen=True):
    """Jobs that have used few device-seconds go first: Tiresias without knowledge of run times.

    Citation: Gu et al., "Tiresias: a GPU cluster manager for distributed deep learning",
    NSDI '19, section 4.1 (discretised two-dimensional LAS).
    Faithful: queues by device-seconds used; within a queue first come, first served; gangs at
    their wished size; preemptive; jobs that do not fit are passed over.
    Ours: demotion happens at the moment the limit is reached, not at the next round.
    """

    #: A job falls to the next queue on having used so many device-seconds (Muri: 3250, 7200).
    limits: tuple[float, ...] = (3250.0,)

    def __post_init__(self) -> None:
        if list(self.limits) != sorted(set(self.limits)) or any(not x > 0 for x in self.limits):
            raise ValueError(f"limits {list(self.limits)} must be positive and ascending")
        if len(self.limits) > 255:
            raise ValueError("there may be 255 limits at most")

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        size = jobs.size
        used = jobs.attained() + size * SLACK_SECONDS
        level = np.zeros(jobs.n, np.uint8)
        for limit in self.limits:
            level += used >= limit
        wished = np.maximum(np.minimum(jobs.wish, jobs.hi), jobs.lo)
        return Plan(wished, order=in_order(view, level), wake_at=self._next_fall(view, used, level))

    def _next_fall(
        self, view: View, used: npt.NDArray[np.float64], level: npt.NDArray[np.uint8]
    ) -> float:
        """When the first of the running jobs reaches its next limit."""
        running = view.jobs.size.nonzero()[0]
        limit = np.array((*self.limits, INFINITY))[level[running]]
        seconds = (limit - used[running]) / view.jobs.size[running]
        return view.now + float(seconds.min(initial=INFINITY)) + SLACK_SECONDS

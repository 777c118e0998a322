"""Least attained service: short jobs finish soon although nobody knows which they are."""

from __future__ import annotations

import numpy as np

from bough.core.model import INFINITY
from bough.core.policy import Plan, Policy, View
from bough.core.share import in_order, wished

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
        if not self.limits:
            raise ValueError("limits: at least one is needed")
        if list(self.limits) != sorted(set(self.limits)) or any(not x > 0 for x in self.limits):
            raise ValueError(f"limits {list(self.limits)} must be positive and ascending")
        if len(self.limits) > 255:
            raise ValueError("there may be 255 limits at most")

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        size = jobs.size
        used = size * (view.now - jobs.since + SLACK_SECONDS) + jobs.attained_until
        level = (used >= self.limits[0]).view(np.uint8)
        for limit in self.limits[1:]:
            level += used >= limit
        # The next fall of a running job is the only thing that time alone changes.
        wake_at = INFINITY
        soon = ((size > 0) & (level < len(self.limits))).nonzero()[0]
        if len(soon):
            ahead = np.array(self.limits)[level[soon]] - used[soon]
            wake_at = view.now + SLACK_SECONDS + float((ahead / size[soon]).min())
        return Plan(wished(jobs), order=in_order(view, level), wake_at=wake_at)

"""Least attained service: short jobs finish soon although nobody knows which they are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bough.core.jobs import Jobs
from bough.core.model import INFINITY
from bough.core.order import stable_order
from bough.core.policy import Bools, Ints, Plan, Policy, View
from bough.core.share import in_order, wished

#: A job this close to a limit is over it: clocks and products of times are rounded.
SLACK_SECONDS = 1e-6


class Las(Policy, frozen=True):
    """Jobs that have used few device-seconds go first: Tiresias without knowledge of run times.

    Citation: Gu et al., "Tiresias: a GPU cluster manager for distributed deep learning",
    NSDI '19, section 4.1 (discretised two-dimensional LAS).
    Faithful: queues by device-seconds used; within a queue by start time, so that jobs of one
    queue do not preempt each other; gangs at their wished size; jobs that do not fit are passed
    over.
    Ours: demotion happens at the moment the limit is reached, not at the next round. Those of a
    queue that wait go in order of their last start, then of submission. Promotion goes by all
    of a job's waiting and running, and ends when half as much waiting would have been enough.
    """

    content_with = "wish"

    #: A job falls to the next queue on having used so many device-seconds (Muri: 3250, 7200).
    limits: tuple[float, ...] = (3250.0,)
    #: A job is back in the first queue when it has waited so many times as long as it has run.
    promote: float = INFINITY

    def __post_init__(self) -> None:
        ascending = all(a < b for a, b in pairwise(self.limits))
        if not ascending or not all(limit > 0 for limit in self.limits):
            raise ValueError(f"limits {list(self.limits)} must be positive and ascending")
        if not 1 <= len(self.limits) <= 100:
            raise ValueError("there must be 1 to 100 limits")
        if not self.promote > 0:
            raise ValueError("promote must be positive")

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        size = jobs.size
        used = size * (view.now - jobs.since + SLACK_SECONDS) + jobs.attained_until
        level = (used >= self.limits[0]).view(np.uint8)
        for limit in self.limits[1:]:
            level += used >= limit
        # The next fall of a running job is the only thing that time alone changes.
        seconds = INFINITY
        soon = ((size > 0) & (level < len(self.limits))).nonzero()[0]
        if len(soon):
            ahead = np.array(self.limits)[level[soon]] - used[soon]
            seconds = SLACK_SECONDS + float((ahead / size[soon]).min())
        if self.promote < INFINITY:
            promoted, change = self._promoted(view, size > 0)
            level[promoted] = 0
            seconds = min(seconds, change)
        place = 2 * level + (size == 0)
        order = in_order(view, place, base=_by_start(jobs))
        return Plan(wished(jobs), order=order, wake_at=view.now + seconds)

    def _promoted(self, view: View, runs: Bools) -> tuple[Bools, float]:
        """Who has waited too long, and in how many seconds that changes for somebody."""
        jobs = view.jobs
        ran = jobs.ran()
        waited = np.maximum(view.now - jobs.submitted - ran, 0.0)
        enough = np.where(runs, self.promote / 2, self.promote) * ran
        promoted: Bools = waited + SLACK_SECONDS >= enough
        falls = (2 / self.promote * waited - ran)[promoted & runs]
        rises = (enough - waited)[~promoted & ~runs]
        change = min(falls.min(initial=INFINITY), rises.min(initial=INFINITY))
        return promoted, max(float(change), 0.0) + SLACK_SECONDS


def _by_start(jobs: Jobs) -> Ints:
    """Rows by when they last started, then those that never did."""
    never = np.isnan(jobs.run_since)
    started = (~never).nonzero()[0]
    first = started[stable_order(jobs.run_since[started])]
    return np.concatenate([first, never.nonzero()[0]])

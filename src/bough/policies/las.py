"""Least attained service: short jobs finish soon although nobody knows which they are."""

from __future__ import annotations

from bough.core.attained import by_start, check_limits, queue_places
from bough.core.model import INFINITY
from bough.core.policy import Plan, Policy, View
from bough.core.share import in_order, wished


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
        check_limits(self.limits, self.promote)

    def plan(self, view: View) -> Plan:
        place, seconds = queue_places(view, self.limits, self.promote)
        order = in_order(view, place, base=by_start(view.jobs))
        return Plan(wished(view.jobs), order=order, wake_at=view.now + seconds)

"""Tiresias: queues by service attained, and in a queue by what that service foretells."""

from __future__ import annotations

from typing import Literal

from bough.core.attained import by_start, check_limits, gittins, queue_places
from bough.core.model import INFINITY
from bough.core.policy import Plan, Policy, View
from bough.core.share import in_order, wished


class Tiresias(Policy, frozen=True):
    """Least service first; with the Gittins index, who will probably end soonest for it.

    Citation: Gu et al., "Tiresias: a GPU cluster manager for distributed deep learning",
    NSDI '19, section 4.1 (discretised two-dimensional Gittins index and LAS).
    Faithful: queues by device-seconds used; within a queue by Gittins index, from the
    distribution of device-seconds of jobs that ended, or by start time (`rule="las"`, which is
    the policy `las`); gangs at their wished size; jobs that do not fit are passed over; jobs that
    wait too long are promoted, if wanted.
    Ours: the index is the best over all amounts of further service, not over one quantum, and is
    looked at when jobs come, end or fall; the distribution is that of the last 512 jobs that
    ended, and before the first one start times decide. Where a job goes is left to the core,
    without profiling the skew of its tensors.
    """

    content_with = "wish"
    learns = True

    #: What decides within a queue.
    rule: Literal["gittins", "las"] = "gittins"
    #: A job falls to the next queue on having used so many device-seconds.
    limits: tuple[float, ...] = (3250.0,)
    #: A job is back in the first queue when it has waited so many times as long as it has run.
    promote: float = INFINITY

    def __post_init__(self) -> None:
        check_limits(self.limits, self.promote)

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        place, seconds = queue_places(view, self.limits, self.promote)
        wake_at, base = view.now + seconds, by_start(jobs)
        if self.rule == "las" or not len(view.history):
            order = in_order(view, place, base=base)
        else:
            index = gittins(view.history, jobs.attained())
            order = in_order(view, place // 2, -index, place, base=base)
        return Plan(wished(jobs), order=order, wake_at=wake_at)

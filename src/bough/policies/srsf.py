"""Shortest remaining service first: remaining time, weighed by the devices it takes."""

from __future__ import annotations

from bough.core.policy import Plan, Policy, View
from bough.core.share import in_order, wished


class Srsf(Policy, frozen=True):
    """Jobs with the fewest device-seconds left go first and preempt others.

    Citation: Gu et al., "Tiresias: a GPU cluster manager for distributed deep learning",
    NSDI '19, section 3, where it is the two-dimensional rule for known run times.
    Faithful: preemptive, by estimated time left times devices wished; jobs that do not fit are
    passed over, as in the simulators of Tiresias and Muri (SIGCOMM '22).
    Ours: jobs without an estimate come last, in order of submission.
    """

    content_with = "wish"

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        return Plan(wished(jobs), order=in_order(view, jobs.seconds_left() * jobs.wish))

"""Shortest remaining time first: best mean completion time when run times are known."""

from __future__ import annotations

from bough.core.policy import Plan, Policy, View
from bough.core.share import in_order, wished


class Srtf(Policy, frozen=True):
    """Jobs with the least run time left go first and preempt others.

    Citation: L. Schrage, "A proof of the optimality of the shortest remaining processing time
    discipline", Operations Research 16 (1968), for one machine.
    Faithful: preemptive, by estimated time left at the size wished; jobs that do not fit are
    passed over, as in the simulators of Tiresias (NSDI '19) and Muri (SIGCOMM '22).
    Ours: jobs without an estimate come last, in order of submission.
    """

    content_with = "wish"

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        return Plan(wished(jobs), order=in_order(view, jobs.seconds_left()))

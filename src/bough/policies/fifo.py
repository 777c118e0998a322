"""First in, first out: the oldest rule, and the baseline of every other."""

from __future__ import annotations

from bough.core.policy import Plan, Policy, View
from bough.core.share import in_order, wished


class Fifo(Policy, frozen=True):
    """Jobs start in order of submission and run to their end.

    Citation: none; the default of YARN's capacity scheduler and of Slurm without backfill.
    Faithful: the first job that cannot start holds back all behind it; nothing is preempted.
    Ours: jobs of higher priority wait in front.
    """

    content_with = "wish"

    #: Pass over jobs that cannot start, instead of holding back all behind them.
    skip: bool = False

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        order = in_order(view, jobs.size == 0)
        return Plan(wished(jobs, keep=True), order=order, skip=self.skip)

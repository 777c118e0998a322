"""Earliest deadline first: on one machine, it keeps every deadline that can be kept at all."""

from __future__ import annotations

from bough.core.model import JobSpec
from bough.core.policy import ACCEPTED, Plan, Policy, Verdict, View
from bough.core.promises import judged_in_turn
from bough.core.share import fill_in_order, in_order, peaks, stable_order


class Edf(Policy, frozen=True):
    """Jobs in order of deadline; each takes the devices that make it fastest, if they are free.

    Citation: C. L. Liu and J. W. Layland, "Scheduling algorithms for multiprogramming in a
    hard-real-time environment", Journal of the ACM 20 (1973); as the baseline of ElasticFlow,
    Gu et al., ASPLOS '23, section 6.1.
    Faithful: an elastic job is given as many devices as it can use without slowing down, or as
    many of those as are free; nobody is refused; jobs without a deadline come last. `admission`
    is the ablation of ElasticFlow's section 6.4 (also called `edf+admission`): a guaranteed job is
    refused if then some deadline would not be kept in this order.
    Ours: `greedy` repeats what ElasticFlow's released baseline does instead.
    """

    #: Give each job every free device up to its largest size, even where that slows it down.
    greedy: bool = False
    #: Refuse a guaranteed job if it, or one that was promised before, would then be late.
    admission: bool = False

    def admit(self, view: View, job: JobSpec) -> Verdict:
        if not self.admission or job.service != "guaranteed":
            return ACCEPTED
        return judged_in_turn(view, greedy=self.greedy)

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        urgent = in_order(view)
        order = urgent[stable_order(jobs.deadline[urgent])]
        most = None if self.greedy else peaks(view.classes)[jobs.cls]
        return Plan(fill_in_order(view, order, most), order=order)

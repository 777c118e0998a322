"""Quasi-shortest service first: run times are foretold from jobs of the same model and user."""

from __future__ import annotations

from typing import Literal

from bough.core.policy import Floats, Plan, Policy, View
from bough.core.share import in_order, wished


class Qssf(Policy, frozen=True):
    """Waiting jobs go by the device time that jobs like them needed; nothing is preempted.

    Citation: Hu et al., "Characterization and prediction of deep learning workloads in
    large-scale GPU datacenters" (Helios), SC '21, section 4.2; the same predictor drives Lucid
    (ASPLOS '23).
    Faithful: the key is predicted run time times devices; predictions come from jobs that have
    ended, those of the same user and kind weighing most; running jobs are kept.
    Ours: the prediction is a median by model and user that shrinks towards what is known of
    either alone, in the place of a rolling mean by name and boosted trees. Lucid's packing
    and profiling are left out.
    """

    content_with = "wish"
    learns = True

    #: Where run times come from: jobs that ended, or what users say.
    estimates: Literal["history", "given"] = "history"
    #: Pass over jobs that cannot start, instead of holding back all behind them.
    skip: bool = False

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        order = in_order(view, jobs.size == 0, self._service(view))
        return Plan(wished(jobs, keep=True), order=order, skip=self.skip)

    def _service(self, view: View) -> Floats:
        """Device-seconds expected of each job."""
        jobs = view.jobs
        if self.estimates == "given":
            return jobs.left_or_guess() / jobs.wish_speed * jobs.wish
        service: Floats = jobs.guess / jobs.wish_speed * jobs.wish
        return service

"""Gandiva: jobs take turns on the devices when there are too few, and grow when there are more."""

from __future__ import annotations

import numpy as np

from bough.core.model import INFINITY
from bough.core.policy import Bools, Floats, Ints, Plan, Policy, View
from bough.core.share import fit_in_order, in_order, peaks, water_fill
from bough.core.slices import turn, turn_after, turns


class Gandiva(Policy, frozen=True):
    """Time slices in turn when jobs wait, growth onto idle devices when none does.

    Citation: Xiao et al., "Gandiva: introspective cluster scheduling for deep learning",
    OSDI '18, section 3.
    Faithful: under overload jobs are suspended and resumed in turn, a time slice each; who comes
    is let in as soon as some job has had its slice; with idle devices elastic jobs
    grow, and they shrink again for who comes. Who began in this slice keeps its devices.
    Ours: who has waited longest is next; slices of all jobs begin together, so that a large gang
    at the head of the line finds room. Elastic jobs take part at their least size, and what is
    left is shared evenly. Moving jobs for the sake of locality is left to the core.
    Left out: packing several jobs on one device, with its profiling and its undoing: devices
    are held by one job at a time here.
    """

    content_with = "peak"

    #: How long a slice lasts.
    slice_seconds: float = 60.0

    def __post_init__(self) -> None:
        if not self.slice_seconds > 0:
            raise ValueError("slice_seconds must be positive")

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        order = in_order(view, *self._turns(view))
        chosen = fit_in_order(jobs.lo, view.devices, order, skip=True)
        rows = order[chosen[order] > 0]
        most = np.maximum(np.minimum(peaks(view.classes)[jobs.cls], jobs.hi), jobs.lo)
        sizes: Ints = water_fill(view, order=rows) if (jobs.lo < most).any() else chosen
        waits = len(rows) < jobs.n
        again = turn_after(jobs, sizes, view.now, self.slice_seconds)
        return Plan(sizes, wake_at=again if waits else INFINITY)

    def _turns(self, view: View) -> tuple[Floats, Bools, Floats]:
        """Less goes first: this slice's beginners, then by the slice each was last served in.

        Who never ran goes before those served last. Of those that were served in this slice, who
        runs goes on, and of those, who has run least.
        """
        jobs, seconds = view.jobs, self.slice_seconds
        present = turn(view.now, seconds)
        runs = jobs.size > 0
        waits = turns(jobs.since, seconds) - np.isnan(jobs.begun)
        began = runs & (turns(jobs.run_since, seconds) == present)
        served = np.where(began, -INFINITY, np.where(runs, float(present), waits))
        return served, ~runs, jobs.ran()

"""Optimus: each device goes where it shortens the time left most."""

from __future__ import annotations

import numpy as np

from bough.core.model import INFINITY
from bough.core.policy import Floats, Plan, Policy, View
from bough.core.share import marginal_fill, peaks
from bough.core.slices import turn_after


class Optimus(Policy, frozen=True):
    """Every job starts with its least; more devices go where they save the most time each.

    Citation: Peng et al., "Optimus: an efficient dynamic resource scheduler for deep learning
    clusters", EuroSys '18, section 4.1.
    Faithful: leasts in order of submission while they fit; then greedily by the seconds of time
    left that a step saves per device; steps that save nothing are not taken; everything is
    decided anew at each interval, and jobs at their least are not kept from growing by what
    they had before.
    Ours: work left is what the job reports or its estimate, else what jobs of its model and user
    needed, where Optimus fits its loss curve; parameter servers and workers are sized together,
    as one gang; steps are those of the concave envelope of the time saved, so that a poor size
    does not hide a good one behind it. Decided at arrivals and ends as well. The released code's
    check of free GPUs against the bandwidth is not repeated.
    """

    content_with = "peak"

    #: Seconds between decisions without arrivals and ends.
    interval_seconds: float = 600.0

    def __post_init__(self) -> None:
        if not self.interval_seconds > 0:
            raise ValueError("interval_seconds must be positive")

    def plan(self, view: View) -> Plan:
        jobs, classes = view.jobs, view.classes
        sizes = marginal_fill(view, gain=_saved(classes.speed), weights=jobs.left_or_guess())
        most = np.maximum(np.minimum(peaks(classes)[jobs.cls], jobs.hi), jobs.lo)
        wants = bool((sizes < most).any())
        again = turn_after(jobs, sizes, view.now, self.interval_seconds)
        return Plan(sizes, wake_at=again if wants else INFINITY)


def _saved(speed: Floats) -> Floats:
    """Seconds that each size saves a unit of work, against the smallest."""
    seconds = np.full_like(speed, 0.0)
    np.divide(1.0, speed, out=seconds, where=speed > 0)
    first = seconds[:, min(1, seconds.shape[1] - 1)]
    saved: Floats = first[:, None] - seconds
    saved[:, 0] = 0.0
    return saved

"""Max-min fairness: devices are evened out among jobs, step by step, as far as they reach."""

from __future__ import annotations

from bough.core.policy import Ints, Policy, View
from bough.core.share import water_fill


class MaxMin(Policy, frozen=True):
    """Every job gets as many devices as every other, up to what it can use.

    Citation: Bertsekas and Gallager, "Data Networks" (1987), section 6.5, for the fill; as a
    policy for training jobs e.g. in Gavel (OSDI '20) and AFS (NSDI '21) as a baseline.
    Faithful: nobody can be given more without taking from one who has no more.
    Ours: sizes are those a job allows; leasts are granted in order of submission, and what is
    left over goes to the first who can take a next step with it; nobody passes the peak of
    their speed.
    """

    content_with = "peak"

    #: Even out devices per unit of the jobs' weights instead of devices.
    weighted: bool = False

    def plan(self, view: View) -> Ints:
        return water_fill(view, view.jobs.weight if self.weighted else None)

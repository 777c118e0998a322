"""Greatest marginal gain first: the cluster as a whole does the most work per second."""

from __future__ import annotations

from bough.core.policy import Ints, Policy, View
from bough.core.share import marginal_fill


class Greedy(Policy, frozen=True):
    """Every job gets its least, then each device goes where it adds most speed.

    Citation: Peng et al., "Optimus: an efficient dynamic resource scheduler for deep learning
    clusters", EuroSys '18, section 4.1, for marginal gain as the rule; A. Federgruen and
    H. Groenevelt, Operations Research 34 (1986), for when it is optimal.
    Faithful: leasts in order of submission, then steps in order of gain per device.
    Ours: the gain is believed speed, not remaining time; steps are those of the concave envelope
    of a job's speeds, so that a poor size does not hide a good one behind it.
    """

    content_with = "peak"

    #: Multiply a job's gain by its weight.
    weighted: bool = False

    def plan(self, view: View) -> Ints:
        return marginal_fill(view, weights=view.jobs.weight if self.weighted else None)

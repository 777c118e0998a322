"""Shockwave: the next rounds are shared out at once, for progress, fairness and an early end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bough.core.model import INFINITY
from bough.core.policy import Floats, Ints, Plan, Policy, View
from bough.core.share import fit_in_order, in_order, wished
from bough.core.slices import opens, turn_after
from bough.core.window import Window, share_window

#: The logarithm of the greatest weight: powers of large ratios overflow.
HEAVIEST = 30.0
#: The power for jobs that need no more than a round: it is cheap to let them end.
LAST_ROUND = 100.0


class Shockwave(Policy, frozen=True):
    """A market for the rounds to come: the product of all progress, and no straggler at the end.

    Citation: Zheng et al., "Shockwave: fair and efficient cluster scheduling for dynamic
    adaptation in machine learning", NSDI '23, sections 5 and 6, and its released simulator.
    Faithful: the rounds of a window are shared out so that the sum of the logarithms of all
    progress, minus a price of what is left of the longest job, is greatest; each job shall end
    no later than with an equal part of the cluster, and where that cannot be had for all, who
    would end latest counts most (ratio to the power `power`); idle devices go to the longest
    jobs; the logarithm is made of straight lines.
    Ours: how many rounds each job gets is found without an integer program (core/window.py), so
    that no solver is needed, and decided anew each round; those who must have all rounds, who
    run and who count most go first. Ends are compared by the time since submission, not by the
    clock; how small the equal part was since then is told by the jobs that are still there.
    What dynamic batch sizes do to the speeds to come, which the published system foretells, is
    not: believed speeds are the present ones, corrected by what jobs report.
    """

    content_with = "wish"

    #: Devices are handed out anew at multiples of this.
    round_seconds: float = 120.0
    #: Rounds that are shared out at once.
    window_rounds: int = 20
    #: What a second that the longest job still needs after the window costs.
    makespan_weight: float = 1e-3
    #: How much more those count that would end too late.
    power: float = 12.0
    #: How late that is, in times of what an equal part would give.
    latest: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.round_seconds < INFINITY:
            raise ValueError("round_seconds must be positive and finite")
        if not 1 <= self.window_rounds <= 1000:
            raise ValueError("window_rounds must be from 1 to 1000")
        if not (self.makespan_weight >= 0 and self.power >= 0 and self.latest > 0):
            raise ValueError("makespan_weight and power must be 0 or more, latest positive")

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        size = wished(jobs)
        keeps = (jobs.size > 0) & (not opens(view.now, self.round_seconds))
        rounds = np.zeros(jobs.n, np.int64)
        gain = np.zeros(jobs.n)
        seconds = np.maximum(jobs.left_or_guess(), 1e-6) / jobs.wish_speed
        if not keeps.all() and int(size.sum()) > view.devices:
            window, least = self._window(view, seconds)
            gain = window.first_gain()
            price = self.makespan_weight * self.round_seconds * jobs.n * self.window_rounds
            rounds = share_window(window, least, price)
        waits, needs_all = jobs.size == 0, rounds < self.window_rounds
        order = in_order(view, ~keeps, rounds == 0, needs_all, waits, -gain, -seconds)
        granted = fit_in_order(size, view.devices, order, skip=True)
        left_out = bool((granted == 0).any())
        again = turn_after(jobs, granted, view.now, self.round_seconds)
        wake_at = again if left_out else INFINITY
        return Plan(size, order=order, wake_at=wake_at)

    def _window(self, view: View, seconds: Floats) -> tuple[Window, Ints]:
        """The market, and the rounds that each must have to end in time."""
        jobs, every = view.jobs, self.round_seconds
        total = seconds + jobs.done() / jobs.wish_speed
        age = np.maximum(view.now - jobs.submitted, 0.0)
        part = min(1.0, max(view.devices, 1) / max(jobs.n, 1))
        target = total * slowdowns(view, age)
        window = Window(
            self.window_rounds, view.devices, wished(jobs), 1.0 - seconds / total,
            seconds / every, every / total, np.ones(jobs.n),
        )  # fmt: skip
        spare = part * (self.latest * target - age - every * self.window_rounds)
        least = window.least(0.0)
        needed = np.ceil((seconds - spare) / every - 1e-9)
        least = np.minimum(least, np.maximum(needed, 0.0).astype(np.int64))
        if window.holds(least):
            return window, least
        ratio = (age + seconds / part) / target
        power = np.where(seconds < every, LAST_ROUND, self.power)
        grows = np.where(ratio > self.latest, np.log(np.maximum(ratio, 1.0)) * power, 0.0)
        weight = np.exp(np.minimum(grows, HEAVIEST))
        return replace(window, weight=weight), np.zeros(jobs.n, np.int64)


def slowdowns(view: View, age: Floats) -> Floats:
    """How much longer each takes on an equal part: the mean since it came, by who is there."""
    crowd = np.maximum(np.arange(1, view.jobs.n + 1) / max(view.devices, 1), 1.0)
    came = np.minimum(view.jobs.submitted, view.now)
    until = np.append(came[1:], view.now)
    later = (crowd * (until - came))[::-1].cumsum()[::-1]
    found: Floats = np.where(age > 0, later / np.maximum(age, 1e-9), crowd[-1:])
    return found

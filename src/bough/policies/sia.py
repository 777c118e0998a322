"""Goodput on devices of several kinds: one size and kind for each job, by an integer program."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bough.core.choices import (
    Choices,
    as_matrix,
    choices,
    choose,
    nothing_to_gain,
    restart_factor,
    where_else,
)
from bough.core.knapsack import knapsack_relaxed, knapsack_solved
from bough.core.model import INFINITY
from bough.core.policy import Floats, Ints, Plan, Policy, View
from bough.core.programs import require

#: The least a choice is worth, so that nobody is left waiting beside idle devices.
LEAST = 1e-3
#: The present choice is worth more by this part, so that nobody moves between equal ones.
STAYS = 0.005
#: A moment so close to a round (as a part of it) is the round.
ROUNDING = 1e-9


class Sia(Policy, frozen=True):
    """Each job has the size and the kind of device with which all together make most progress.

    Citation: Jayaram Subramanya et al., "Sia: heterogeneity-aware, goodput-optimized ML-cluster
    scheduling", SOSP '23, sections 3.3 and 3.4, and its released simulator.
    Faithful: a job's goodputs are relative to its least one; the sum of their powers `fairness`
    (below 0: the smaller the better) and of `idle_penalty` for each job without devices is
    optimised over one (kind, size) for each job; other choices than the present one are
    discounted by what restarts have cost the job so far; decided anew each round.
    Ours: what is believed of a kind is known from the start, so that jobs need not begin with one
    device and double. Sizes are those a job allows. Between rounds it is decided when something
    happens. Above `exact_jobs` jobs, or always with solver=relaxed, prices in the place of the
    program (see core/knapsack.py). Any choice is worth a little, so that nobody waits beside
    idle devices, and the present one a little more; higher priorities choose first.
    """

    scope = "cluster"

    #: Whether an integer program is solved (by the extra `optimize`), or only its relaxation.
    solver: Literal["ilp", "relaxed"] = "ilp"
    #: The program is solved for so many jobs at most; for more, its relaxation.
    exact_jobs: int = 500
    #: The power of goodputs that is summed up; the lower, the more even.
    fairness: float = -0.5
    #: What a job without devices costs; with one's least goodput it costs 1.
    idle_penalty: float = 1.1
    #: Seconds that a restart is expected to cost.
    restart_seconds: float = 30.0
    #: It is decided anew at multiples of this.
    round_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.solver == "ilp":
            require("sia (unless solver=relaxed)")
        if not self.fairness:
            raise ValueError("fairness must not be 0")
        if self.restart_seconds < 0 or not self.round_seconds > 0:
            raise ValueError("restart_seconds must not be negative, round_seconds be positive")

    def plan(self, view: View) -> Plan:
        table = choices(view)
        rounds = float(np.floor(view.now / self.round_seconds + ROUNDING))
        worth = self._worth(view, table, rounds * self.round_seconds)

        def best(rows: Ints, worth: Floats, devices: Ints) -> Ints:
            if len(rows) > self.exact_jobs or self.solver == "relaxed":
                return knapsack_relaxed(worth, table.size, table.pool, devices).option
            return knapsack_solved(worth, table.size, table.pool, devices)

        option = choose(view, table, worth, best)
        again = INFINITY if nothing_to_gain(table, option) else (rounds + 1) * self.round_seconds
        return Plan(as_matrix(view, table, option), wake_at=again)

    def _worth(self, view: View, table: Choices, now: float) -> Floats:
        """What each choice is worth to each row; -inf where it is not allowed."""
        able = table.speed > 0
        least = np.where(able, table.speed, np.inf).min(axis=1, initial=np.inf)
        goodput = table.speed / least[:, None]
        factor = restart_factor(view, now, self.restart_seconds)
        factor[now - view.jobs.submitted < self.restart_seconds] = 1.0
        goodput = np.where(where_else(view, table), goodput * factor[:, None], goodput)
        power = np.maximum(goodput, LEAST) ** self.fairness
        worth = self.idle_penalty + (power if self.fairness > 0 else -power)
        running = (table.held >= 0).nonzero()[0]
        worth[running, table.held[running]] *= 1.0 + STAYS
        return np.where(able, np.maximum(worth, LEAST) * view.jobs.weight[:, None], -np.inf)

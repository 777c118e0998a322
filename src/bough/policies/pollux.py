"""Goodput: devices go to where they speed training up most, evenly, and changes are not free."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bough.core.choices import Choices, choices, choose, nothing_to_gain, restart_factor, where_else
from bough.core.genetic import evolve
from bough.core.knapsack import improve, knapsack_of_one, knapsack_relaxed
from bough.core.lots import Lots
from bough.core.model import INFINITY
from bough.core.policy import Floats, Ints, Plan, Policy, View

#: Added to every speed-up, so that having nothing has a finite cost.
NOTHING = 1e-3
#: What a device must bring at least (of the greatest worth): none is held for nothing.
TINY = 1e-9
#: How much more the present choice is worth, so that of equal plans the one carried out stays.
STAYS = 1e-9
#: So many rows x options x devices are searched exactly; above, by prices.
EXACT_CELLS = 100_000_000
#: A moment so close to a round (as a part of it) is the round.
ROUNDING = 1e-9


class Pollux(Policy, frozen=True):
    """The power mean of all jobs' speed-ups over an equal share is made as great as possible.

    Citation: Qiao et al., "Pollux: co-adaptive cluster scheduling for goodput-optimized deep
    learning", OSDI '21, section 4.2, and its released simulator.
    Faithful: speed-ups are of goodput, relative to an equal share of the devices; their power
    mean of exponent `fairness` is optimised; a change is discounted by (age - restarts x delay) /
    (age + delay); decided anew each round. A curve of goodputs, each with its best batch, is made
    by core/pollux.py (`goodput_curve`); what running jobs report corrects it as noise grows.
    Ours: devices are counted, and places are the tree's. Counted devices make the sum separable,
    so that search=exact finds the best by dynamic programming, and =relaxed nearly by prices (also
    where the exact search would take too long); =genetic evolves populations of plans as
    published, less the second objective, which serves autoscaling. Starting who waits is no
    change. Between rounds it is decided when something happens; higher priorities choose first.
    """

    content_with = "peak"

    #: How the best plan is looked for.
    search: Literal["exact", "relaxed", "genetic"] = "exact"
    #: Exponent of the power mean: 1 is the plain mean; the lower, the more even.
    fairness: float = -1.0
    #: Seconds that a change is expected to cost.
    restart_seconds: float = 30.0
    #: It is decided anew at multiples of this.
    round_seconds: float = 60.0
    #: Of the genetic search: plans in a population.
    population: int = 100
    #: Of the genetic search: how often it is bred.
    generations: int = 100
    #: Of the genetic search: what its lots follow from.
    seed: int = 0

    def __post_init__(self) -> None:
        if self.restart_seconds < 0 or not self.round_seconds > 0:
            raise ValueError("restart_seconds must not be negative, round_seconds be positive")
        if self.fairness > 1:
            raise ValueError(f"fairness {self.fairness} must not be above 1")
        if self.population < 2 or self.generations < 1 or self.seed < 0:
            raise ValueError("population must be 2 or more, generations 1 or more, seed 0 or more")

    def plan(self, view: View) -> Plan:
        table = choices(view)
        rounds = float(np.floor(view.now / self.round_seconds + ROUNDING))
        worth = self._worth(view, table, rounds * self.round_seconds)

        def best(rows: Ints, worth: Floats, devices: Ints) -> Ints:
            return self._best(table, worth, devices, table.held[rows])

        option = choose(view, table, worth, best)
        again = INFINITY if nothing_to_gain(table, option) else (rounds + 1) * self.round_seconds
        sizes = np.where(option >= 0, np.append(table.size, 0)[option], 0)
        return Plan(sizes, wake_at=again)

    def _worth(self, view: View, table: Choices, now: float) -> Floats:
        """What each choice adds to the sum of powers; -inf where it is not allowed."""
        able = table.speed > 0
        gain = table.speed / self._fair(view, table)[:, None]
        factor = restart_factor(view, now, self.restart_seconds)
        gain = np.where(where_else(view, table), gain * factor[:, None], gain) + NOTHING
        p = self.fairness
        if p:
            worth = np.sign(p) * (gain**p - NOTHING**p)
        else:
            worth = np.log(gain) - np.log(NOTHING)
        worth *= view.jobs.weight[:, None]
        most = np.where(able, worth, 0.0).max(initial=0.0)
        worth -= TINY * most * table.size / max(view.devices, 1)
        running = (table.held >= 0).nonzero()[0]
        worth[running, table.held[running]] *= 1.0 + STAYS
        return np.where(able, np.maximum(worth, TINY), -np.inf)

    def _fair(self, view: View, table: Choices) -> Floats:
        """The speed of each row with an equal share: the largest size within it, or its least."""
        able = table.speed > 0
        share = -(-view.devices // max(view.jobs.n, 1))
        within = able & (table.size <= share)
        last = within.shape[1] - 1 - within[:, ::-1].argmax(axis=1) if within.size else 0
        at = np.where(within.any(axis=1), last, able.argmax(axis=1) if able.size else 0)
        fair = table.speed[np.arange(view.jobs.n), at] if able.size else np.ones(view.jobs.n)
        found: Floats = np.where(fair > 0, fair, 1.0)
        return found

    def _best(self, table: Choices, worth: Floats, devices: Ints, held: Ints) -> Ints:
        """The option of each of these rows."""
        size, pool = table.size, table.pool
        if self.search == "genetic":
            shape = self.population, self.generations
            option = evolve(worth, size, int(devices[0]), held, shape, Lots(self.seed))
            free = devices - size[option[option >= 0]].sum()
            improve(worth, option, size, pool, free)
            return option
        cells = worth.size * (int(devices[0]) + 1)
        if self.search == "exact" and cells <= EXACT_CELLS:
            return knapsack_of_one(worth, size, int(devices[0]))
        return knapsack_relaxed(worth, size, pool, devices).option

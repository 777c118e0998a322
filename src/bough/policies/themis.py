"""Themis: whoever is treated worst bids first, and devices go to the bids that help most."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bough.core.choices import choices
from bough.core.knapsack import knapsack_of_one, knapsack_relaxed
from bough.core.model import INFINITY
from bough.core.policy import Floats, Ints, Plan, Policy, View
from bough.core.share import fill_in_order, in_order, peaks, stable_order
from bough.core.slices import opens, turn_after


class Themis(Policy, frozen=True):
    """Finish times are evened out, each against what an equal part of the cluster would give.

    Citation: Mahajan et al., "Themis: fair and efficient GPU cluster scheduling", NSDI '20,
    sections 4 and 5.
    Faithful: a job's rho is the time it takes here, from submission to its expected end, over what
    it would take alone on an equal part of the cluster; devices are let for a lease; when leases
    end, they are offered to the jobs with the worst rho (the part 1 - `fairness` of those that
    bid), whose bids say which rho each size would give; those are chosen whose values 1 / rho
    have the greatest product; what they leave goes to the others.
    Ours: leases end together, at multiples of their length. A job that gets nothing is taken to
    go on after the lease on its equal part. Leftovers go to the next worst, not by lot. The
    hidden payments that keep bidders honest are left out: bids are what the core believes, so
    that nobody can lie. A job is an app of its own. Above `exact_cells` the best choice is
    approached by prices (core/knapsack.py).
    """

    #: How long a lease lasts.
    lease_seconds: float = 600.0
    #: All but this part of the jobs bid; 0: all, 1: only the worst.
    fairness: float = 0.8
    #: The best choice is found up to so many cells (bidders x sizes x devices).
    exact_cells: int = 5_000_000

    def __post_init__(self) -> None:
        if not 0 < self.lease_seconds < INFINITY:
            raise ValueError("lease_seconds must be positive and finite")
        if not 0 <= self.fairness <= 1:
            raise ValueError(f"fairness {self.fairness} must be from 0 to 1")

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        late = not opens(view.now, self.lease_seconds)
        keeps = (jobs.must != 0) | ((jobs.size > 0) & late)
        peak = np.maximum(np.minimum(peaks(view.classes)[jobs.cls], jobs.hi), jobs.lo)
        most = peak.copy()
        most[keeps] = np.clip(jobs.size, jobs.lo, jobs.hi)[keeps]
        rho, waits = rhos(view, self.lease_seconds)
        order = in_order(view, ~keeps, -waits)
        bidders = order[np.count_nonzero(keeps) :]
        worst = np.sort(bidders[: math.ceil((1.0 - self.fairness) * len(bidders)) or 1])
        won = self._auction(rho, waits, worst, view.devices - int(most[keeps].sum()))
        winners = worst[won > 0]
        most[winners] = won[won > 0]
        last = np.ones(jobs.n, np.bool_)
        last[keeps] = last[winners] = False
        sizes = fill_in_order(view, order[stable_order(last[order])], most)
        wants = bool((sizes < peak).any())
        again = turn_after(jobs, sizes, view.now, self.lease_seconds)
        wake_at = again if wants else INFINITY
        return Plan(sizes, wake_at=wake_at)

    def _auction(self, rho: Rhos, waits: Floats, rows: Ints, free: int) -> Ints:
        """The size that each of these rows wins; 0: none."""
        value = np.log(waits[rows, None] / rho.each[rows])
        value[~(value > 0)] = -np.inf
        if len(rows) * len(rho.size) * free > self.exact_cells:
            pool, devices = np.zeros(len(rho.size), np.int64), np.array([free])
            option = knapsack_relaxed(value, rho.size, pool, devices).option
        else:
            option = knapsack_of_one(value, rho.size, max(free, 0))
        won: Ints = np.where(option >= 0, np.append(rho.size, 0)[option], 0)
        return won


class Rhos(NamedTuple):
    """Option k is `size[k]` devices; with it, row i comes to `each[i, k]` (NaN: not allowed)."""

    size: Ints
    each: Floats


def rhos(view: View, lease_seconds: float) -> tuple[Rhos, Floats]:
    """The time each row takes with each size, and with nothing now, over that on an equal part."""
    jobs, table = view.jobs, choices(view)
    age = np.maximum(view.now - jobs.submitted, 0.0)
    left = np.maximum(jobs.left_or_guess(), 1.0)
    part = view.devices / max(jobs.n, 1) / np.maximum(jobs.wish, 1)
    equal = np.maximum(jobs.wish_speed * np.clip(part, 1e-9, 1.0), 1e-12)
    alone = (left + jobs.done()) / equal
    speed = np.where(table.speed > 0, table.speed, np.nan)
    each = (age[:, None] + left[:, None] / speed) / alone[:, None]
    return Rhos(table.size, each), (age + lease_seconds + left / equal) / alone

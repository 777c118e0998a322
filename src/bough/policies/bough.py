"""The house policy: promises are kept, and what is left makes the mean completion time small."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bough.core.attained import by_start
from bough.core.flow import service_left, worst_off, worth_by_rank
from bough.core.keeping import kept_with, needed_now
from bough.core.model import JobSpec
from bough.core.order import fit_in_order, in_order
from bough.core.policy import ACCEPTED, Bools, Floats, Ints, Plan, Policy, Verdict, View
from bough.core.promises import judged
from bough.core.share import marginal_fill
from bough.core.thrift import Ladders, Wishes, climb_within, power_in

#: A job that was measured is trusted this much more: its speed is known, that of other sizes not.
MEASURED = 0.5
#: A promised job has what it will need within this time, and within so many times the doubt of
#: the time it has left.
AHEAD_SECONDS = 60.0
AHEAD_DOUBTS = 2.0
#: It is not decided sooner again without an event: corrections would chase each other.
PAUSE_SECONDS = 1.0
#: Where power is short it is looked again so often what may be drawn.
POWER_SECONDS = 600.0


class Bough(Policy, frozen=True):
    """Deadlines are promised only if they can be kept; all else shortens the mean completion time.

    Citation: progressive filling, Gu et al., "ElasticFlow", ASPLOS '23, section 4.1; shares by
    rank, Berg, Vesilo and Harchol-Balter, "heSRPT", Performance Evaluation 144 (2020); jobs of
    unknown length, Gu et al., "Tiresias", NSDI '19; the even share nobody should fall far behind,
    Mahajan et al., "Themis", NSDI '20.
    Faithful: the order of deadlines, the lowest quota, the ranks' weights and the Gittins index.
    Ours: their composition. First, promised jobs have the fewest devices that keep their deadline,
    with a margin learnt from how wrong beliefs turned out to be. Then who will take much longer
    than under an even share, up to a part of the devices; then whoever needs least service. Those
    that run share what is left by speed gained for each device, weighted by rank. Queues are the
    core's: each is asked within its entitlement, and promises are made within what it is sure of.
    Where a budget leaves too little power for that plan, who needs least energy goes first, and
    devices and clocks go to where they save most time for their energy, as in PowerFlow.
    """

    content_with = "peak"
    learns = True
    meters = True
    moves = True

    #: How many times the doubt learnt of beliefs is not counted on when promises are made.
    caution: float = 1.0
    #: Who will take more than this many times as long as under an even share goes first …
    patience: float = 2.0
    #: … as far as this part of the devices reaches.
    reserve: float = 0.25
    #: What a device more is worth to a job that will keep its deadline without, beside one that has
    #: none.
    early: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.caution < math.inf:
            raise ValueError(f"caution {self.caution} must be 0 or more, and finite")
        if not self.patience >= 1:
            raise ValueError(f"patience {self.patience} must be 1 or more")
        if not (0 <= self.reserve <= 1 and 0 < self.early <= 1):
            raise ValueError("reserve must be within 0..1, early above 0 and at most 1")

    def admit(self, view: View, job: JobSpec) -> Verdict:
        if job.service != "guaranteed":
            return ACCEPTED
        own = -math.expm1(-self.caution * view.doubt)
        return judged(view, margin=own, margins=self._margin(view))

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        promised = kept_with(view, self._margin(view))
        time_left = np.maximum(jobs.deadline[promised.rows] - view.now, 0.0)
        ahead = np.maximum(AHEAD_SECONDS, AHEAD_DOUBTS * view.doubt * time_left)
        needed = needed_now(view, promised, ahead)
        service = service_left(view)
        late = worst_off(view, self.patience, self.reserve)
        order = in_order(view, needed == 0, ~late, service, jobs.size == 0, base=by_start(jobs))
        least = fit_in_order(np.maximum(needed, jobs.lo), view.devices, order, skip=True)
        rows = order[least[order] > 0]
        worth = np.zeros(jobs.n)
        worth[rows] = worth_by_rank(service[rows])
        worth[promised.rows] *= self.early
        sizes = marginal_fill(view, weights=worth, order=rows, least=least)
        soonest = promised.wake_at(view.now, sizes)
        if view.doubt:
            soonest = max(soonest, view.now + PAUSE_SECONDS)
        # To be moved is dear; it is asked of jobs only for the sake of promises.
        plan = Plan(sizes, wake_at=soonest, moves=len(promised.rows) > 0)
        if power_in(view).allowance < math.inf:
            return self._within(view, needed, late, plan)
        return plan

    def _within(self, view: View, needed: Ints, late: Bools, plan: Plan) -> Plan:
        """The plan if there is power for it; else what saves most time for its energy.

        Energy is short then, so that whoever needs least of it goes first, and not least service.
        """
        power, ladders = power_in(view), Ladders(view)
        until = min(plan.wake_at, power.until)
        if plan.sizes.all() and ladders.watts_of(plan.sizes) <= power.allowance:
            return replace(plan, wake_at=until)
        energy = ladders.energy_left(view)
        order = in_order(view, needed == 0, ~late, energy)
        wishes = Wishes(needed, order, np.ones(len(energy)))
        found = climb_within(view, ladders, power.allowance, wishes)
        again = view.now + POWER_SECONDS if found.short_of_power else math.inf
        return replace(plan, sizes=found.sizes, clocks=found.clocks, wake_at=min(until, again))

    def _margin(self, view: View) -> Floats:
        """The part of each row's believed speed that is not counted on."""
        trust = np.where(view.jobs.measured > 0, MEASURED, 1.0)
        found: Floats = -np.expm1(-self.caution * view.doubt * trust)
        return found

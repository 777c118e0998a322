"""OASiS: a deadline is promised to who would pay for it, at prices that rise as devices go."""

from __future__ import annotations

import numpy as np

from bough.core.filling import Levels, useful_levels
from bough.core.leftovers import grow, start_more
from bough.core.market import Asks, Market, Offer
from bough.core.model import INFINITY, JobSpec
from bough.core.policy import ACCEPTED, Ints, Plan, Policy, Verdict, View
from bough.core.promises import judged, kept
from bough.core.share import fill_in_order, in_order


class Oasis(Policy, frozen=True):
    """A guaranteed job is taken on if it is worth more than the devices it needs cost then.

    Citation: Bao et al., "Online job scheduling in distributed machine learning clusters",
    INFOCOM '18 (OASiS).
    Faithful: each device of each slot ahead has a price, which grows exponentially with what is
    sold of the slot, from a low one to what the worthiest would pay; a job that comes has its
    best schedule computed at these prices, with another size in each slot; it is taken on if
    that is worth more than it costs, and its devices are sold; its worth is a sigmoid of when it
    is done, times its `weight`.
    Ours: one price for a device, with what comes with it, and not one for each resource of each
    server; it rises within a sale too, so that the first who comes does not buy everything for
    what an idle device costs. Slots get longer the farther off they are. The schedule is found
    on the concave envelope of the speeds, for some ends (core/market.py), without a table over
    all of them. Schedules are made anew from the work that is left, in order of submission, and
    may change; that a promise is kept all the same is seen to as by `elasticflow`: nobody gets
    less than what its deadline needs now, and nobody is taken on for whom that is not there.
    Worth is in device-seconds; only guaranteed jobs pay, the others have what is left over.
    """

    scope = "pool"

    #: How steeply worth falls around the deadline: 0 not at all; 4 to 6 is urgent.
    urgency: float = 5.0
    #: What an idle device costs, as a part of the least weight.
    idle_price: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.urgency <= 100:
            raise ValueError("urgency must be from 0 to 100")
        if not 0 < self.idle_price <= 1:
            raise ValueError("idle_price must be above 0 and at most 1")

    def admit(self, view: View, job: JobSpec) -> Verdict:
        asks = view.newcomer
        if job.service != "guaranteed" or asks is None or asks.deadline == INFINITY:
            return ACCEPTED
        verdict = judged(view)
        if not verdict.accepted:
            return verdict
        rows = kept(view).rows
        market = self._market(view, rows, job.weight)
        self._sold(view, market, rows)
        levels = useful_levels(view.classes)[asks.cls]
        offer = market.best(self._asks(view.now, levels, asks.left, asks.left, asks.deadline,
                                       view.now, job.weight))  # fmt: skip
        if offer is not None and offer.payoff > 0:
            return ACCEPTED
        if offer is None:
            text = "Too few devices are left to be sold before its deadline."
            return Verdict(accepted=False, code="price", text=text)
        return Verdict(
            accepted=False,
            code="price",
            text=f"It is worth {offer.worth:.3g}, and what it needs costs {offer.cost:.3g} now.",
            facts={"worth": offer.worth, "cost": offer.cost},
            remedy="Give it more weight or more time, or ask for best effort",
        )

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        plans = kept(view)
        granted = jobs.lo * (jobs.must != 0)
        some = plans.rows[plans.now > 0]
        granted[some] = np.clip(plans.now[plans.now > 0], jobs.lo[some], jobs.hi[some])
        urgent = in_order(view, jobs.guaranteed == 0, jobs.deadline)
        if int(granted.sum()) > view.devices:
            granted = fill_in_order(view, urgent, granted)
        market = self._market(view, plans.rows)
        free = view.devices - int(granted.sum())
        change = INFINITY
        for row, offer in self._sold(view, market, plans.rows).items():
            change = min(change, offer.changes_after(market.ends))
            wants = min(int(offer.sizes[0]), int(jobs.hi[row]))
            if granted[row] < wants <= granted[row] + free and wants >= jobs.lo[row]:
                free -= wants - int(granted[row])
                granted[row] = wants
        granted = start_more(view, granted, urgent)
        granted = grow(view, granted)
        wake_at = min(plans.wake_at(view.now, granted), view.now + change)
        return Plan(granted, wake_at=wake_at)

    def _market(self, view: View, rows: Ints, *more: float) -> Market:
        """All slots ahead, nothing sold yet; `more` are weights besides those of the rows."""
        weights = [*view.jobs.weight[rows].tolist(), *more]
        lowest = self.idle_price * min(weights, default=1.0)
        return Market(view.devices, lowest, max(weights, default=1.0))

    def _sold(self, view: View, market: Market, rows: Ints) -> dict[int, Offer]:
        """The schedules of all that were taken on, first come, first served."""
        jobs, levels = view.jobs, useful_levels(view.classes)
        left, total = jobs.left(), jobs.left() + jobs.done()
        found: dict[int, Offer] = {}
        for row in np.sort(rows).tolist():
            asks = self._asks(
                view.now, levels[int(jobs.cls[row])].upto(int(jobs.max[row])), float(left[row]),
                float(total[row]), float(jobs.deadline[row]), float(jobs.submitted[row]),
                float(jobs.weight[row]),
            )  # fmt: skip
            offer = market.best(asks)
            if offer is not None:
                market.sell(offer)
                found[row] = offer
        return found

    def _asks(
        self, now: float, levels: Levels, left: float, total: float, deadline: float,
        submitted: float, weight: float,
    ) -> Asks:  # fmt: skip
        """A job in the market's words: its worth is its weight times its least device-seconds."""
        each = min(s / v for s, v in zip(levels.sizes[1:], levels.speeds[1:], strict=True))
        return Asks(
            levels, left, deadline - now, weight * total * each, max(now - submitted, 0.0),
            deadline - submitted, self.urgency,
        )  # fmt: skip

"""CarbonScaler: each job runs when power is clean, with more devices the cleaner it is."""

from __future__ import annotations

import math

import numpy as np

from bough.core.carbon_slots import Level, Slot, spread_over
from bough.core.model import INFINITY
from bough.core.policy import Plan, Policy, PowerView, View
from bough.core.share import fill_in_order, in_order
from bough.core.thrift import Ladders, power_in


class CarbonScaler(Policy, frozen=True):
    """Each job has most devices in the cleanest hours before its deadline, and is done by then.

    Citation: Hanafy et al., "CarbonScaler: leveraging cloud workload elasticity for optimizing
    carbon-efficiency", POMACS 7(3) / SIGMETRICS '24, and its released code.
    Faithful: for each hour before the deadline and each number of devices, the speed that it adds
    over the power that it adds times the carbon intensity forecast; the greatest first, each
    the least size in an empty hour or one above what the hour has, until the work is done; who
    would be late anyway runs as fast as it can. Planned anew each hour, and as jobs come and end.
    Ours: each job is planned as if alone, as there, and devices are handed out by deadline where
    there are too few; a job without a deadline should be done in `stretch` times its time on its
    least size; the forecast is the series itself; power is that of docs/energy.md at full clock.
    """

    scope = "pool"
    meters = True

    #: How many times its time on its least size a job without a deadline may take.
    stretch: float = 1.5
    #: No further ahead is planned: what is later is as good as the end of that.
    horizon_seconds: float = 172_800.0

    def __post_init__(self) -> None:
        if not 1 <= self.stretch < INFINITY:
            raise ValueError("stretch must be 1 or more, and finite")
        if not 0 < self.horizon_seconds < INFINITY:
            raise ValueError("horizon_seconds must be positive and finite")

    def plan(self, view: View) -> Plan:
        jobs, power = view.jobs, power_in(view)
        ladders = Ladders(view, (1.0,))
        left, done = jobs.left_or_guess(), jobs.done()
        most = np.zeros(jobs.n, np.int64)
        latest = np.zeros(jobs.n)
        for row, rungs in enumerate(ladders.rungs):
            levels = [Level(rung.size, rung.speed, rung.watts) for rung in rungs]
            whole = float(left[row] + done[row]) / levels[0].speed
            latest[row] = min(jobs.deadline[row], jobs.submitted[row] + self.stretch * whole)
            slots = self._slots(view.now, float(latest[row]), power)
            plan = spread_over(levels, float(left[row]), slots)
            most[row] = plan[0] if plan else levels[-1].size
        most = np.maximum(most, jobs.lo * (jobs.must != 0))
        order = in_order(view, latest)
        sizes = fill_in_order(view, order[most[order] > 0], most)
        waits = ((most == 0) & (sizes == 0)).nonzero()[0]
        wake_at = power.carbon.next_change(view.now) if power.carbon is not None else INFINITY
        if power.carbon is None and len(waits):
            wake_at = view.now + self.horizon_seconds
        return Plan(sizes, wake_at=wake_at, reasons=dict.fromkeys(waits.tolist(), "policy"))

    def _slots(self, now: float, latest: float, power: PowerView) -> list[Slot]:
        """Stretches of one carbon intensity from now to the deadline; none if that is over."""
        end = min(latest, now + self.horizon_seconds)
        found, series = [], power.carbon
        while now < end:
            then = min(series.next_change(now), end) if series is not None else end
            if not math.isfinite(then) or then <= now:
                break
            found.append(Slot(then - now, series.at(now) if series is not None else 1.0))
            now = then
        return found

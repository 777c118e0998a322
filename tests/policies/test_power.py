"""PowerFlow and GreenFlow: time against energy, within what may be drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, note, settings

from bough.core.energy import CLOCKS
from bough.core.model import INFINITY
from bough.core.policy import Plan, View
from bough.core.thrift import Ladders, Rung, climb_within
from bough.policies.greenflow import GreenFlow
from bough.policies.powerflow import PowerFlow
from bough.testing.policies import PolicyContract
from bough.testing.strategies import views
from bough.testing.views import Row, described, make_view

LINEAR = {"sizes": (1, 2, 4), "speed": (1.0, 2.0, 4.0)}
#: One device's share of its node: a quarter of 400 W; and what its work adds at full clock.
SHARE, ADDED = 100.0, 200.0


class TestPowerFlow(PolicyContract):
    policies = (PowerFlow(), PowerFlow(clocks=False, haste=1.0))
    work_conserving = False
    drifts = True


class TestGreenFlow(PolicyContract):
    policies = (GreenFlow(), GreenFlow(even=False, interval_seconds=60.0))
    work_conserving = False
    drifts = True


def watts(size: int, clock: float) -> float:
    """Of a job that computes all the time on devices of one node."""
    return size * (SHARE + ADDED * (0.5 + 0.5 * clock**2))


def planned(policy: PowerFlow | GreenFlow, view: View) -> list[tuple[int, float]]:
    plan = policy.plan(view)
    assert plan.clocks is not None
    return list(zip(plan.sizes.tolist(), plan.clocks.tolist(), strict=True))


class TestWorkedExample:
    """Jobs that take 0.6 + 0.4 / clock times as long."""

    steady = PowerFlow(haste=1.0)

    def test_the_thriftiest_clock(self) -> None:
        """Energy per work at 0.4 is 216 W x 1.6 = 346, at 0.6 236 x 1.27 = 299, at 1.0 300."""
        ladders = Ladders(make_view(4, [Row(left=100.0)], allowance=INFINITY))
        energy = {clock: watts(1, clock) * (0.6 + 0.4 / clock) for clock in CLOCKS}
        best = min(energy, key=lambda clock: energy[clock])
        assert (best, round(energy[0.4]), round(energy[0.6])) == (0.8, 346, 299)
        assert ladders.rungs[0][0].clock == best
        assert ladders.rungs[0][0].watts == pytest.approx(watts(1, best))

    def test_devices_that_cost_no_energy_go_first(self) -> None:
        """Two devices do it in half the time at twice the power: free; a higher clock is not."""
        rungs = Ladders(make_view(4, [Row(**LINEAR, left=9.0)], allowance=INFINITY)).rungs[0]
        sizes = [(rung.size, rung.clock, rung.worth) for rung in rungs]
        assert sizes[:3] == [(n, 0.8, INFINITY) for n in (1, 2, 4)]
        assert [clock for _, clock, _ in sizes[3:]] == [0.9, 1.0]
        assert all(worth < INFINITY for *_, worth in sizes[3:])

    def test_a_job_that_scales_badly_gets_a_clock_before_devices(self) -> None:
        row = Row(sizes=(1, 2), speed=(1.0, 1.1), left=9.0)
        rungs = Ladders(make_view(4, [row], allowance=INFINITY)).rungs[0]
        assert [(rung.size, rung.clock) for rung in rungs] == [
            (1, 0.8), (1, 0.9), (1, 1.0), (2, 1.0)
        ]  # fmt: skip

    def test_within_the_allowance(self) -> None:
        """Two jobs at their least draw 2 x 264 W, at four devices each four times as much."""
        rows = [Row(**LINEAR, left=100.0), Row(**LINEAR, left=50.0)]
        one = watts(1, 0.8)
        assert planned(self.steady, make_view(8, rows, allowance=8 * one)) == [(4, 0.8)] * 2
        assert planned(self.steady, make_view(8, rows, allowance=6.1 * one)) == [(2, 0.8), (4, 0.8)]
        # For one only: the one with least energy left.
        assert planned(self.steady, make_view(8, rows, allowance=1.5 * one))[0][0] == 0
        assert planned(self.steady, make_view(8, rows, allowance=INFINITY)) == [(4, 1.0)] * 2

    def test_what_may_not_be_parked_draws_in_any_case(self) -> None:
        rows = [Row(size=1, must=True, left=9.0), Row(left=1.0)]
        assert planned(self.steady, make_view(8, rows, allowance=0.0)) == [(1, 0.8), (0, 0.8)]

    def test_short_of_power_it_looks_again(self) -> None:
        rows = [Row(**LINEAR, left=100.0)]
        for allowance, expected in ((1.0, 600.0), (INFINITY, INFINITY)):
            plan = self.steady.plan(make_view(8, rows, allowance=allowance))
            assert isinstance(plan, Plan)
            assert plan.wake_at == expected

    def test_haste_draws_more_at_first(self) -> None:
        rows = [Row(**LINEAR, left=100.0)]
        view = make_view(8, rows, allowance=watts(2, 0.8))
        assert planned(PowerFlow(haste=1.0), view)[0][0] == 2
        assert planned(PowerFlow(haste=2.0), view)[0][0] == 4

    def test_green_power_is_used_while_it_is_there(self) -> None:
        view = make_view(8, [Row(**LINEAR, left=100.0)], allowance=watts(1, 0.8))
        assert view.power is not None
        clean = replace(view, power=replace(view.power, even_allowance=watts(4, 0.8)))
        assert planned(GreenFlow(), clean) == [(4, 0.8)]
        assert planned(GreenFlow(even=False), clean) == [(1, 0.8)]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(views())
def test_nobody_can_climb_who_would_fit(view: View) -> None:
    """Against the definition: what is drawn is allowed, and whoever could still climb from where it
    is could not beside the others, unless it was passed by a rung of its own."""
    note(described(view))
    if view.power is None:
        return
    allowance = view.power.allowance
    ladders = Ladders(view)
    found = climb_within(view, ladders, allowance)
    held: list[Rung | None] = []
    for rungs, size, clock in zip(ladders.rungs, found.sizes, found.clocks, strict=True):
        match = [r for r in rungs if r.size == size and r.clock == clock]
        held.append(match[0] if size else None)
    drawn = sum(rung.watts for rung in held if rung)
    must = sum(r[0].watts for r, m in zip(ladders.rungs, view.jobs.must, strict=True) if m)
    assert drawn <= max(allowance, must) * (1 + 1e-6) + 1e-6
    free, power = view.devices - int(found.sizes.sum()), allowance - drawn
    for rungs, rung in zip(ladders.rungs, held, strict=True):
        if rung is None:
            start = rungs[0]
            assert start.size > free or start.watts > power or not found.sizes.sum() or free <= 0
        elif rung is not rungs[-1]:
            then = rungs[rungs.index(rung) + 1]
            assert then.size - rung.size > free or then.watts - rung.watts > power * (1 - 1e-9)

"""Energy, carbon and cost of simulated runs: by hand for one job, as sums for many, and budgets."""

from __future__ import annotations

import math
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.replays import job, replay

from bough.core.cluster import Cluster, parse_short
from bough.core.energy import POWERS, device_watts, pace, standing_watts, work_of
from bough.core.model import Node
from bough.core.policy import Plan, Policy, View
from bough.core.series import Series
from bough.core.supply import Budget, Resource, Supply
from bough.core.terms import Terms
from bough.policies import find
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.record import RunRecord
from bough.sim.results import summarise
from bough.sim.synthetic import generate
from bough.sim.trace import Trace

V100, RESNET = POWERS["v100"], work_of("resnet50")
NODE = standing_watts(Node(name="n", kind="v100", devices=4))
HOUR = 3600.0


class Slow(Policy, frozen=True):
    """All jobs at one device and this clock."""

    clock: float = 0.5

    meters = True

    def plan(self, view: View) -> Plan:
        assert view.power is not None
        sizes = view.jobs.lo.copy()
        return Plan(sizes, clocks=(sizes > -1) * self.clock)


def test_one_job_by_hand() -> None:
    """An hour on two devices of four, at 200 g and 0.1 for each kWh."""
    alone = msgspec.structs.replace(job("a", 50.0, HOUR, 2).spec, model="resnet50")
    trace = Trace(name="t", jobs=(msgspec.structs.replace(job("a", 50.0, HOUR, 2), spec=alone),))
    supply = Supply(carbon=Series((100.0, 300.0), HOUR / 2), price=Series((0.1,)))
    record = simulate(trace, parse_short("1x4xv100"), find("fifo"), Options(supply=supply))
    one = record.jobs[0]
    curve_busy = (one.energy_joules / HOUR - NODE) / (2 * (V100.peak - V100.idle) * RESNET.draw)
    assert 0.8 < curve_busy <= 1.0  # ResNet-50 scales well to two devices
    watts = NODE + 2 * (device_watts(V100, RESNET, curve_busy) - V100.idle)
    assert one.energy_joules == pytest.approx(watts * HOUR)
    assert one.carbon_grams == pytest.approx(watts / 1000.0 * 200.0)
    assert one.cost == pytest.approx(watts / 1000.0 * 0.1)
    row = summarise(record)
    assert row["energy_kwh"] == pytest.approx(watts / 1000.0)
    assert row["carbon_kg"] == pytest.approx(watts / 1000.0 * 0.2)


def test_neighbours_share_their_node() -> None:
    """Alone for an hour, then with another of three times its size."""
    jobs = [job("a", 0.0, 2 * HOUR, 1), job("b", HOUR, HOUR, 3)]
    record = replay(jobs, "1x4xv100", energy=True)
    work = work_of("")
    own = device_watts(V100, work) - V100.idle
    first, second = (one.energy_joules for one in record.jobs)
    assert first == pytest.approx(HOUR * (2 * own + NODE * (1 + 1 / 4)))
    more = second / HOUR - NODE * 3 / 4
    assert 2 * own < more <= 3 * own


def test_a_clock_is_slower_and_thriftier() -> None:
    trace = Trace(name="t", jobs=(job("a", 0.0, HOUR, 1),))
    cluster = parse_short("1x1xv100")
    full, half = (
        simulate(trace, cluster, policy, Options(energy=True)).jobs[0]
        for policy in (Slow(clock=1.0), Slow(clock=0.5))
    )
    work = work_of("")
    assert half.end == pytest.approx(HOUR / pace(work, 1.0, 0.5))
    watts = standing_watts(Node(name="n", kind="v100", devices=1)) - V100.idle
    watts += device_watts(V100, work, 1.0, 0.5)
    assert half.energy_joules == pytest.approx(watts * half.end)
    assert full.end == HOUR


def test_nothing_is_counted_unless_asked() -> None:
    record = replay([job("a", 0, 10)])
    row = summarise(record)
    assert record.jobs[0].energy_joules == 0.0
    names = ("energy_kwh", "carbon_kg", "cost", "most_of_a_budget")
    assert [row[name] for name in names] == [None] * 4
    assert summarise(replay([job("a", 0, 10)], energy=True))["energy_kwh"] > 0


def test_devices_have_a_price() -> None:
    """Two devices at 3 an hour, one of them for half an hour more."""
    nodes = tuple(
        Node(name=name, kind="v100", devices=1, terms=Terms(price=3.0)) for name in ("a", "b")
    )
    trace = Trace(name="t", jobs=(job("a", 0.0, HOUR), job("b", 0.0, 1.5 * HOUR)))
    row = summarise(simulate(trace, Cluster(nodes=nodes), find("fifo")))
    assert row["cost"] == pytest.approx(7.5)
    assert row["carbon_kg"] is None


# --------------------------------------------------------------------------- budgets


@cache
def mixed(seed: int) -> Trace:
    return generate(25, 16, load=1.0, elastic=0.5, seed=seed)


CARBON = Series((100.0, 50.0, 400.0, 0.0, 200.0), 5000.0)


def budgeted(policy: str, seed: int, of: Resource, share: float, **options: float) -> RunRecord:
    """A run under a budget of this share of what the cluster can draw at full power."""
    most = {"energy": 6.0, "carbon": 0.9, "cost": 0.6}[of] * 10.0
    supply = Supply(
        carbon=CARBON,
        price=Series((0.1,)),
        budgets=(Budget(of=of, amount=share * most, window_seconds=20_000.0),),
    )
    cluster = parse_short("4x4xv100")
    world = Options(supply=supply, until=mixed(seed).jobs[0].submit + 1e6, **options)
    return simulate(mixed(seed), cluster, find(policy), world)


@settings(deadline=None, max_examples=15)
@given(
    st.sampled_from(["fifo", "max_min", "elasticflow", "powerflow", "greenflow", "carbonscaler"]),
    st.integers(0, 3),
    st.sampled_from(["energy", "carbon", "cost"]),
    st.floats(0.05, 1.2),
)
def test_no_budget_is_overdrawn(policy: str, seed: int, of: Resource, share: float) -> None:
    """Whatever the policy; and the books agree with the sums of the jobs."""
    record = budgeted(policy, seed, of, share)
    for _, _, had, spent in record.windows:
        assert spent <= had * (1 + 1e-6) + 1e-9
    total = {
        "energy": sum(one.energy_joules for one in record.jobs) / 3.6e6,
        "carbon": sum(one.carbon_grams for one in record.jobs) / 1000.0,
        "cost": sum(one.cost for one in record.jobs),
    }[of]
    assert math.fsum(spent for *_, spent in record.windows) == pytest.approx(total, rel=1e-6)


def test_who_waits_for_a_budget_is_told_so() -> None:
    record = budgeted("fifo", 0, "energy", 0.1)
    assert any("budget" in one.waits for one in record.jobs)


def test_leaving_takes_time_and_power_beyond_the_budget() -> None:
    """Jobs that take a minute to leave draw for that minute; it is owed to the next window."""
    record = budgeted("max_min", 1, "energy", 0.2, park_seconds=60.0)
    over = [max(spent - had, 0.0) for _, _, had, spent in record.windows]
    assert 0 < max(over) < 16 * 230 * 60 / 3.6e6 + 4 * 400 * 60 / 3.6e6

"""CarbonScaler: hand-worked hours, and its greedy against every plan there is."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.carbon_slots import Level, Slot, spread_over
from bough.core.policy import Plan
from bough.policies.carbonscaler import CarbonScaler
from bough.testing.policies import PolicyContract
from bough.testing.views import Row, make_view

LINEAR = [Level(1, 1.0, 100.0), Level(2, 2.0, 200.0), Level(4, 4.0, 400.0)]


class TestCarbonScaler(PolicyContract):
    policies = (CarbonScaler(), CarbonScaler(stretch=1.0, horizon_seconds=5000.0))
    work_conserving = False
    drifts = True


def grams(levels: list[Level], slots: list[Slot], sizes: list[int]) -> tuple[float, float]:
    """Carbon of a plan, in watt-seconds times intensity, and its work."""
    by_size = {level.size: level for level in (*levels, Level(0, 0.0, 0.0))}
    pairs = [(by_size[size], slot) for size, slot in zip(sizes, slots, strict=True)]
    carbon = sum(level.watts * slot.intensity * slot.seconds for level, slot in pairs)
    return carbon, sum(level.speed * slot.seconds for level, slot in pairs)


def test_the_clean_hour_takes_all_it_can() -> None:
    slots = [Slot(100.0, 300.0), Slot(100.0, 50.0), Slot(100.0, 200.0)]
    assert spread_over(LINEAR, 400.0, slots) == [0, 4, 0]
    assert spread_over(LINEAR, 450.0, slots) == [0, 4, 1]
    assert spread_over(LINEAR, 1200.0, slots) == [4, 4, 4]
    assert spread_over(LINEAR, 1201.0, slots) is None
    assert spread_over(LINEAR, 0.0, slots) == [0, 0, 0]


def test_poor_scaling_spreads_over_hours() -> None:
    """A second device adds half as much: an hour that is less than twice as dirty is better."""
    levels = [Level(1, 1.0, 100.0), Level(2, 1.5, 200.0)]
    assert spread_over(levels, 200.0, [Slot(100.0, 100.0), Slot(100.0, 150.0)]) == [1, 1]
    assert spread_over(levels, 150.0, [Slot(100.0, 100.0), Slot(100.0, 250.0)]) == [2, 0]


def test_of_equal_hours_the_earlier() -> None:
    assert spread_over(LINEAR[:1], 150.0, [Slot(100.0, 1.0)] * 3) == [1, 1, 0]


@st.composite
def curves(draw: st.DrawFn) -> list[Level]:
    """Sizes with gains for each watt that never grow."""
    count = draw(st.integers(1, 3))
    gains = sorted(draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)), reverse=True)
    speed, found = 0.0, []
    for size, gain in enumerate(gains, 1):
        speed += gain
        found.append(Level(size, speed, 10.0 * size))
    return found


@settings(deadline=None, max_examples=60)
@given(
    curves(),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9)), min_size=1, max_size=4),
    st.floats(0.1, 60.0),
)
def test_no_plan_does_as_much_with_less(
    levels: list[Level], hours: list[tuple[int, int]], left: float
) -> None:
    """The greedy plan is the cheapest of all plans that do the work it does; and what its last
    step adds is all by which it may be dearer than the cheapest that does what is left."""
    # Stretches of the same length, as steps are then of the same size in every hour.
    slots = [Slot(float(hours[0][0]), float(intensity)) for _, intensity in hours]
    found = spread_over(levels, left, slots)
    everything = [list(p) for p in product([0, *(lv.size for lv in levels)], repeat=len(slots))]
    if found is None:
        assert max(grams(levels, slots, plan)[1] for plan in everything) < left * (1 + 1e-6)
        return
    carbon, work = grams(levels, slots, found)
    assert work >= left * (1 - 1e-6)
    ways = [grams(levels, slots, plan) for plan in everything]
    assert carbon == pytest.approx(min(c for c, w in ways if w >= work - 1e-9))
    largest = max(level.watts for level in levels[:1]) * max(s.intensity for s in slots)
    assert carbon - largest * slots[0].seconds <= min(c for c, w in ways if w >= left - 1e-9) + 1e-6


def test_it_waits_for_clean_power_and_wakes_then() -> None:
    """The kit's power is at 300 g for ten minutes, then at 100, then at 200."""
    row = Row(sizes=(1, 2, 4), speed=(1.0, 2.0, 4.0), submitted=0.0, left=2000.0, deadline=1800.0)
    plan = CarbonScaler().plan(make_view(8, [row], allowance=1e9))
    assert isinstance(plan, Plan)
    assert (plan.sizes.tolist(), plan.wake_at, plan.reasons) == ([0], 600.0, {0: "policy"})
    clean = CarbonScaler().plan(make_view(8, [row], now=600.0, allowance=1e9))
    assert isinstance(clean, Plan)
    assert (clean.sizes.tolist(), clean.wake_at) == ([4], 1200.0)


def test_who_is_late_runs_as_fast_as_it_can() -> None:
    row = Row(sizes=(1, 2, 4), speed=(1.0, 2.0, 4.0), submitted=0.0, left=9000.0, deadline=600.0)
    plan = CarbonScaler().plan(make_view(8, [row], allowance=1e9))
    assert isinstance(plan, Plan)
    assert plan.sizes.tolist() == [4]


def test_where_there_are_too_few_the_earliest_deadline_goes_first() -> None:
    rows = [
        Row(sizes=(1, 2, 4), speed=(1.0, 2.0, 4.0), submitted=0.0, left=9000.0, deadline=late)
        for late in (700.0, 600.0)
    ]
    plan = CarbonScaler().plan(make_view(5, rows, allowance=1e9))
    assert isinstance(plan, Plan)
    assert plan.sizes.tolist() == [1, 4]

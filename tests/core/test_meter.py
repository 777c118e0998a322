"""Budgets: windows, what is carried over and owed, and what may be drawn so that they are kept."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.meter import Meter
from bough.core.series import Series, constant
from bough.core.supply import Budget, Supply

DAY = 86_400.0
#: 1 kWh in a day, at a constant power.
WATTS = 1000.0 / 24.0


def meter(*budgets: Budget, **series: Series) -> Meter:
    found = Meter(Supply(budgets=budgets, **series))
    found.advance(0.0)
    return found


def test_what_is_left_is_carried_over_and_what_is_too_much_is_owed() -> None:
    books = meter(Budget(of="energy", amount=2.0))
    books.watts = WATTS
    books.advance(DAY / 2)
    assert books.accounts[0].left == pytest.approx(1.5)
    books.advance(1.5 * DAY)
    assert books.accounts[0].windows == [(DAY, 2.0, pytest.approx(1.0))]
    assert books.accounts[0].had == pytest.approx(3.0)
    books.watts = 10 * WATTS
    books.advance(2.0 * DAY)  # 5 more, so that 5.5 of 3 were used
    assert books.accounts[0].had == pytest.approx(2.0 - 2.5)
    assert books.is_used_up
    books.watts = 0.0
    assert books.next_change() == 3.0 * DAY
    books.advance(3.0 * DAY)
    assert books.accounts[0].had == pytest.approx(1.5)


def test_without_carrying_over_only_debts_remain() -> None:
    books = meter(Budget(of="energy", amount=2.0, carry=False))
    books.watts = WATTS
    books.advance(DAY)
    assert books.accounts[0].had == 2.0


def test_it_is_used_up_when_it_says() -> None:
    """Carbon of a day whose second half is three times as dirty."""
    carbon = Series((100.0, 300.0), DAY / 2)
    books = meter(Budget(of="carbon", amount=0.15), carbon=carbon)
    books.watts = WATTS
    at = books.next_change()
    # 0.05 kg by noon, then 0.15 in half a day: after two thirds of it.
    assert at == pytest.approx(DAY / 2 + DAY / 2 * 2 / 3)
    books.advance(at)
    assert books.is_used_up


def test_what_may_be_drawn() -> None:
    carbon = Series((100.0, 300.0), DAY / 2)
    books = meter(Budget(of="carbon", amount=0.2), carbon=carbon)
    # 1 kWh at 200 g in the mean; or 0.1 kg in each half, which is three times as much in the first.
    assert books.allowance() == pytest.approx(WATTS)
    assert books.even() == pytest.approx(2 * WATTS)
    assert books.until() == DAY / 2
    books.watts = books.even()
    books.advance(DAY / 2)
    assert books.even() == pytest.approx(2 / 3 * WATTS)
    assert math.isinf(meter(Budget(of="energy", amount=1.0, window_seconds=math.inf)).allowance())


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(0.0, 500.0), min_size=1, max_size=5),
    st.lists(st.tuples(st.floats(1.0, 9000.0), st.floats(0.0, 1.0)), max_size=12),
    st.booleans(),
)
def test_who_draws_what_is_allowed_overdraws_nothing(
    values: list[float], steps: list[tuple[float, float]], evenly: bool
) -> None:
    """Whatever part of it is drawn from time to time, and however long each lasts."""
    carbon = Series(tuple(values), 3600.0)
    books = meter(Budget(of="carbon", amount=3.0, window_seconds=20_000.0), carbon=carbon)
    for seconds, part in steps:
        end = books.now + seconds
        while books.now < end:
            most = books.even() if evenly else books.allowance()
            books.watts = part * most if most < math.inf else 1e6
            books.advance(min(end, books.until()))
            for _, had, spent in books.accounts[0].windows:
                assert spent <= had * (1 + 1e-9)
            assert books.accounts[0].left >= -1e-9 * books.accounts[0].had


def test_a_restored_meter_goes_on_alike() -> None:
    carbon = Series((100.0, 300.0), 7000.0)
    books = meter(Budget(of="carbon", amount=0.2, window_seconds=9000.0), carbon=carbon)
    books.watts = 500.0
    books.advance(10_000.0)
    other = Meter(books.supply)
    other.restore(books.state())
    for each in (books, other):
        each.advance(30_000.0)
    assert other.state() == books.state()


@pytest.mark.parametrize(
    ("budget", "series", "said"),
    [
        (Budget(of="carbon", amount=1.0), {}, "carbon intensity"),
        (Budget(of="cost", amount=1.0), {"carbon": constant(1.0)}, "a price"),
    ],
)
def test_a_budget_needs_its_series(budget: Budget, series: dict[str, Series], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Supply(budgets=(budget,), **series)

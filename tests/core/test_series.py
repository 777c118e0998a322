"""Series of carbon intensity and price: their integrals against sums made second by second."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.series import Series, constant

VALUES = st.lists(st.integers(0, 5), min_size=1, max_size=6).map(tuple)
MOMENTS = st.integers(-50, 200)


def summed(series: Series, begin: int, end: int) -> float:
    """The integral, second by second."""
    return math.fsum(series.at(second + 0.5) for second in range(begin, end))


@settings(deadline=None, max_examples=60)
@given(VALUES, st.integers(1, 7), st.integers(-5, 5), MOMENTS, st.integers(0, 100))
def test_the_integral_is_the_sum(
    values: tuple[int, ...], step: int, start: int, begin: int, seconds: int
) -> None:
    series = Series(tuple(map(float, values)), float(step), float(start))
    found = series.integral(begin, begin + seconds)
    assert found == pytest.approx(summed(series, begin, begin + seconds), abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(VALUES, st.integers(1, 7), MOMENTS, st.floats(0.0, 500.0))
def test_an_amount_is_reached_at_the_first_moment(
    values: tuple[int, ...], step: int, begin: int, amount: float
) -> None:
    series = Series(tuple(map(float, values)), float(step))
    end = series.reached(begin, amount)
    if not any(values) and amount:
        assert end == math.inf
        return
    assert end >= begin
    assert series.integral(begin, end) == pytest.approx(amount, abs=1e-6)
    if amount > 1e-6:
        assert series.integral(begin, max(end - 1e-3, begin)) < amount


def test_a_series_begins_anew() -> None:
    series = Series((1.0, 3.0), 10.0, start=5.0)
    assert [series.at(t) for t in (5, 14.9, 15, 24.9, 25, 35, -5)] == [1, 1, 3, 3, 1, 3, 3]
    assert series.next_change(5) == 15
    assert series.next_change(15) == 25
    assert constant(2.0).next_change(7.0) == math.inf
    assert constant(2.0).integral(1.0, 4.0) == 6.0


@pytest.mark.parametrize(
    ("values", "step"), [((), 1.0), ((math.nan,), 1.0), ((1.0,), 0.0), ((math.inf,), 1.0)]
)
def test_what_is_no_series(values: tuple[float, ...], step: float) -> None:
    with pytest.raises(ValueError, match=r"must be|at least"):
        Series(values, step)

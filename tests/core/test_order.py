"""Who goes first, and how far devices reach down the line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bough.core.order import CHUNK, fit_in_order, in_order, stable_order
from bough.testing.views import Row, make_view

numbers = st.floats(allow_nan=False)
#: Floats that differ in their last bits only, where packing bits could go wrong.
neighbours = st.integers(-3, 3).map(lambda k: 1e9 + k * 2.0**-23)
keys = st.one_of(
    st.lists(numbers, max_size=30),
    st.lists(neighbours, max_size=30),
    st.lists(st.sampled_from([0.0, -0.0, 1e-300, -1e-300, float("inf")]), max_size=30),
)
small = settings(max_examples=60, deadline=None)


class TestStableOrder:
    @small
    @given(keys)
    def test_sorts_floats_and_leaves_equal_ones_in_their_order(self, key: list[float]) -> None:
        expected = sorted(range(len(key)), key=key.__getitem__)
        assert stable_order(np.array(key, np.float64)).tolist() == expected

    @small
    @given(st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**62), 2**62)), max_size=30))
    def test_sorts_integers(self, key: list[int]) -> None:
        expected = sorted(range(len(key)), key=key.__getitem__)
        assert stable_order(np.array(key, np.int64)).tolist() == expected

    def test_sorts_truth_and_small_numbers(self) -> None:
        assert stable_order(np.array([True, False, True, False])).tolist() == [1, 3, 0, 2]
        assert stable_order(np.array([2, 0, 2, 1], np.uint8)).tolist() == [1, 3, 0, 2]

    def test_unknown_comes_last(self) -> None:
        assert stable_order(np.array([np.nan, 2.0, np.nan, 1.0])).tolist() == [3, 1, 0, 2]


class TestInOrder:
    def test_without_keys_as_submitted(self) -> None:
        assert in_order(make_view(1, [Row(), Row(), Row()])).tolist() == [0, 1, 2]

    def test_first_key_counts_most(self) -> None:
        view = make_view(1, [Row(), Row(), Row()])
        order = in_order(view, np.array([1, 0, 1]), np.array([2.0, 5.0, 1.0]))
        assert order.tolist() == [1, 2, 0]

    def test_who_may_not_be_parked_comes_first_then_keys_then_priority(self) -> None:
        rows = [Row(), Row(priority=1), Row(priority=1), Row(size=1, must=True, priority=-1)]
        key = np.array([0, 1, 0, 1])
        assert in_order(make_view(4, rows), key).tolist() == [3, 2, 0, 1]

    def test_equal_rows_stay_as_in_the_base(self) -> None:
        view = make_view(1, [Row(), Row(), Row()])
        order = in_order(view, np.array([1, 0, 1]), base=np.array([2, 1, 0]))
        assert order.tolist() == [1, 2, 0]


def one_by_one(size: list[int], devices: int, order: list[int], skip: bool) -> list[int]:
    """What granting in order means."""
    granted = [0] * len(size)
    for row in order:
        if size[row] <= devices:
            granted[row] = size[row]
            devices -= size[row]
        elif not skip:
            break
    return granted


class TestFitInOrder:
    def test_stops_at_the_first_that_does_not_fit(self, way: str) -> None:
        assert fit_in_order(np.array([2, 4, 1]), 4).tolist() == [2, 0, 0]

    def test_or_passes_over_it(self, way: str) -> None:
        assert fit_in_order(np.array([2, 4, 1]), 4, skip=True).tolist() == [2, 0, 1]

    def test_goes_by_the_order_given(self, way: str) -> None:
        assert fit_in_order(np.array([2, 4, 1]), 4, np.array([1, 2, 0])).tolist() == [0, 4, 0]

    def test_rows_left_out_get_nothing(self, way: str) -> None:
        size = np.array([2, 4, 1])
        assert fit_in_order(size, 9, np.array([2, 0]), skip=True).tolist() == [2, 0, 1]
        assert fit_in_order(size, 9, np.zeros(0, np.int64)).tolist() == [0, 0, 0]

    @settings(small, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def test_equals_granting_one_by_one(self, way: str, data: st.DataObject) -> None:
        size = data.draw(st.lists(st.integers(0, 9), max_size=20))
        devices, skip = data.draw(st.integers(0, 60)), data.draw(st.booleans())
        order = data.draw(st.permutations(range(len(size))))
        found = fit_in_order(np.array(size, np.int64), devices, np.array(order, np.int64), skip)
        assert found.tolist() == one_by_one(size, devices, order, skip)
        found = fit_in_order(np.array(size, np.int64), devices, None, skip)
        assert found.tolist() == one_by_one(size, devices, list(range(len(size))), skip)

    @pytest.mark.parametrize("devices", [0, 100, 5_000, 10**9])
    @pytest.mark.parametrize("skip", [False, True])
    def test_long_lines(self, way: str, devices: int, skip: bool) -> None:
        random = np.random.default_rng(1)
        size, order = random.integers(1, 65, 5 * CHUNK), random.permutation(5 * CHUNK)
        expected = one_by_one(size.tolist(), devices, order.tolist(), skip)
        assert fit_in_order(size, devices, order, skip).tolist() == expected

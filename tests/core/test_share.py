"""Sharing: equal shares, greatest gain, the largest that fits; each against plain words."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.sharing import marginally_filled, own_sizes, water_filled

from bough.core import share
from bough.core.policy import View
from bough.testing.strategies import views
from bough.testing.views import Row, described, make_view

many = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
UP_TO_8 = (1, 2, 4, 8)


class TestWaterFill:
    def test_all_rise_together(self, way: str) -> None:
        view = make_view(8, [Row(sizes=UP_TO_8)] * 2)
        assert share.water_fill(view).tolist() == [4, 4]

    def test_what_is_left_over_goes_to_the_first_who_can_step(self, way: str) -> None:
        view = make_view(7, [Row(sizes=UP_TO_8)] * 3)
        assert share.water_fill(view).tolist() == [2, 2, 2]
        view = make_view(8, [Row(sizes=UP_TO_8)] * 3)
        assert share.water_fill(view).tolist() == [4, 2, 2]

    def test_who_can_use_little_leaves_it_to_others(self, way: str) -> None:
        view = make_view(9, [Row(sizes=(1,)), Row(sizes=UP_TO_8)])
        assert share.water_fill(view).tolist() == [1, 8]

    def test_leasts_come_first_and_in_order(self, way: str) -> None:
        view = make_view(5, [Row(sizes=UP_TO_8), Row(sizes=(4,)), Row(sizes=(1,))])
        assert share.water_fill(view).tolist() == [1, 4, 0]

    def test_bounds_hold(self, way: str) -> None:
        rows = [Row(sizes=UP_TO_8, size=4, lo=4), Row(sizes=UP_TO_8, size=1, hi=1)]
        assert share.water_fill(make_view(8, [*rows, Row(sizes=UP_TO_8)])).tolist() == [4, 1, 2]

    def test_nobody_passes_the_peak_of_their_speed(self, way: str) -> None:
        view = make_view(8, [Row(sizes=UP_TO_8, speed=(1.0, 1.8, 1.8, 1.5))])
        assert share.water_fill(view).tolist() == [2]

    def test_leasts_and_who_takes_part_can_be_given(self, way: str) -> None:
        view = make_view(12, [Row(sizes=UP_TO_8)] * 4)
        least = np.array([1, 1, 8, 1])
        assert share.water_fill(view, least=least).tolist() == [2, 1, 8, 1]
        assert share.water_fill(view, order=np.array([3, 0])).tolist() == [4, 0, 0, 8]
        assert share.water_fill(view, order=np.zeros(0, np.int64)).tolist() == [0] * 4

    def test_weights_are_what_is_evened_out(self, way: str) -> None:
        view = make_view(12, [Row(sizes=UP_TO_8), Row(sizes=UP_TO_8)])
        assert share.water_fill(view, np.array([1.0, 2.0])).tolist() == [4, 8]

    @many
    @given(views())
    def test_equals_handing_out_step_by_step(self, way: str, view: View) -> None:
        assert share.water_fill(view).tolist() == water_filled(view), described(view)

    @many
    @given(views())
    def test_so_with_weights(self, way: str, view: View) -> None:
        assert share.water_fill(view, view.jobs.weight).tolist() == water_filled(view, True)

    @many
    @given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 14))
    def test_is_the_fairest_of_all(self, most: list[int], devices: int) -> None:
        """With single steps, nothing has a greater least, then a greater second least, …"""
        view = make_view(devices, [Row(sizes=tuple(range(1, top + 1))) for top in most])
        if devices < len(most):
            return
        possible = itertools.product(*(range(1, top + 1) for top in most))
        fairest = max(sorted(sizes) for sizes in possible if sum(sizes) <= devices)
        assert sorted(share.water_fill(view).tolist()) == fairest


class TestMarginalFill:
    def test_devices_go_where_they_add_most(self, way: str) -> None:
        rows = [Row(sizes=(1, 2, 3), speed=(1.0, 1.1, 1.2)), Row(sizes=(1, 2, 3))]
        assert share.marginal_fill(make_view(4, rows)).tolist() == [1, 3]

    def test_steps_may_be_of_several_devices(self, way: str) -> None:
        rows = [Row(sizes=(1, 4), speed=(1.0, 3.0)), Row(sizes=(1, 2), speed=(1.0, 1.5))]
        assert share.marginal_fill(make_view(5, rows)).tolist() == [4, 1]

    def test_a_poor_size_does_not_hide_a_good_one(self, way: str) -> None:
        rows = [Row(sizes=(1, 2, 4), speed=(1.0, 1.0, 4.0)), Row(sizes=(1, 2), speed=(1.0, 1.5))]
        assert share.marginal_fill(make_view(5, rows)).tolist() == [4, 1]

    def test_what_no_step_can_use_goes_to_sizes_that_gain_little(self, way: str) -> None:
        view = make_view(2, [Row(sizes=(1, 2, 4), speed=(1.0, 1.2, 4.0))])
        assert share.marginal_fill(view).tolist() == [2]

    def test_devices_that_add_nothing_stay_idle(self, way: str) -> None:
        view = make_view(8, [Row(sizes=UP_TO_8, speed=(1.0, 1.8, 1.8, 1.5))])
        assert share.marginal_fill(view).tolist() == [2]

    def test_gains_can_be_given(self, way: str) -> None:
        view = make_view(4, [Row(sizes=(1, 2, 3)), Row(sizes=(1, 2, 3), speed=(1.0, 1.1, 1.2))])
        gain = np.array([[0.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0]])
        assert share.marginal_fill(view, gain).tolist() == [1, 3]

    def test_leasts_can_be_given(self, way: str) -> None:
        rows = [Row(sizes=(1, 2, 3), speed=(1.0, 1.1, 1.2)), Row(sizes=(1, 2, 3))]
        least = np.array([2, 1])
        assert share.marginal_fill(make_view(4, rows), least=least).tolist() == [2, 2]
        weights = np.array([9.0, 0.1])
        found = share.marginal_fill(make_view(4, rows), weights=weights, least=least)
        assert found.tolist() == [3, 1]

    def test_rounding_does_not_decide(self, way: str) -> None:
        """Speeds proportional to size are so whatever their last bits say: all rise together."""
        view = make_view(12, [Row(sizes=UP_TO_8, speed=(0.1, 0.2, 0.4, 0.8))] * 3)
        assert share.marginal_fill(view).tolist() == [4, 4, 4]
        view = make_view(6, [Row(sizes=(1, 2, 3), speed=(0.1, 0.2, 0.1 + 0.2))] * 3)
        assert share.marginal_fill(view).tolist() == [2, 2, 2]

    @many
    @given(views())
    def test_equals_handing_out_step_by_step(self, way: str, view: View) -> None:
        assert share.marginal_fill(view).tolist() == marginally_filled(view), described(view)

    @many
    @given(views())
    def test_so_with_weights(self, way: str, view: View) -> None:
        found = share.marginal_fill(view, weights=view.jobs.weight).tolist()
        assert found == marginally_filled(view, True)

    @many
    @given(st.data())
    def test_is_the_fastest_of_all(self, data: st.DataObject) -> None:
        """With concave speeds and single steps, no other sizes do more work per second."""
        gains = st.lists(st.integers(0, 20), min_size=1, max_size=5)
        rows = []
        for found in data.draw(st.lists(gains, min_size=1, max_size=3)):
            speed = itertools.accumulate(sorted((g + 1 for g in found), reverse=True))
            rows.append(Row(sizes=tuple(range(1, len(found) + 1)), speed=tuple(map(float, speed))))
        view = make_view(data.draw(st.integers(len(rows), 14)), rows)
        tables = [own_sizes(view, i) for i in range(len(rows))]
        possible = itertools.product(*(list(table)[1:] for table in tables))
        best = max(
            sum(table[size] for table, size in zip(tables, sizes, strict=True))
            for sizes in possible
            if sum(sizes) <= view.devices
        )
        found = share.marginal_fill(view).tolist()
        assert sum(table[size] for table, size in zip(tables, found, strict=True)) == best


class TestFillInOrder:
    def test_each_takes_the_largest_size_that_is_free(self) -> None:
        view = make_view(11, [Row(sizes=UP_TO_8)] * 3)
        assert share.fill_in_order(view, np.array([0, 1, 2])).tolist() == [8, 2, 1]
        assert share.fill_in_order(view, np.array([2, 1, 0])).tolist() == [1, 2, 8]

    def test_up_to_what_is_allowed(self) -> None:
        view = make_view(11, [Row(sizes=UP_TO_8)] * 3)
        most = np.array([2, 5, 8])
        assert share.fill_in_order(view, np.arange(3), most).tolist() == [2, 4, 4]

    @many
    @given(views(), st.randoms(use_true_random=False))
    def test_equals_taking_one_after_another(self, view: View, random: object) -> None:
        jobs, order = view.jobs, list(range(view.jobs.n))
        random.shuffle(order)  # type: ignore[attr-defined]
        aside = (jobs.lo * jobs.must).tolist()
        free, expected = view.devices - sum(aside), list(aside)
        for row in order:
            top = min(jobs.hi[row], free + aside[row])
            able = [s for s in own_sizes(view, row) if jobs.lo[row] <= s <= top]
            expected[row] = max(able, default=0)
            free -= expected[row] - aside[row]
        assert share.fill_in_order(view, np.array(order, np.int64)).tolist() == expected


class TestWished:
    def test_within_bounds(self) -> None:
        rows = [Row(sizes=UP_TO_8), Row(sizes=UP_TO_8, wish=4), Row(sizes=UP_TO_8, size=2, hi=2)]
        assert share.wished(make_view(8, rows).jobs).tolist() == [8, 4, 2]

    def test_who_may_not_be_parked_keeps_what_is_held(self) -> None:
        rows = [Row(sizes=UP_TO_8, size=2, must=True), Row(sizes=UP_TO_8, size=2)]
        jobs = make_view(8, rows).jobs
        assert share.wished(jobs).tolist() == [2, 8]
        assert share.wished(jobs, keep=True).tolist() == [2, 2]

"""Policies that choose sizes: equal shares, greatest gain, earliest deadline."""

from __future__ import annotations

from bough.policies.edf import Edf
from bough.policies.greedy import Greedy
from bough.policies.max_min import MaxMin
from bough.testing.views import Row, granted, make_view

UP_TO_8 = (1, 2, 4, 8)


class TestMaxMin:
    def test_devices_are_evened_out(self) -> None:
        assert granted(MaxMin(), make_view(16, [Row(sizes=UP_TO_8)] * 4)).tolist() == [4] * 4

    def test_by_weight_if_wanted(self) -> None:
        view = make_view(6, [Row(sizes=UP_TO_8, weight=2.0), Row(sizes=UP_TO_8)])
        assert granted(MaxMin(), view).tolist() == [4, 2]
        view = make_view(12, [Row(sizes=UP_TO_8), Row(sizes=UP_TO_8, weight=2.0)])
        assert granted(MaxMin(weighted=True), view).tolist() == [4, 8]

    def test_a_newcomer_makes_others_shrink(self) -> None:
        rows = [Row(sizes=UP_TO_8, size=8), Row(sizes=UP_TO_8)]
        assert granted(MaxMin(), make_view(8, rows)).tolist() == [4, 4]


class TestGreedy:
    ROWS = (
        Row(sizes=UP_TO_8, speed=(1.0, 1.9, 3.6, 6.8)),
        Row(sizes=UP_TO_8, speed=(1.0, 1.5, 2.0, 2.2), weight=4.0),
    )

    def test_devices_go_where_they_add_most(self) -> None:
        assert granted(Greedy(), make_view(9, self.ROWS)).tolist() == [8, 1]

    def test_by_weight_if_wanted(self) -> None:
        assert granted(Greedy(weighted=True), make_view(9, self.ROWS)).tolist() == [4, 4]


class TestEdf:
    ROWS = (
        Row(sizes=UP_TO_8, speed=(1.0, 1.8, 2.0, 1.5)),
        Row(sizes=UP_TO_8, speed=(1.0, 1.8, 2.0, 1.5), deadline=50.0),
        Row(sizes=UP_TO_8, speed=(1.0, 1.8, 2.0, 1.5), deadline=40.0),
    )

    def test_the_earliest_takes_what_makes_it_fastest(self) -> None:
        assert granted(Edf(), make_view(9, self.ROWS)).tolist() == [1, 4, 4]

    def test_greedy_takes_more_than_is_good(self) -> None:
        assert granted(Edf(greedy=True), make_view(9, self.ROWS)).tolist() == [0, 1, 8]

    def test_who_may_not_be_parked_keeps_the_least(self) -> None:
        rows = [Row(sizes=UP_TO_8, size=4, must=True), *self.ROWS[1:]]
        assert granted(Edf(greedy=True), make_view(9, rows)).tolist() == [1, 0, 8]

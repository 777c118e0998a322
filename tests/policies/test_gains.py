"""Policies that weigh one job's time against another's: Optimus, and AFS."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.core.model import INFINITY
from bough.core.policy import Plan
from bough.policies.afs import Afs
from bough.policies.optimus import Optimus
from bough.testing.views import Row, granted, make_view

UP_TO_4 = (1, 2, 3, 4)


def wake_at(policy: Optimus, *rows: Row, devices: int, now: float = 0.0) -> float:
    plan = policy.plan(make_view(devices, rows, now=now))
    assert isinstance(plan, Plan)
    return plan.wake_at


@st.composite
def concave(draw: st.DrawFn, sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Speeds that grow with every device, by less each time."""
    gains = sorted(draw(st.lists(st.integers(1, 20), min_size=len(sizes), max_size=len(sizes))))
    speeds, total = [], 0.0
    for gain in reversed(gains):
        total += gain
        speeds.append(total)
    return tuple(speeds)


class TestOptimus:
    def test_a_device_goes_where_it_saves_most_time(self) -> None:
        """One more saves the first 1000 - 500 s, the second 300 - 150 s; a third saves 167 s."""
        rows = [
            Row(sizes=UP_TO_4, speed=(1.0, 2.0, 3.0, 4.0), left=1000.0),
            Row(sizes=UP_TO_4, speed=(1.0, 2.0, 3.0, 4.0), left=300.0),
        ]
        assert granted(Optimus(), make_view(3, rows)).tolist() == [2, 1]
        assert granted(Optimus(), make_view(4, rows)).tolist() == [3, 1]
        assert granted(Optimus(), make_view(5, rows)).tolist() == [3, 2]

    def test_speed_alone_does_not_decide(self) -> None:
        """Twice the speed is worth little to a job that is nearly done."""
        rows = [
            Row(sizes=(1, 2), speed=(1.0, 2.0), left=10.0),
            Row(sizes=(1, 2), speed=(1.0, 1.2), left=1000.0),
        ]
        assert granted(Optimus(), make_view(3, rows)).tolist() == [1, 2]

    def test_leasts_go_first_in_order_of_submission(self) -> None:
        rows = [Row(sizes=(2, 4), left=10.0), Row(sizes=(2, 4), left=1e6), Row(sizes=(2, 4))]
        assert granted(Optimus(), make_view(5, rows)).tolist() == [2, 2, 0]

    def test_what_saves_nothing_is_not_taken(self) -> None:
        rows = [Row(sizes=UP_TO_4, speed=(1.0, 1.5, 1.5, 1.2), left=100.0)]
        assert granted(Optimus(), make_view(8, rows)).tolist() == [2]

    def test_without_an_estimate_jobs_like_it_tell(self) -> None:
        known, unknown = Row(sizes=(1, 2), left=100.0), Row(sizes=(1, 2), guess=500.0)
        assert granted(Optimus(), make_view(3, [known, unknown])).tolist() == [1, 2]

    def test_is_decided_anew_at_each_interval_while_somebody_wants_more(self) -> None:
        row = Row(sizes=(1, 2), left=1e6)
        assert wake_at(Optimus(), row, row, devices=3, now=700.0) == 1200.0
        assert wake_at(Optimus(), row, row, devices=4, now=700.0) == INFINITY

    def test_the_interval_is_positive(self) -> None:
        with pytest.raises(ValueError, match="interval_seconds must be positive"):
            Optimus(interval_seconds=0.0)

    @given(
        st.lists(st.tuples(concave(UP_TO_4), st.integers(1, 1000)), min_size=1, max_size=3),
        st.integers(3, 12),
    )
    def test_no_allocation_ends_sooner_in_sum(
        self, jobs: list[tuple[tuple[float, ...], int]], devices: int
    ) -> None:
        """On concave speeds greed is optimal: checked against all allocations."""
        rows = [Row(sizes=UP_TO_4, speed=speed, left=float(left)) for speed, left in jobs]

        def seconds(sizes: tuple[int, ...]) -> float:
            return sum(left / speed[n - 1] for (speed, left), n in zip(jobs, sizes, strict=True))

        sizes = tuple(granted(Optimus(), make_view(devices, rows)).tolist())
        every = [s for s in product(UP_TO_4, repeat=len(jobs)) if sum(s) <= devices]
        assert seconds(sizes) <= min(map(seconds, every)) * (1 + 1e-9)


class TestAfs:
    def test_the_shorter_job_goes_first_where_both_scale_alike(self) -> None:
        """Its gain is 1/1, then 1/2, then 1/3 of its speed; the other's is 1/2 of its next."""
        rows = [
            Row(sizes=UP_TO_4, speed=(1.0, 2.0, 3.0, 4.0), left=1000.0),
            Row(sizes=UP_TO_4, speed=(1.0, 2.0, 3.0, 4.0), left=300.0),
        ]
        found = [granted(Afs(), make_view(devices, rows)).tolist() for devices in (3, 4, 5)]
        assert found == [[1, 2], [1, 3], [2, 3]]

    def test_a_longer_job_that_gains_more_wins(self) -> None:
        """The long one gains 1/2 of its new speed, the short one 1/5 of its present one."""
        short = Row(sizes=(1, 2), speed=(1.0, 1.2), left=100.0)
        long = Row(sizes=(1, 2), speed=(1.0, 2.0), left=1000.0)
        assert granted(Afs(), make_view(3, [short, long])).tolist() == [1, 2]
        flat = Row(sizes=(1, 2), speed=(1.0, 1.2), left=1000.0)
        assert granted(Afs(), make_view(3, [short, flat])).tolist() == [2, 1]

    def test_everybody_gets_the_least_first_the_shortest_before_others(self) -> None:
        rows = [Row(sizes=(1, 2), left=float(left)) for left in (30, 20, 10)]
        assert granted(Afs(), make_view(2, rows)).tolist() == [0, 1, 1]
        assert granted(Afs(), make_view(4, rows)).tolist() == [1, 1, 2]

    def test_who_cannot_use_what_is_left_is_passed_over(self) -> None:
        rows = [Row(sizes=(1, 4), left=10.0), Row(sizes=(1, 2), left=100.0)]
        assert granted(Afs(), make_view(4, rows)).tolist() == [1, 2]

    def test_blind_takes_the_job_that_has_done_less_for_the_shorter(self) -> None:
        """Both have run for 100 s; the second has done half as much, and has more to do."""
        rows = [
            Row(sizes=(1, 2), speed=(2.0, 4.0), size=1, left=300.0),
            Row(sizes=(1, 2), speed=(1.0, 2.0), size=1, left=900.0),
        ]
        view = make_view(3, rows, now=100.0)
        assert granted(Afs(), view).tolist() == [2, 1]
        rows = [
            Row(sizes=(1, 2), speed=(1.0, 2.0), size=2, left=300.0, since=-100.0),
            Row(sizes=(1, 2), speed=(1.0, 2.0), size=1, left=900.0),
        ]
        view = make_view(3, rows, now=10.0)
        assert granted(Afs(), view).tolist() == [2, 1]
        assert granted(Afs(blind=True), view).tolist() == [1, 2]

    @given(concave((1, 2)), concave((1, 2)), st.integers(1, 1000), st.integers(1, 1000))
    def test_of_two_jobs_it_ends_both_sooner_in_sum(
        self, one: tuple[float, ...], other: tuple[float, ...], left: int, other_left: int
    ) -> None:
        """The rule is what a sum of two completion times comes to, worked out both ways.

        Whoever ends sooner leaves its devices, so that the other goes on with two at the latest
        then.
        """
        rows = [
            Row(sizes=(1, 2), speed=one, left=float(left)),
            Row(sizes=(1, 2), speed=other, left=float(other_left)),
        ]
        sizes = granted(Afs(), make_view(3, rows)).tolist()
        soon, late = (one, left), (other, other_left)
        if left / one[0] > other_left / other[0]:
            soon, late, sizes = late, soon, sizes[::-1]

        def ends(n: int, m: int) -> float:
            first = soon[1] / soon[0][n - 1]
            rest = late[1] - late[0][m - 1] * first
            return 2 * first + rest / late[0][1]

        assert ends(sizes[0], sizes[1]) <= min(ends(2, 1), ends(1, 2)) + 1e-9

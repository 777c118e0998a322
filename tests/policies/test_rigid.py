"""Policies that put jobs in an order, each by the example that tells it from the others."""

from __future__ import annotations

import numpy as np
import pytest

from bough.core.model import INFINITY
from bough.core.policy import Plan, Policy, View
from bough.policies.drf import Drf
from bough.policies.fifo import Fifo
from bough.policies.las import Las
from bough.policies.srsf import Srsf
from bough.policies.srtf import Srtf
from bough.testing.views import Row, granted, make_view


def job(size: int, left: float = INFINITY, running: bool = False, **known: object) -> Row:
    """A job that runs on so many devices or not at all, at one unit of work a second."""
    own = {"sizes": (size,), "speed": (1.0,), "size": size if running else 0, "left": left}
    return Row(**(own | known))  # type: ignore[arg-type]


def order(policy: Policy, view: View) -> list[int]:
    plan = policy.plan(view)
    assert isinstance(plan, Plan)
    assert plan.order is not None
    return plan.order.tolist()


class TestFifo:
    def test_the_first_that_does_not_fit_holds_back_the_rest(self) -> None:
        view = make_view(8, [job(4, running=True), job(8), job(2)])
        assert granted(Fifo(), view).tolist() == [4, 0, 0]
        assert granted(Fifo(skip=True), view).tolist() == [4, 0, 2]

    def test_who_runs_is_not_preempted_by_who_came_before(self) -> None:
        view = make_view(8, [job(8), job(4, running=True)])
        assert granted(Fifo(skip=True), view).tolist() == [0, 4]

    def test_priority_goes_before_submission(self) -> None:
        view = make_view(4, [job(4), job(4, priority=1)])
        assert granted(Fifo(), view).tolist() == [0, 4]

    def test_an_elastic_job_gets_its_wish_and_keeps_what_it_holds(self) -> None:
        rows = [Row(sizes=(1, 2, 4), size=2), Row(sizes=(1, 2, 4))]
        assert granted(Fifo(), make_view(6, rows)).tolist() == [2, 4]


class TestShortestFirst:
    ROWS = (job(1, 100.0), job(8, 50.0), job(1), job(2, 60.0))

    def test_least_time_left_goes_first(self) -> None:
        assert order(Srtf(), make_view(8, self.ROWS)) == [1, 3, 0, 2]

    def test_least_service_left_goes_first(self) -> None:
        assert order(Srsf(), make_view(8, self.ROWS)) == [0, 3, 1, 2]

    def test_a_running_job_is_preempted_and_its_progress_counts(self) -> None:
        running = job(8, 100.0, running=True)
        at_60 = make_view(8, [running, job(8, 50.0)], now=60.0)
        at_40 = make_view(8, [running, job(8, 50.0)], now=40.0)
        assert granted(Srtf(), at_60).tolist() == [8, 0]
        assert granted(Srtf(), at_40).tolist() == [0, 8]


class TestLas:
    def test_who_used_little_goes_first(self) -> None:
        rows = [job(4, attained=5000.0, since=90.0, running=True), job(4, attained=10.0)]
        assert granted(Las(), make_view(4, rows, now=100.0)).tolist() == [0, 4]

    def test_within_a_queue_who_runs_goes_on(self) -> None:
        rows = [job(4), job(4, attained=10.0, running=True)]
        assert granted(Las(), make_view(4, rows)).tolist() == [0, 4]

    def test_wakes_when_the_next_running_job_falls(self) -> None:
        rows = [job(4, running=True, since=50.0), job(2, running=True), job(8)]
        plan = Las().plan(make_view(8, rows, now=100.0))
        assert plan.wake_at == pytest.approx(50.0 + 3250.0 / 4, abs=1e-4)

    def test_has_nothing_to_wake_for_in_the_last_queue(self) -> None:
        rows = [job(4, running=True, attained=9e9)]
        assert Las().plan(make_view(8, rows)).wake_at == INFINITY

    @pytest.mark.parametrize("now", [0.0, 1.7e9])
    @pytest.mark.parametrize("size", [1, 3, 512])
    def test_waking_is_falling(self, now: float, size: int) -> None:
        """At the moment named the job has fallen, whatever rounding clocks do."""
        row = job(size, running=True, since=now, attained=0.1)
        view = make_view(size, [row, job(size)], now=now + 0.3)
        wake_at = Las().plan(view).wake_at
        assert granted(Las(), make_view(size, [row, job(size)], now=wake_at)).tolist() == [0, size]

    def test_more_queues(self) -> None:
        rows = [job(1, attained=8000.0), job(1, attained=4000.0), job(1, attained=5.0)]
        view = make_view(3, rows)
        assert order(Las(limits=(3250.0, 7200.0)), view) == [2, 1, 0]
        assert order(Las(), view) == [2, 0, 1]

    def test_waiting_long_enough_brings_a_job_back(self) -> None:
        rows = [job(1, attained=1.0), job(1, attained=9e4, ran=1000.0, submitted=0.0)]
        assert order(Las(promote=2.0), make_view(1, rows, now=2900.0)) == [0, 1]
        then = make_view(1, rows[::-1], now=3000.0)
        assert order(Las(promote=2.0), then) == [0, 1]
        assert order(Las(), then) == [1, 0]
        wake_at = Las(promote=2.0).plan(make_view(1, rows, now=2900.0)).wake_at
        assert wake_at == pytest.approx(3000.0, abs=1e-3)

    def test_who_was_brought_back_stays_until_half_the_wait_would_do(self) -> None:
        row = job(1, attained=9e4, ran=1000.0, running=True, since=3000.0)
        rows = [row, job(1, attained=1.0)]
        assert granted(Las(promote=2.0), make_view(1, rows, now=3001.0)).tolist() == [1, 0]
        assert granted(Las(promote=2.0), make_view(1, rows, now=4001.0)).tolist() == [0, 1]
        wake_at = Las(promote=2.0).plan(make_view(1, rows, now=3001.0)).wake_at
        assert wake_at == pytest.approx(4000.0, abs=1e-3)


class TestDrf:
    def test_more_jobs_give_no_more_devices(self) -> None:
        rows = [job(2, user=0) for _ in range(4)] + [job(2, user=1) for _ in range(2)]
        assert granted(Drf(), make_view(8, rows)).tolist() == [2, 2, 0, 0, 2, 2]

    def test_what_is_held_counts(self) -> None:
        rows = [job(4, user=0, running=True), job(2, user=0), job(2, user=1), job(2, user=1)]
        assert granted(Drf(), make_view(8, rows)).tolist() == [4, 0, 2, 2]

    def test_running_jobs_are_kept_unless_told_otherwise(self) -> None:
        rows = [job(8, user=0, running=True), job(4, user=0), job(4, user=1)]
        assert granted(Drf(), make_view(8, rows)).tolist() == [8, 0, 0]
        rows = [job(4, user=0, running=True), job(4, user=0, running=True), job(4, user=1)]
        assert granted(Drf(preempt=True), make_view(8, rows)).tolist() == [4, 0, 4]

    def test_the_resource_that_a_user_takes_most_of_counts(self) -> None:
        # The first user's devices come with four times their share of the CPUs.
        rows = [job(1, user=0, takes=(4.0, 0.0)) for _ in range(4)]
        rows += [job(1, user=1, takes=(0.0, 1.0)) for _ in range(6)]
        assert granted(Drf(), make_view(5, rows)).tolist() == [1, 0, 0, 0, 1, 1, 1, 1, 0, 0]

    def test_shares_are_summed_for_each_resource_before_the_largest_counts(self) -> None:
        # Of what the second user's jobs take most of, each takes another thing: it holds 2, not 4.
        rows = [
            job(1, user=0, running=True, takes=(3.0, 0.0)),
            job(1, user=1, running=True, takes=(2.0, 0.0)),
            job(1, user=1, running=True, takes=(0.0, 2.0)),
            job(1, user=0),
            job(1, user=1),
        ]
        assert granted(Drf(), make_view(4, rows)).tolist() == [1, 1, 1, 0, 1]


def test_long_lines_are_ordered_as_short_ones() -> None:
    random = np.random.default_rng(5)
    seconds = random.integers(1, 50, 3000).astype(float)
    rows = [job(1, left) for left in seconds.tolist()]
    expected = sorted(range(3000), key=seconds.__getitem__)
    assert order(Srtf(), make_view(10, rows)) == expected

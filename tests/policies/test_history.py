"""Policies that decide by jobs that have ended: Tiresias' Gittins index, and QSSF."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.replays import job as trace_job
from tests.sim.replays import replay

from bough.core.attained import gittins
from bough.core.policy import Plan, View
from bough.policies.las import Las
from bough.policies.qssf import Qssf
from bough.policies.tiresias import Tiresias
from bough.testing.strategies import views
from bough.testing.views import Row, granted, make_view

#: What each job that is left has used, ascending.
State = tuple[int, ...]

histories = st.lists(st.integers(1, 5), min_size=1, max_size=6)


def index(history: list[int], used: float) -> float:
    ascending = np.sort(np.array(history, float))
    return float(gittins(ascending, np.array([used]))[0])


class TestGittins:
    def test_worked_example(self) -> None:
        """Half of the jobs need 1, half 9: to serve for 1 ends half of them at a cost of 1."""
        assert index([1, 9], 0.0) == pytest.approx(0.5 / 1)
        assert index([1, 9], 1.0) == pytest.approx(1 / 8)
        assert index([1, 9], 5.0) == pytest.approx(1 / 4)

    def test_who_outlived_all_has_no_prospect(self) -> None:
        assert index([1, 9], 9.0) == 0.0

    @given(histories, st.integers(0, 4))
    def test_is_the_best_over_all_amounts_of_service(self, history: list[int], used: int) -> None:
        more = [need - used for need in history if need > used]
        every = [
            sum(need <= amount for need in more) / sum(min(need, amount) for need in more)
            for amount in more
        ]
        assert index(history, used) == pytest.approx(max(every, default=0.0))

    @settings(max_examples=40)
    @given(histories, st.lists(st.integers(0, 3), min_size=2, max_size=3))
    def test_no_other_rule_ends_jobs_sooner(self, history: list[int], ages: list[int]) -> None:
        """On one device the index is optimal: checked against all preemptive policies."""
        longest = max(history)
        ages = [min(age, longest - 1) for age in ages]

        def chance(age: int) -> float:
            """To end with one unit more."""
            left = [need for need in history if need > age]
            return sum(need == age + 1 for need in left) / len(left)

        def served(state: State, i: int, value: Callable[[State], float]) -> float:
            others = state[:i] + state[i + 1 :]
            p, cost = chance(state[i]), float(len(state))
            if p:
                cost += p * value(others)
            if p < 1:
                cost += (1 - p) * value(tuple(sorted((*others, state[i] + 1))))
            return cost

        @cache
        def least(state: State) -> float:
            return min((served(state, i, least) for i in range(len(state))), default=0.0)

        @cache
        def by_index(state: State) -> float:
            if not state:
                return 0.0
            best = max(range(len(state)), key=lambda i: index(history, state[i]))
            return served(state, best, by_index)

        state = tuple(sorted(ages))
        assert by_index(state) == pytest.approx(least(state))


class TestTiresias:
    def test_within_a_queue_the_index_decides(self) -> None:
        """Most jobs end at 100; who has used 90 is nearly there, who has used 110 far off."""
        rows = [Row(sizes=(1,), attained=110.0), Row(sizes=(1,), attained=90.0)]
        view = make_view(1, rows, history=[100.0] * 9 + [3000.0])
        assert granted(Tiresias(), view).tolist() == [0, 1]
        rows = [Row(sizes=(1,), attained=90.0), Row(sizes=(1,), attained=110.0)]
        view = make_view(1, rows, history=[100.0] * 9 + [3000.0])
        assert granted(Tiresias(), view).tolist() == [1, 0]

    def test_between_queues_the_service_used_decides(self) -> None:
        rows = [Row(sizes=(1,), attained=3300.0), Row(sizes=(1,), attained=200.0)]
        view = make_view(1, rows, history=[3301.0, 9000.0, 9000.0])
        assert granted(Tiresias(), view).tolist() == [0, 1]
        assert granted(Tiresias(limits=(1e6,)), view).tolist() == [1, 0]

    @given(views())
    def test_by_its_other_rule_it_is_las(self, view: View) -> None:
        for promote in (2.0, float("inf")):
            plan = Tiresias(rule="las", promote=promote).plan(view)
            las = Las(promote=promote).plan(view)
            assert plan.order is not None
            assert las.order is not None
            assert (plan.order.tolist(), plan.wake_at) == (las.order.tolist(), las.wake_at)

    @pytest.mark.parametrize(("comes", "begins"), [(390.0, 1300.0), (420.0, 420.0)])
    def test_learns_from_jobs_that_end(self, comes: float, begins: float) -> None:
        """All used 100 before: who has used 90 is let end, who has used 120 is not."""
        past = [trace_job(f"past{i}", 100.0 * i, 100.0) for i in range(3)]
        rows = [*past, trace_job("one", 300.0, 1000.0), trace_job("other", comes, 50.0)]
        record = replay(rows, "1xv100", "tiresias")
        assert {job.id: job.begin for job in record.jobs}["other"] == begins
        record = replay(rows, "1xv100", "tiresias(rule=las)")
        assert {job.id: job.begin for job in record.jobs}["other"] == 1300.0


class TestQssf:
    def test_the_least_service_expected_goes_first(self) -> None:
        rows = [
            Row(sizes=(4,), speed=(4.0,), guess=400.0, left=1.0),
            Row(sizes=(1,), speed=(1.0,), guess=300.0, left=9e9),
        ]
        assert granted(Qssf(skip=True), make_view(4, rows)).tolist() == [0, 1]
        assert granted(Qssf(estimates="given"), make_view(4, rows)).tolist() == [4, 0]

    def test_running_jobs_are_kept(self) -> None:
        rows = [Row(sizes=(4,), size=4, guess=1e6), Row(sizes=(4,), guess=1.0)]
        assert granted(Qssf(), make_view(4, rows)).tolist() == [4, 0]

    def test_the_first_that_does_not_fit_holds_back_the_rest(self) -> None:
        rows = [Row(sizes=(3,), size=3), Row(sizes=(2,), guess=1.0), Row(sizes=(1,), guess=9.0)]
        assert granted(Qssf(), make_view(4, rows)).tolist() == [3, 0, 0]
        assert granted(Qssf(skip=True), make_view(4, rows)).tolist() == [3, 0, 1]

    def test_users_are_known_by_their_jobs(self) -> None:
        """Of two that wait, the one goes first whose user's jobs used to be short."""
        past = [
            trace_job(f"{user}{i}", 20.0 * i, seconds, user=user)
            for i in range(8)
            for user, seconds in (("quick", 10.0), ("slow", 500.0))
        ]
        blocks = trace_job("blocks", 5000.0, 100.0, 4)
        waits = [
            trace_job(f"{user} again", at, 60.0, 4, user=user)
            for user, at in (("slow", 5001.0), ("quick", 5002.0))
        ]
        record = replay([*past, blocks, *waits], "4xv100", "qssf")
        begin = {job.id: job.begin for job in record.jobs}
        assert begin["quick again"] == 5100.0
        assert begin["slow again"] == 5160.0


def test_without_a_history_start_times_decide() -> None:
    rows = [Row(sizes=(1,)), Row(sizes=(1,), size=1, since=-5.0)]
    plan = Tiresias().plan(make_view(1, rows))
    assert isinstance(plan, Plan)
    assert granted(Tiresias(), make_view(1, rows)).tolist() == [0, 1]

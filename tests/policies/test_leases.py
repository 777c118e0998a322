"""Policies that let devices for a while: Chronus and Themis."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.replays import found, job, replay

from bough.core.cluster import parse_short
from bough.core.model import INFINITY, JobSpec
from bough.core.policy import Plan, Verdict, View
from bough.policies import find
from bough.policies.chronus import Chronus, pack
from bough.policies.themis import Themis, rhos
from bough.sim.engine import simulate
from bough.sim.trace import Trace
from bough.testing.views import Row, granted, make_view


def promised(seconds: float, devices: int, deadline: float, **more: float) -> Row:
    return Row(
        sizes=(devices,), speed=(1.0,), left=seconds, deadline=deadline, guaranteed=True,
        submitted=0.0, **more,
    )  # fmt: skip


class TestChronusLeases:
    def test_worked_example(self) -> None:
        """4 devices, 4 leases: 2 x 3 leases and 4 x 1 and 2 x 4 fill them but for one gap."""
        free = np.full(4, 4)
        assert pack(free, np.array([3, 3, 0, 2])).tolist() == [0, 1, 2]
        assert pack(free, np.array([1, 4, 1, 4])).tolist() == [3]
        assert pack(free, np.array([4, 4, 0, 2])) is None
        assert free.tolist() == [2, 2, 2, 0]

    def test_the_tightest_promise_has_the_first_lease(self) -> None:
        """The second must run in every lease until its deadline; the first can wait."""
        rows = [promised(240.0, 4, 9600.0), promised(480.0, 4, 480.0), Row(sizes=(4,), left=1.0)]
        assert granted(Chronus(), make_view(4, rows)).tolist() == [0, 4, 0]

    def test_best_effort_fills_a_lease_by_least_device_time(self) -> None:
        rows = [
            promised(240.0, 2, 240.0),
            Row(sizes=(1,), speed=(1.0,), left=500.0),
            Row(sizes=(2,), speed=(2.0,), left=200.0),
            Row(sizes=(1,), speed=(1.0,), left=300.0),
        ]
        assert granted(Chronus(), make_view(4, rows)).tolist() == [2, 0, 2, 0]
        assert granted(Chronus(), make_view(3, rows)).tolist() == [2, 0, 0, 1]

    def test_a_lease_is_not_taken_away(self) -> None:
        runs = Row(sizes=(4,), size=4, since=0.0, left=1e4)
        urgent = promised(480.0, 4, 960.0)
        assert granted(Chronus(), make_view(4, [runs, urgent], now=239.0)).tolist() == [4, 0]
        assert granted(Chronus(), make_view(4, [runs, urgent], now=240.0)).tolist() == [0, 4]

    def test_wakes_for_the_next_lease_if_somebody_waits(self) -> None:
        plan = Chronus().plan(make_view(4, [Row(sizes=(4,)), Row(sizes=(4,))], now=250.0))
        assert plan.wake_at == 480.0
        plan = Chronus().plan(make_view(8, [Row(sizes=(4,)), Row(sizes=(4,))], now=250.0))
        assert isinstance(plan, Plan)
        assert plan.wake_at == INFINITY

    @pytest.mark.parametrize("knobs", ["lease_seconds=0", "lease_seconds=inf", "margin=1.0"])
    def test_knobs_are_checked(self, knobs: str) -> None:
        with pytest.raises(ValueError, match=r"lease_seconds|margin"):
            find(f"chronus:{knobs}")


class TestChronusPromises:
    def test_who_cannot_be_packed_runs_without_a_promise(self) -> None:
        """Both want all devices for the same two leases: the second is best effort, not refused."""
        rows = [
            job("kept", 0.0, 480.0, 4, deadline=480.0, service="guaranteed"),
            job("late", 0.0, 480.0, 4, deadline=490.0, service="guaranteed"),
        ]
        ended = found(replay(rows, policy="chronus"))
        assert ended["kept"].end == 480.0
        assert ended["late"].state == "done"
        assert ended["late"].end == 960.0

    def test_a_later_promise_goes_before_an_earlier_one_without(self) -> None:
        rows = [
            job("first", 0.0, 960.0, 4, deadline=970.0, service="guaranteed"),
            job("refused", 10.0, 600.0, 4, deadline=1000.0, service="guaranteed"),
            job("taken", 20.0, 480.0, 4, deadline=1500.0, service="guaranteed"),
        ]
        ended = found(replay(rows, policy="chronus"))
        assert ended["first"].end == 960.0
        assert ended["taken"].end == 1440.0
        assert ended["refused"].end == 2040.0

    @settings(max_examples=25, deadline=None)
    @given(st.data())
    def test_promises_are_kept(self, data: st.DataObject) -> None:
        """Whatever comes, who was promised is done in time: speeds are exact, nothing is lost."""
        rows = []
        for number in range(data.draw(st.integers(2, 12))):
            submit = data.draw(st.integers(0, 3000))
            seconds = data.draw(st.integers(30, 2000))
            slack = data.draw(st.sampled_from([1.0, 1.3, 2.0, 4.0]))
            asked = data.draw(st.booleans())
            more = {"deadline": submit + slack * seconds, "service": "guaranteed"} if asked else {}
            size = data.draw(st.sampled_from([1, 2, 4, 8]))
            rows.append(job(f"{number}", float(submit), float(seconds), size, **more))
        rows.sort(key=lambda row: row.submit)
        promises: list[str] = []

        class Listening(Chronus, frozen=True):
            def admit(self, view: View, job: JobSpec) -> Verdict:
                verdict = Chronus.admit(self, view, job)
                if verdict.promised and job.service == "guaranteed":
                    promises.append(job.name)
                return verdict

        trace = Trace(name="by hand", jobs=tuple(rows))
        record = simulate(trace, parse_short("8xv100"), Listening())
        ended = found(record)
        for name in promises:
            assert ended[name].end <= ended[name].deadline + 1e-3


class TestThemis:
    def test_rho_by_hand(self) -> None:
        """Alone on half of 4 devices it would take 200 s; it came 100 s ago and needs 100 more."""
        row = Row(sizes=(2, 4), speed=(2.0, 4.0), left=400.0, submitted=0.0)
        rho, waits = rhos(make_view(4, [row, row], now=100.0), 600.0)
        assert rho.size.tolist() == [2, 4]
        assert rho.each[0].tolist() == pytest.approx([1.5, 1.0])
        assert waits[0] == pytest.approx((100 + 600 + 200) / 200)

    def test_the_worst_bid_first(self) -> None:
        """The short job suffers more from the same wait."""
        rows = [Row(sizes=(4,), left=9e5, submitted=0.0), Row(sizes=(4,), left=90.0, submitted=0.0)]
        assert granted(Themis(), make_view(4, rows, now=600.0)).tolist() == [0, 4]

    def test_leases_are_not_taken_away(self) -> None:
        runs = Row(sizes=(4,), size=4, left=9e5, submitted=0.0)
        waits = Row(sizes=(4,), left=90.0, submitted=0.0)
        assert granted(Themis(), make_view(4, [runs, waits], now=599.0)).tolist() == [4, 0]
        assert granted(Themis(), make_view(4, [runs, waits], now=600.0)).tolist() == [0, 4]

    def test_leftovers_go_to_those_who_did_not_bid(self) -> None:
        """One of five bids; it cannot use all."""
        rows = [Row(sizes=(2,), left=100.0, submitted=0.0)] + [Row(sizes=(1,), left=1e5)] * 4
        assert granted(Themis(), make_view(4, rows, now=600.0)).tolist() == [2, 1, 1, 0, 0]

    @settings(max_examples=40, deadline=None)
    @given(st.data())
    def test_the_product_of_values_is_the_greatest(self, data: st.DataObject) -> None:
        """Against all there is to choose from, all of them bidding."""
        rows = [
            Row(
                sizes=(1, 2, 4), speed=data.draw(st.sampled_from([(1, 2, 4), (1, 1.5, 1.8)])),
                left=data.draw(st.sampled_from([100.0, 1e3, 1e4])),
                submitted=data.draw(st.sampled_from([0.0, 300.0, 600.0])),
            )
            for _ in range(data.draw(st.integers(1, 4)))
        ]  # fmt: skip
        devices = data.draw(st.integers(1, 9))
        view = make_view(devices, rows, now=600.0)
        rho, waits = rhos(view, 600.0)

        def product(sizes: tuple[int, ...]) -> float:
            value = 1.0
            for row, size in enumerate(sizes):
                worth = rho.each[row, rho.size.tolist().index(size)] if size else waits[row]
                value /= float(worth)
            return value

        every = itertools.product((0, 1, 2, 4), repeat=len(rows))
        best = max(product(sizes) for sizes in every if sum(sizes) <= devices)
        found = Themis(fairness=0.0)._auction(rho, waits, np.arange(len(rows)), devices)
        assert product(tuple(found.tolist())) == pytest.approx(best)

    def test_equal_jobs_end_about_equally_late(self) -> None:
        """Three that each need all devices for 100 leases: nobody is more than a lease ahead."""
        rows = [job(f"{i}", 0.0, 6000.0, 4) for i in range(3)]
        ends = sorted(one.end for one in replay(rows, policy="themis(lease_seconds=60)").jobs)
        assert ends == [17880.0, 17940.0, 18000.0]

    @pytest.mark.parametrize("knobs", ["lease_seconds=0", "fairness=1.5"])
    def test_knobs_are_checked(self, knobs: str) -> None:
        with pytest.raises(ValueError, match=r"lease_seconds|fairness"):
            find(f"themis:{knobs}")

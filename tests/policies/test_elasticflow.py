"""ElasticFlow: a promise is kept whatever comes after it, and what is left goes where it should."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.replays import assert_books_agree, found, job, replay

from bough.core.model import INFINITY, JobSpec
from bough.core.policy import Newcomer, Plan, Verdict, View
from bough.core.speedup import Curve
from bough.policies.edf import Edf
from bough.policies.elasticflow import ElasticFlow
from bough.testing.policies import PolicyContract
from bough.testing.views import Row, make_view

#: The paper's example: 1, 1.5 and 2 times as fast on 1, 2 and 4 devices.
PAPER = Curve(sizes=(1, 2, 4), speed=(1.0, 1.5, 2.0))
SCALES = Curve(sizes=(1, 2, 4), speed=(1.0, 2.0, 4.0))
HARDLY = Curve(sizes=(1, 2, 4), speed=(1.0, 1.2, 1.3))
CURVES = (PAPER, SCALES, HARDLY)


class TestElasticFlow(PolicyContract):
    policies = (
        ElasticFlow(), ElasticFlow(growth="most"), ElasticFlow(whole=False, margin=0.1),
        ElasticFlow(slot_seconds=60.0),
    )  # fmt: skip
    drifts = True


def row(curve: Curve, **more: Any) -> Row:
    return Row(sizes=curve.sizes, speed=curve.speed, since=0.0, **more)


def planned(devices: int, rows: list[Row], policy: ElasticFlow | None = None) -> list[int]:
    plan = (policy or ElasticFlow()).plan(make_view(devices, rows, now=0.0))
    assert isinstance(plan, Plan)
    found: list[int] = plan.sizes.tolist()
    return found


def judged(view: View, left: float, deadline: float, policy: ElasticFlow | None = None) -> Verdict:
    """What is said to a job of the paper's curve, which must be that of the first row."""
    asks = Newcomer(cls=0, left=left, deadline=deadline)
    spec = JobSpec(name="new", service="guaranteed")
    view.newcomer = asks
    return (policy or ElasticFlow()).admit(view, spec)


# ---------------------------------------------------------------------------------- admission


class TestAdmission:
    def test_a_deadline_that_can_be_kept_is_promised(self) -> None:
        view = make_view(4, [row(PAPER)], now=0.0)
        assert judged(view, left=100.0, deadline=50.0).accepted

    def test_one_that_cannot_is_refused_with_the_earliest_that_can(self) -> None:
        view = make_view(4, [row(PAPER)], now=0.0)
        verdict = judged(view, left=100.0, deadline=49.0)
        assert (verdict.accepted, verdict.code) == (False, "deadline")
        assert verdict.text == "Its deadline in 49s cannot be kept."
        assert verdict.remedy == "Give it 50s or more, or ask for best effort"
        assert verdict.facts["earliest_in_seconds"] == 50.0

    def test_the_earliest_deadline_that_is_named_is_promised(self) -> None:
        first = row(PAPER, guaranteed=True, left=190.0, deadline=100.0)
        view = make_view(4, [first], now=0.0)
        verdict = judged(view, left=100.0, deadline=60.0)
        assert not verdict.accepted
        assert "beside 1 promised before" in verdict.text
        earliest = float(verdict.facts["earliest_in_seconds"])
        assert judged(view, left=100.0, deadline=earliest).accepted
        assert 100.0 < earliest <= 150.0

    def test_a_guarantee_needs_an_estimate(self) -> None:
        view = make_view(4, [row(PAPER)], now=0.0)
        assert judged(view, left=INFINITY, deadline=50.0).code == "no-estimate"
        assert judged(view, left=INFINITY, deadline=INFINITY).accepted

    def test_best_effort_is_never_refused(self) -> None:
        view = make_view(4, [row(PAPER)], now=0.0)
        view.newcomer = Newcomer(cls=0, left=1e9, deadline=1.0)
        assert ElasticFlow().admit(view, JobSpec(name="new")).accepted

    def test_without_admission_all_are_taken_on(self) -> None:
        view = make_view(4, [row(PAPER)], now=0.0)
        assert judged(view, 1e9, 1.0, ElasticFlow(admission=False)).accepted

    def test_a_margin_is_not_counted_on(self) -> None:
        view = make_view(4, [row(PAPER)], now=0.0)
        assert judged(view, 90.0, 50.0, ElasticFlow(margin=0.1)).accepted
        assert not judged(view, 91.0, 50.0, ElasticFlow(margin=0.1)).accepted

    def test_best_effort_that_may_not_be_parked_is_reckoned_with(self) -> None:
        stays = row(PAPER, size=2, must=True, lo=2, left=150.0)
        view = make_view(4, [stays], now=0.0)
        assert judged(view, left=150.0, deadline=100.0).accepted
        assert not judged(view, left=151.0, deadline=100.0).accepted
        assert judged(view, left=160.0, deadline=105.0).accepted, "it ends at 100"

    def test_who_is_late_already_is_no_reason_to_refuse(self) -> None:
        late = row(PAPER, guaranteed=True, left=1000.0, deadline=10.0)
        view = make_view(4, [late], now=0.0)
        assert judged(view, left=100.0, deadline=50.0).accepted

    def test_each_of_those_that_come_together_is_judged_by_itself(self) -> None:
        """Two come at once and only one fits: it is taken on, where the released code takes both
        or none."""
        rows = [
            job(name, 0.0, 100.0, curve=SCALES, most=4, steps=(1, 2, 4), service="guaranteed",
                deadline=25.0)
            for name in ("one", "two")
        ]  # fmt: skip
        states = {id: one.state for id, one in found(replay(rows, policy="elasticflow")).items()}
        assert states == {"one": "done", "two": "rejected"}


class TestEdfWithAdmission:
    def judged(self, view: View, left: float, deadline: float, **knobs: bool) -> Verdict:
        view.newcomer = Newcomer(cls=0, left=left, deadline=deadline)
        return Edf(admission=True, **knobs).admit(view, JobSpec(name="x", service="guaranteed"))

    def test_each_has_all_it_can_use_in_turn(self) -> None:
        """The first has 4 devices until 50; a second of as much work is done at 100."""
        first = row(SCALES, guaranteed=True, left=200.0, deadline=60.0)
        view = make_view(4, [first], now=0.0)
        assert self.judged(view, 200.0, 100.0).accepted
        verdict = self.judged(view, 200.0, 99.0)
        assert (verdict.accepted, verdict.facts["earliest_in_seconds"]) == (False, 100.0)

    def test_no_promise_is_broken_for_a_more_urgent_one(self) -> None:
        first = row(SCALES, guaranteed=True, left=200.0, deadline=60.0)
        view = make_view(4, [first], now=0.0)
        assert not self.judged(view, 80.0, 30.0).accepted
        assert self.judged(view, 40.0, 30.0).accepted
        late = row(SCALES, guaranteed=True, left=900.0, deadline=60.0)
        assert self.judged(make_view(4, [late], now=0.0), 80.0, 30.0).accepted, "late anyhow"

    def test_greedy_takes_what_slows_it_down(self) -> None:
        worse = Curve(sizes=(1, 2, 4), speed=(1.0, 1.5, 0.5))
        view = make_view(4, [row(worse)], now=0.0)
        assert self.judged(view, 30.0, 20.0).accepted
        assert not self.judged(view, 30.0, 20.0, greedy=True).accepted

    def test_a_guarantee_needs_an_estimate(self) -> None:
        view = make_view(4, [row(PAPER)], now=0.0)
        assert self.judged(view, INFINITY, 9.0).code == "no-estimate"


# --------------------------------------------------------------------------------- allocation


class TestAllocation:
    def test_the_minimum_satisfactory_share_comes_first(self) -> None:
        """An urgent job needs 2 of 4 devices; the best-effort job that came first has the rest."""
        best = row(SCALES, left=1e6)
        urgent = row(PAPER, guaranteed=True, left=150.0, deadline=100.0)
        assert planned(4, [best, urgent]) == [2, 2]

    def test_who_has_nothing_starts_before_anybody_grows(self) -> None:
        assert planned(4, [row(SCALES, left=1e6)] * 4) == [1, 1, 1, 1]

    def test_what_is_left_goes_where_device_time_grows_least(self) -> None:
        """Two devices for 1,000 of work: 1,000 device-seconds more, or 667, or none."""
        rows = [row(HARDLY, left=1000.0), row(PAPER, left=1000.0), row(SCALES, left=1000.0)]
        assert planned(4, rows) == [1, 1, 2]
        assert planned(6, rows) == [1, 1, 4]
        assert planned(7, rows) == [1, 2, 4]
        assert planned(8, rows) == [2, 2, 4]

    def test_or_most_as_the_released_code_has_it(self) -> None:
        rows = [row(HARDLY, left=1000.0), row(PAPER, left=1000.0), row(SCALES, left=1000.0)]
        policy = ElasticFlow(growth="most")
        assert planned(4, rows, policy) == [2, 1, 1]
        assert planned(6, rows, policy) == [4, 1, 1]

    def test_nobody_grows_beyond_its_peak(self) -> None:
        worse = Row(sizes=(1, 2, 4), speed=(1.0, 1.5, 1.4), left=1000.0)
        assert planned(8, [worse]) == [2]

    def test_a_dear_step_hides_no_cheap_one_behind_it(self) -> None:
        """To 2 it gains nothing worth having, to 4 all: it gets there once nobody is cheaper."""
        bumpy = Row(sizes=(1, 2, 4), speed=(1.0, 1.01, 4.0), left=1000.0)
        assert planned(8, [bumpy, row(PAPER, left=1000.0)]) == [4, 4]
        assert planned(5, [bumpy, row(PAPER, left=1000.0)]) == [1, 4]

    def test_wakes_when_somebody_needs_more(self) -> None:
        """One needs 4 devices from 50 on; until then both share what there is."""
        urgent = row(SCALES, guaranteed=True, left=300.0, deadline=100.0)
        other = row(SCALES, guaranteed=True, left=100.0, deadline=200.0)
        plan = ElasticFlow().plan(make_view(4, [urgent, other], now=0.0))
        assert isinstance(plan, Plan)
        assert plan.sizes.tolist() == [2, 2]
        assert plan.wake_at == 50.0

    def test_who_is_too_late_takes_what_the_others_leave(self) -> None:
        late = row(SCALES, guaranteed=True, left=1000.0, deadline=10.0)
        other = row(SCALES, guaranteed=True, left=200.0, deadline=100.0)
        best = row(SCALES, left=10.0)
        assert planned(4, [best, late, other]) == [0, 2, 2]


# ---------------------------------------------------------------------- promises in simulations


@st.composite
def submissions(draw: st.DrawFn) -> list[Any]:
    """Jobs with and without deadlines, some hopeless, in a queue that is too long."""
    rows, at = [], 0.0
    for number in range(draw(st.integers(2, 9))):
        at += draw(st.sampled_from([0.0, 3.0, 40.0, 200.0]))
        seconds = draw(st.sampled_from([20.0, 111.0, 300.0, 777.0]))
        more: dict[str, Any] = {}
        if draw(st.integers(0, 3)):
            more = {
                "service": "guaranteed",
                "deadline": at + seconds * draw(st.sampled_from([0.3, 0.6, 1.0, 1.5, 4.0])),
            }
        curve = draw(st.sampled_from(CURVES))
        rows.append(job(f"job{number}", at, seconds, curve=curve, most=4, steps=(1, 2, 4), **more))
    return rows


@settings(max_examples=60, deadline=None)
@given(
    submissions(),
    st.sampled_from([
        "elasticflow", "elasticflow(growth=most)", "elasticflow(slot_seconds=60)",
        "elasticflow(margin=0.2)", "edf+admission",
    ]),
    st.sampled_from(["4xv100", "6xv100", "2x4xv100", "5x2xv100"]),
)  # fmt: skip
def test_an_admitted_deadline_is_met(rows: list[Any], policy: str, cluster: str) -> None:
    """With exact speeds, and whatever comes later."""
    if policy == "edf+admission":
        cluster = "6xv100"  # it counts devices, and moves nobody to have them together
    record = replay(rows, cluster, policy)
    assert_books_agree(record)
    for one in record.jobs:
        assert one.state in ("done", "rejected")
        if one.state == "done" and one.service == "guaranteed":
            assert one.end <= one.deadline + 1e-2
        if one.service != "guaranteed":
            assert one.state == "done"


@pytest.mark.parametrize("knob", ["margin=1", "margin=-0.1", "slot_seconds=-1", "slot_seconds=inf"])
def test_knobs_are_checked(knob: str) -> None:
    name, _, value = knob.partition("=")
    with pytest.raises(ValueError, match=f"^{name} "):
        ElasticFlow(**{name: float(value)})

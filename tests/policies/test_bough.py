"""The house policy: promises are kept, nobody starves, and jobs end soon on average."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from bough.core.cluster import parse_short
from bough.core.filling import Levels, Need, fits
from bough.core.flow import service_left, worst_off, worth_by_rank
from bough.core.model import Event, JobSpec, Queue, Range
from bough.core.policy import Classes, Newcomer
from bough.core.profile import Profile
from bough.core.supply import Budget, Supply
from bough.policies.bough import Bough
from bough.policies.elasticflow import ElasticFlow
from bough.sim.engine import Engine, simulate
from bough.sim.options import Options, Tools
from bough.sim.results import summarise
from bough.sim.synthetic import Mix, generate
from bough.sim.trace import Trace, TraceJob
from bough.testing.views import Row, as_plan, granted, make_view

SIZES = (1, 2, 4)


# ------------------------------------------------------------------ who has what


def test_deadlines_first_then_the_shorter() -> None:
    """Two devices: one is needed to keep a promise, the other goes to the shorter of two."""
    promised = Row(sizes=(1,), left=90.0, deadline=100.0, guaranteed=True)
    long, short = Row(sizes=(1,), left=500.0), Row(sizes=(1,), left=50.0)
    assert granted(Bough(), make_view(2, [promised, long, short])).tolist() == [1, 0, 1]


def test_a_promise_with_time_to_spare_lets_shorter_jobs_go_first() -> None:
    promised = Row(sizes=(1,), left=90.0, deadline=10_000.0, guaranteed=True)
    short = Row(sizes=(1,), left=50.0)
    assert granted(Bough(), make_view(1, [promised, short])).tolist() == [0, 1]


def test_devices_are_shared_by_rank() -> None:
    """Of two jobs on four devices whose speed is the root, the longer has one (heSRPT)."""
    sizes, speed = (1, 2, 3, 4), tuple(n**0.5 for n in (1, 2, 3, 4))
    long = Row(sizes=sizes, speed=speed, left=1000.0)
    short = Row(sizes=sizes, speed=speed, left=900.0)
    assert granted(Bough(), make_view(4, [long, short])).tolist() == [1, 3]


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=40))
def test_the_shares_by_rank_are_those_of_the_paper(service: list[float]) -> None:
    """With speeds of the root, most worth is had at theta_i = (i/n)^2 - ((i-1)/n)^2."""
    worth = worth_by_rank(np.array(service))
    share = worth**2 / (worth**2).sum()  # where worth / (2 sqrt(share)) is the same for all
    n = len(service)
    expected = [(i / n) ** 2 - ((i - 1) / n) ** 2 for i in range(1, n + 1)]
    assert np.allclose(np.sort(share), expected)
    longest = int(np.argmax(service))
    assert share[longest] == min(share)


def test_who_fares_worst_goes_first_as_far_as_the_reserve_reaches() -> None:
    waited = [Row(sizes=(1,), left=1000.0, submitted=-50_000.0 - i) for i in range(4)]
    fresh = [Row(sizes=(1,), left=10.0, submitted=0.0) for _ in range(4)]
    sizes = granted(Bough(reserve=0.5), make_view(4, waited + fresh))
    assert sizes.tolist() == [0, 0, 1, 1, 1, 1, 0, 0]
    assert worst_off(make_view(4, waited + fresh), 2.0, 0.0).tolist() == 3 * [False] + [
        True, *(4 * [False])
    ]  # fmt: skip


def test_jobs_of_unknown_length_go_by_what_others_needed() -> None:
    """Most ended within 100 device-seconds; who has used 5,000 will need far more."""
    young, old = Row(sizes=(1,), attained=0.0), Row(sizes=(1,), attained=5_000.0)
    view = make_view(1, [old, young], history=[90.0] * 20 + [50_000.0])
    service = service_left(view)
    assert service[1] < service[0]
    assert granted(Bough(), view).tolist() == [0, 1]


@pytest.mark.parametrize(
    "knobs", [{"caution": -1.0}, {"patience": 0.5}, {"reserve": 2.0}, {"early": 0.0}]
)
def test_knobs_that_make_no_sense_are_refused(knobs: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(knobs))):
        Bough(**knobs)


# ------------------------------------------------------------------ admission


def exact(devices: int, jobs: list[Need], now: int = 0) -> bool:
    """Whether some plan with sizes that change at whole seconds is in time: all are tried."""
    if all(need.left <= 1e-9 for need in jobs):
        return True
    if any(need.left > 1e-9 and need.deadline <= now for need in jobs):
        return False
    for plan in _plans(devices, len(jobs)):
        after = [
            need._replace(left=need.left - need.levels.speeds[level])
            for need, level in zip(jobs, plan, strict=True)
        ]
        if exact(devices, after, now + 1):
            return True
    return False


def _plans(devices: int, count: int) -> list[tuple[int, ...]]:
    """A level for each, as far as devices reach."""
    sizes = (0, *SIZES)
    every = product(range(len(sizes)), repeat=count)
    return [plan for plan in every if sum(sizes[level] for level in plan) <= devices]


def test_the_gap_between_filling_and_an_exact_search() -> None:
    """Of 300 sets of deadlines that some plan keeps, filling finds one for more than 19 in 20."""
    chance = np.random.default_rng(0)
    levels = Levels((0, *SIZES), (0.0, 1.0, 1.5, 2.0))
    possible = found = 0
    while possible < 300:
        jobs = sorted(
            (
                Need(levels, float(chance.integers(1, 6)), float(chance.integers(1, 4)))
                for _ in range(chance.integers(2, 4))
            ),
            key=lambda need: need.deadline,
        )
        if exact(4, jobs):
            possible += 1
            found += fits(Profile(0.0, 4), jobs)
    assert found / possible > 0.95, found / possible


def test_a_refusal_names_a_deadline_that_would_be_kept() -> None:
    view = make_view(1, [Row(sizes=(1,), left=90.0, deadline=100.0, guaranteed=True)])
    view.newcomer = Newcomer(0, 50.0, 100.0)
    spec = JobSpec(name="x", service="guaranteed", deadline=100.0)
    verdict = Bough().admit(view, spec)
    assert (verdict.accepted, verdict.code) == (False, "deadline")
    view.newcomer = Newcomer(0, 50.0, float(verdict.facts["earliest_in_seconds"]))
    assert Bough().admit(view, spec).accepted


def test_doubt_makes_promises_careful() -> None:
    """A job that fits to the second is refused once beliefs were found to be wrong."""
    view = make_view(1, [])
    view.classes = Classes(np.array([[0, 1]]), np.array([[0.0, 1.0]]))
    view.newcomer, spec = Newcomer(0, 99.0, 100.0), JobSpec(name="x", service="guaranteed")
    assert Bough().admit(view, spec).accepted
    view.doubt = 0.1
    assert not Bough().admit(view, spec).accepted
    assert Bough(caution=0.0).admit(view, spec).accepted


@st.composite
def days(draw: st.DrawFn) -> Trace:
    """A few jobs in a short time, most with deadlines, of several shapes."""
    jobs = []
    for number in range(draw(st.integers(2, 14))):
        least = draw(st.sampled_from([1, 1, 2]))
        most = least * draw(st.sampled_from([1, 2, 4]))
        seconds = draw(st.integers(10, 400))
        guaranteed = draw(st.integers(0, 2)) > 0
        slack = draw(st.sampled_from([0.6, 1.0, 1.01, 1.5, 3.0]))
        submit = float(draw(st.integers(0, 300)))
        spec = JobSpec(
            name=f"job-{number}", model=draw(st.sampled_from(["resnet50", "bert", "vgg16"])),
            batch=256, devices=Range(min=least, max=most),
            service="guaranteed" if guaranteed else "best-effort",
            deadline=submit + slack * seconds if guaranteed else None,
            estimate_seconds=float(seconds), estimate_devices=least,
        )  # fmt: skip
        jobs.append(
            TraceJob(
                id=str(number), submit=submit, seconds=float(seconds), devices=least, spec=spec
            )
        )
    jobs.sort(key=lambda job: job.submit)
    return Trace(name="days", jobs=tuple(jobs))


@settings(max_examples=25, deadline=None)
@given(trace=days(), policy=st.sampled_from([Bough(), Bough(early=1.0, reserve=1.0)]))
def test_an_admitted_deadline_is_kept_while_speeds_are_as_believed(
    trace: Trace, policy: Bough
) -> None:
    """Invariant 6, on two nodes, where a place across both is slower than any curve says."""
    record = simulate(trace, parse_short("2x4xa100"), policy)
    note(str([(j.id, j.submit, j.deadline, j.end, j.sizes) for j in record.jobs]))
    for job in record.jobs:
        assert job.state in ("done", "rejected")
        if job.service == "guaranteed" and job.state == "done":
            assert job.end <= job.deadline + 1e-3


def test_as_many_deadlines_as_elasticflow_and_best_effort_ends_sooner() -> None:
    mix = Mix(best_effort=0.5, rigid_sizes=((1, 0.7), (2, 0.2), (4, 0.1)))
    trace = generate(150, 16, load=1.2, elastic=0.7, seed=0, mix=mix)
    cluster = parse_short("2x8xa100")
    kept, mean = {}, {}
    for name, policy in {"bough": Bough(), "elasticflow": ElasticFlow()}.items():
        jobs = simulate(trace, cluster, policy).jobs
        asked = [job for job in jobs if job.service == "guaranteed"]
        admitted = [job for job in asked if job.state == "done"]
        kept[name] = sum(job.end <= job.deadline for job in admitted)
        assert kept[name] == len(admitted)
        rest = [job.end - job.submit for job in jobs if job.service != "guaranteed"]
        mean[name] = sum(rest) / len(rest)
    assert kept["bough"] >= kept["elasticflow"]
    assert mean["bough"] < 0.7 * mean["elasticflow"]


# ------------------------------------------------------------------ budgets


def test_short_of_power_devices_are_slower_and_fewer() -> None:
    """The promised job keeps its clock; others are at theirs that needs least energy."""
    promised = Row(sizes=(1,), left=95.0, deadline=100.0, guaranteed=True)
    other = Row(sizes=(1, 2, 4), left=100.0)
    rich = as_plan(Bough().plan(make_view(8, [promised, other], allowance=1e6)))
    assert rich.sizes.tolist() == [1, 4]
    assert rich.clocks is None
    short = as_plan(Bough().plan(make_view(8, [promised, other], allowance=600.0)))
    assert short.sizes.tolist()[0] == 1
    assert short.clocks is not None
    assert short.clocks[0] == 1.0
    assert short.clocks[1] < 1.0


@settings(max_examples=15, deadline=None)
@given(trace=days(), kwh=st.floats(0.05, 2.0))
def test_a_budget_is_never_overdrawn(trace: Trace, kwh: float) -> None:
    """Invariant 8: whatever comes, of no window more is used than there is."""
    supply = Supply(budgets=(Budget(of="energy", amount=kwh, window_seconds=600.0),))
    record = simulate(trace, parse_short("1x8xa100"), Bough(), Options(supply=supply, until=5000.0))
    most = summarise(record)["most_of_a_budget"]
    assert most is None or most <= 1.0 + 1e-6


# ------------------------------------------------------------------ queues


def test_a_queue_is_promised_only_what_it_is_sure_of() -> None:
    """Queue a has half of the devices: a deadline that needs more is refused, though all idle."""
    queues = (Queue(name="a", guarantee=4), Queue(name="b", guarantee=4))

    def asks(seconds: float) -> Trace:
        spec = JobSpec(
            name="x", queue="a", devices=Range(min=1, max=8), model="even", service="guaranteed",
            deadline=100.0, estimate_seconds=seconds, estimate_devices=1,
        )  # fmt: skip
        from bough.core.speedup import Curve

        curve = Curve(tuple(range(1, 9)), tuple(map(float, range(1, 9))))
        job = TraceJob(id="x", submit=0.0, seconds=seconds, devices=1, spec=spec, curve=curve)
        return Trace(name="one", jobs=(job,))

    def state(seconds: float) -> str:
        options = Options(queues=queues)
        return simulate(asks(seconds), parse_short("1x8xa100"), Bough(), options).jobs[0].state

    assert state(390.0) == "done"
    assert state(500.0) == "rejected"


@st.composite
def tenants(draw: st.DrawFn) -> Trace:
    """Jobs of one device in two queues, more than there is room for."""
    jobs = []
    for number in range(draw(st.integers(5, 30))):
        seconds, submit = float(draw(st.integers(10, 300))), float(draw(st.integers(0, 200)))
        spec = JobSpec(
            name=f"job-{number}", queue=draw(st.sampled_from(["a", "b", "c"])),
            estimate_seconds=seconds, estimate_devices=1,
        )  # fmt: skip
        jobs.append(TraceJob(id=str(number), submit=submit, seconds=seconds, devices=1, spec=spec))
    jobs.sort(key=lambda job: job.submit)
    return Trace(name="tenants", jobs=tuple(jobs))


@settings(max_examples=25, deadline=None)
@given(trace=tenants())
def test_guarantees_are_honoured_within_one_decision_of_demand(trace: Trace) -> None:
    """Invariant 5: after each decision a queue holds its guarantee, or all that it asks for."""
    queues = (Queue(name="a", guarantee=4), Queue(name="b", guarantee=2), Queue(name="c"))
    engine = Engine(trace, parse_short("2x4xa100"), Bough(), Options(queues=queues), Tools())
    state = engine.scheduler.state
    step = engine.step

    def step_and_look(batch: list[Event]) -> None:
        step(batch)
        for queue in queues:
            mine = state.table.queue == state.queues.index(queue.name)
            held, asks = int(state.table.size[mine].sum()), int(mine.sum())
            assert held >= min(queue.guarantee, asks)

    vars(engine)["step"] = step_and_look
    record = engine.run()
    assert all(job.state == "done" for job in record.jobs)
    assert sum(job.lost_device_seconds for job in record.jobs) == 0.0

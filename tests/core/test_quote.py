"""Quotes: the verdict, what would be better, and whom it would delay, each held to a replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core import model as m
from bough.core.cluster import parse_short
from bough.core.doubt import CERTAIN, Doubt
from bough.core.outlooks import in_turn
from bough.core.queues import QueueTree
from bough.core.quote import quote
from bough.core.scheduler import Scheduler
from bough.core.speedup import SpeedBook
from bough.forks import Forks
from bough.policies import find
from bough.sim.cut import cut
from bough.sim.engine import simulate
from bough.sim.runs import Setting
from bough.sim.synthetic import Mix, generate
from bough.sim.trace import TraceJob

Item = TypeVar("Item")
Result = TypeVar("Result")


def cluster(policy: str, text: str = "1x8xa100", *jobs: m.JobSpec) -> Scheduler:
    """One on which these jobs were submitted at second 0, in turn."""
    place = parse_short(text)
    found = Scheduler(
        find(policy), place.tree(), queues=QueueTree(), speedups=SpeedBook(place.nodes[0].kind)
    )
    batch = place.events(0.0)
    batch += [m.Submitted(at=0.0, id=spec.name, spec=spec) for spec in jobs]
    while batch:
        commands, batch = found.handle(batch), []
        for command in commands:
            if isinstance(command, m.Start):
                batch.append(m.Started(at=0.0, id=command.id, epoch=command.epoch))
    return found


def job(name: str, devices: int, seconds: float, **more: object) -> m.JobSpec:
    return m.JobSpec(
        name=name, devices=m.Range(min=devices, max=devices), estimate_seconds=seconds,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_behind_one_that_holds_everything() -> None:
    found = quote(
        cluster("fifo", "1x8xa100", job("first", 8, 1000.0)),
        job("x", 8, 500.0),
        CERTAIN,
        versions=2,
    )
    assert found.verdict == "accept"
    assert found.outlook.begins.p50 == pytest.approx(1000.0)
    assert found.outlook.ends.p90 == pytest.approx(1500.0)
    assert found.outlook.device_hours.p50 == pytest.approx(8 * 500.0 / 3600.0)
    assert found.earliest_deadline == pytest.approx(1500.0)
    assert found.delays == ()


def test_whom_it_delays_and_by_how_much() -> None:
    """The shortest goes first: who runs longer is parked for as long as it runs."""
    there = cluster("srtf", "1x8xa100", job("long", 8, 10_000.0, deadline=10_100.0))
    found = quote(there, job("x", 8, 500.0), CERTAIN, versions=2)
    (delay,) = found.delays
    assert (delay.job, delay.late) == ("long", True)
    assert delay.seconds == pytest.approx(500.0)
    assert found.outlook.begins.p50 == pytest.approx(0.0)


def test_an_alternative_tells_its_consequences_for_others() -> None:
    there = cluster(
        "srtf", "1x8xa100", job("a", 4, 1000.0), job("b", 4, 3000.0), job("c", 4, 4000.0)
    )
    found = quote(there, job("x", 8, 500.0), CERTAIN, versions=2)
    fewer = {one.change: one for one in found.alternatives}
    for one in fewer.values():
        assert one.outlook.ends.p50 is not None
        assert all(delay.seconds > 0.0 for delay in one.delays)
    assert [delay.job for delay in found.delays]


def test_a_deadline_that_cannot_be_kept_has_an_earliest_that_can() -> None:
    there = cluster("fifo", "1x8xa100", job("first", 8, 1000.0))
    asked = job("x", 8, 500.0, deadline=1200.0, service="guaranteed")
    found = quote(there, asked, CERTAIN, versions=2)
    assert found.verdict == "accept-if"
    assert found.reason.code == "late"
    assert found.outlook.in_time == 0.0
    assert found.earliest_deadline == pytest.approx(1500.0, rel=0.001)
    later = msgspec.structs.replace(asked, deadline=found.earliest_deadline + 1.0)
    assert quote(there, later, CERTAIN, versions=2).verdict == "accept"


def test_a_policy_that_refuses_says_why_and_what_it_would_take() -> None:
    first = job("first", 8, 1000.0, deadline=1100.0, service="guaranteed")
    there = cluster("elasticflow", "1x8xa100", first)
    asked = job("x", 8, 500.0, deadline=1200.0, service="guaranteed")
    found = quote(there, asked, CERTAIN, versions=2)
    assert found.verdict == "accept-if"
    assert found.reason.text != ""
    assert found.earliest_deadline is not None
    kept = msgspec.structs.replace(asked, deadline=found.earliest_deadline)
    assert quote(there, kept, CERTAIN, versions=2).verdict == "accept"
    sooner = 0.9 * found.earliest_deadline
    assert (
        quote(there, msgspec.structs.replace(asked, deadline=sooner), CERTAIN, versions=2).verdict
        != "accept"
    )
    assert any(one.spec.service == "best-effort" for one in found.alternatives)


def test_what_nothing_helps_is_rejected() -> None:
    there = cluster("fifo")
    found = quote(there, job("x", 1, 500.0, kinds=("h100",)), CERTAIN, versions=2)
    assert found.verdict == "accept-if"
    assert [one.change for one in found.alternatives] == ["Run it on a100"]
    gang = m.JobSpec(
        name="x", roles=(m.Role(name="w", count=m.Range(min=9, max=9), devices=1),),
        estimate_seconds=5.0,
    )  # fmt: skip
    found = quote(there, gang, CERTAIN, versions=2)
    assert (found.verdict, found.reason.code) == ("reject", "never")
    assert "the cluster has 8 in working order" in found.reason.text


def test_another_queue_is_offered_where_it_helps() -> None:
    there = cluster("fifo", "1x8xa100")
    there.handle([
        m.QueueSet(at=0.0, queue=m.Queue(name="open", guarantee=4)),
        m.QueueSet(at=0.0, queue=m.Queue(name="shut", paused=True)),
    ])  # fmt: skip
    found = quote(
        there, job("x", 2, 500.0, queue="shut"), CERTAIN, versions=2, queues=("open", "shut")
    )
    assert found.verdict == "accept-if"
    assert any(one.change == "Submit it to queue open" for one in found.alternatives)


def test_another_kind_is_offered_where_it_helps() -> None:
    there = cluster("fifo", "1x8xa100+1x8xv100", job("first", 8, 9000.0, kinds=("a100",)))
    found = quote(there, job("x", 8, 500.0, kinds=("a100",), model="resnet50"), CERTAIN, versions=2)
    assert any(one.change == "Run it on v100" for one in found.alternatives)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 40), st.sampled_from(["fifo", "las", "srtf", "max_min", "fair"]))
def test_it_comes_true(seed: int, policy: str) -> None:
    """Nothing in doubt and nobody else to come: the job submitted ends when it was quoted to."""
    trace = generate(30, 16, load=1.5, elastic=0.5, seed=seed)
    asked = job("x", 4, 1800.0)
    at = trace.jobs[-1].submit + 1.0
    text = "16x1xa100"
    of = Setting(trace=trace, cluster=parse_short(text), cluster_name=text)
    there = cut(of, find(policy), at)
    before = there.scheduler.to_bytes()
    found = quote(there.scheduler, asked, CERTAIN, versions=1, now=at)
    assert there.scheduler.to_bytes() == before
    new = TraceJob(id="x", submit=at, spec=asked, seconds=1800.0, devices=4)
    longer = msgspec.structs.replace(trace, jobs=(*trace.jobs, new))
    (record,) = [j for j in simulate(longer, of.cluster, find(policy)).jobs if j.id == "x"]
    assert found.outlook.ends.p50 == pytest.approx(record.end, rel=1e-9)
    assert found.outlook.begins.p50 == pytest.approx(record.begin, rel=1e-9)


def test_asked_again_it_says_the_same() -> None:
    trace = generate(40, 16, load=1.5, seed=2, mix=Mix(best_effort=0.5))
    of = Setting(trace=trace, cluster=parse_short("2x8xa100"), cluster_name="")
    there = cut(of, find("fair"), trace.jobs[20].submit)
    doubt = Doubt(past=there.past)
    first = quote(there.scheduler, job("x", 4, 900.0), doubt, versions=4)
    assert quote(there.scheduler, job("x", 4, 900.0), doubt, versions=4) == first


def backwards(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The last first, as another process may be."""
    return [work(item) for item in reversed(items)][::-1]


@pytest.mark.parametrize("policy", ["las", "fair", "elasticflow"])
@pytest.mark.parametrize("service", ["best-effort", "guaranteed"])
def test_it_is_the_same_whoever_runs_the_versions(policy: str, service: str) -> None:
    trace = generate(40, 16, load=1.5, elastic=0.5, seed=4, mix=Mix(best_effort=0.5))
    of = Setting(trace=trace, cluster=parse_short("2x8xa100"), cluster_name="")
    there = cut(of, find(policy), trace.jobs[20].submit)
    asked = job("x", 4, 3600.0, service=service, deadline=there.at + 4000.0)
    found = []
    for run in (in_turn, backwards, Forks(2), Forks(3)):
        doubt = Doubt(past=there.past)
        found.append(quote(there.scheduler, asked, doubt, versions=6, now=there.at, run=run))
    assert found[0].alternatives
    assert all(each == found[0] for each in found)

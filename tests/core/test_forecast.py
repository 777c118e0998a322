"""Forecasts: run forward as the simulator does, in versions that differ, and harming nobody."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core import chance
from bough.core import model as m
from bough.core.cluster import parse_short
from bough.core.doubt import CERTAIN, Doubt
from bough.core.expected import Arrival, Past
from bough.core.forecast import forecast
from bough.core.outlooks import interval, outlooks, unfold
from bough.core.queues import QueueTree
from bough.core.quote import quote
from bough.core.scheduler import Scheduler
from bough.core.speedup import SpeedBook
from bough.core.versions import Version
from bough.policies import find
from bough.sim.cut import Cut, cut
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.runs import Setting
from bough.sim.synthetic import Mix, generate

#: On nodes of one device no place is slower than another, which only the world would know.
CLUSTER = "32x1xa100"
POLICIES = (
    "fifo",
    "las",
    "srtf",
    "backfill",
    "max_min",
    "fair",
    "greedy",
    "drf",
    "edf",
    "tiresias",
)


class Foretold(Past):
    """A future that is known, for comparing with what really came."""

    def to_come(self, version: int, now: float) -> Iterator[Arrival]:
        return (arrival for arrival in self.arrivals if arrival.at > now)


def setting(seed: int = 3, jobs: int = 60, elastic: float = 0.5, load: float = 1.2) -> Setting:
    mix = Mix(best_effort=0.5)
    trace = generate(jobs, 32, load=load, elastic=elastic, seed=seed, mix=mix)
    return Setting(trace=trace, cluster=parse_short(CLUSTER), cluster_name=CLUSTER)


def middle(of: Setting) -> float:
    return of.trace.jobs[len(of.trace.jobs) // 2].submit


def foretold(of: Setting, cut: Cut) -> Doubt:
    coming = Foretold(0.0, 0.0, [Arrival(job.submit, job.spec) for job in of.trace.jobs])
    return Doubt(estimates=0.0, speeds=0.0, grain=0.0, past=coming)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("elastic", [0.0, 1.0])
def test_it_is_what_the_simulator_comes_to(policy: str, elastic: float) -> None:
    """Where nothing is in doubt, the forecast from the middle of a trace is the rest of it."""
    given = setting(elastic=elastic, load=12.0 if elastic else 1.2)
    record = simulate(given.trace, given.cluster, find(policy))
    ends = {job.id: job.end for job in record.jobs}
    begins = {job.id: job.begin for job in record.jobs}
    here = cut(given, find(policy), middle(given))
    live = list(here.scheduler.state.jobs)
    assert len(live) > 2
    (fates,) = unfold(here.scheduler, live, foretold(given, here), versions=1)
    for id in live:
        assert fates[id].ends == pytest.approx(ends[id], rel=1e-9), id
        if begins[id] > here.at:
            assert fates[id].begins == pytest.approx(begins[id], rel=1e-9), id


def test_a_moment_later_the_same_is_foretold() -> None:
    """The clock of a daemon is ahead of its last event."""
    given = setting(elastic=0.0)
    here = cut(given, find("fifo"), middle(given))
    live = list(here.scheduler.state.jobs)
    soon = min(here.scheduler.state.now + 1.0, given.trace.jobs[31].submit)
    now = outlooks(here.scheduler, live, versions=1)
    later = outlooks(here.scheduler, live, versions=1, now=soon)
    for id in live:
        assert now[id].ends.p50 == pytest.approx(later[id].ends.p50, rel=1e-6)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(POLICIES), st.integers(0, 50), st.floats(0.0, 1.0))
def test_the_live_scheduler_never_changes(policy: str, seed: int, elastic: float) -> None:
    given_ = setting(seed, 24, elastic)
    here = cut(given_, find(policy), middle(given_))
    before = here.scheduler.to_bytes()
    wake = here.scheduler.wake_at
    live = list(here.scheduler.state.jobs)
    outlooks(here.scheduler, live, Doubt(past=here.past), versions=2, horizon=20_000.0)
    assert here.scheduler.to_bytes() == before
    assert here.scheduler.wake_at == wake


def test_asked_again_it_says_the_same() -> None:
    given = setting()
    here = cut(given, find("fair"), middle(given))
    live, doubt = list(here.scheduler.state.jobs), Doubt(past=here.past)
    first = outlooks(here.scheduler, live, doubt, versions=5)
    assert outlooks(here.scheduler, live, doubt, versions=5) == first
    other = cut(given, find("fair"), middle(given))
    assert outlooks(other.scheduler, live, doubt, versions=5) == first


def test_a_coarse_grain_is_close_to_a_fine_one() -> None:
    """What is told at once far away is told when it would happen on average."""
    given = setting(jobs=120)
    here = cut(given, find("las"), middle(given))
    live = list(here.scheduler.state.jobs)
    exact, coarse = (
        outlooks(here.scheduler, live, msgspec.structs.replace(CERTAIN, grain=grain), versions=1)
        for grain in (0.0, 0.02)
    )
    off = []
    for id in live:
        end, about = exact[id].ends.p50, coarse[id].ends.p50
        assert end is not None
        assert about is not None
        off.append((about - end) / (end - here.at))
    assert max(map(abs, off)) < 0.1
    assert abs(sum(off) / len(off)) < 0.01


def test_what_may_be_wrong_is_as_wide_as_it_was_seen_to_be() -> None:
    """Work twice as much as half of the estimates said: the median and the spread follow."""
    given = setting(jobs=60)
    options = Options(speed_error=0.4)
    given = msgspec.structs.replace(given, options=options)
    here = cut(given, find("fifo"), given.trace.jobs[-1].submit)
    prior = here.scheduler.state.speedups.prior
    assert prior.estimates[""].count > 20
    bias, spread = prior.estimate_error(given.trace.jobs[0].spec.user)
    assert 0.2 < spread < 0.7
    assert abs(bias) < 0.4


def test_a_horizon_ends_it() -> None:
    given = setting(load=3.0)
    here = cut(given, find("fifo"), middle(given))
    live = list(here.scheduler.state.jobs)
    found = outlooks(here.scheduler, live, versions=1, horizon=60.0)
    assert any(look.ends.p50 is None for look in found.values())
    for look in found.values():
        assert look.ends.p50 is None or look.ends.p50 <= here.at + 60.0


def test_the_lucks_of_a_job_are_spread_evenly() -> None:
    for versions in (1, 5, 20):
        found = sorted(chance.luck("job", number, versions) for number in range(versions))
        assert found == pytest.approx([(i + 0.5) / versions for i in range(versions)])


@given(st.floats(1.0, 1e6), st.floats(0.0, 2.0), st.floats(0.0, 1e7), st.floats(0.001, 0.999))
def test_nobody_has_done_more_than_there_is(
    median: float, spread: float, done: float, luck: float
) -> None:
    assert chance.outlived(median, spread, done, luck) >= done


def test_days_to_come_are_like_days_that_were() -> None:
    day = 86_400.0
    spec = m.JobSpec(name="noon", deadline=1e9)
    past = Past(0.0, 7 * day, [Arrival(number * day + day / 2, spec) for number in range(7)])
    coming = []
    for arrival in past.to_come(3, 7 * day):
        coming.append(arrival)
        if len(coming) == 10:
            break
    assert [a.at % day for a in coming] == pytest.approx([day / 2] * 10)
    assert all(a.at > 7 * day for a in coming)
    for arrival in coming:  # a deadline comes as much later as the job does
        later = (arrival.spec.deadline or 0.0) - 1e9
        assert later % day == pytest.approx(0.0)
        assert later > 0.0


def test_a_past_that_is_short_says_nothing() -> None:
    past = Past(0.0, 100.0, [Arrival(5.0, m.JobSpec(name="once"))])
    assert list(past.to_come(0, 100.0)) == []


@given(st.lists(st.floats(0.0, 1e6) | st.just(math.inf), min_size=1, max_size=30))
def test_intervals_are_ordered(values: list[float]) -> None:
    found = interval(values)
    order = [math.inf if v is None else v for v in (found.p10, found.p50, found.p90)]
    assert order == sorted(order)
    assert min(values) <= order[0]
    assert order[2] <= max(values)


def test_of_twenty_a_tenth_more_is_below_the_second() -> None:
    found = interval([float(i) for i in range(20)])
    assert found.p10 == pytest.approx(1.1)
    assert found.p50 == pytest.approx(9.5)
    assert found.p90 == pytest.approx(17.9)


def test_a_version_goes_on_with_answers_that_were_under_way() -> None:
    given = setting(elastic=1.0)
    given = msgspec.structs.replace(
        given, options=Options(start_seconds=30.0, resize_seconds=10.0, park_seconds=20.0)
    )
    here = cut(given, find("fair"), middle(given))
    version = Version(here.scheduler)
    live = list(here.scheduler.state.jobs)
    version.run(live, math.inf)
    assert all(version.fates[id].how == "done" for id in live)


def test_of_a_job_it_is_its_quote() -> None:
    given = setting()
    here = cut(given, find("fair"), middle(given))
    spec, doubt = given.trace.jobs[0].spec, Doubt(past=here.past)
    found = forecast(here.scheduler, spec, 4, 20_000.0, doubt=doubt)
    assert found == quote(here.scheduler, spec, doubt, versions=4, horizon=20_000.0)
    assert found.versions == 4


@pytest.mark.parametrize("policy", ["fifo", "las", "fair"])
def test_after_something_happens_it_is_what_comes_of_that(policy: str) -> None:
    """Ten nodes leave: the same as told by the scheduler to which that happens."""
    given = setting(elastic=0.0)
    here = cut(given, find(policy), middle(given))
    names = [node.name for node in given.cluster.nodes][:10]
    gone = [m.NodeDown(at=0.0, name=name) for name in names]
    before = here.scheduler.to_bytes()
    was = forecast(here.scheduler, samples=1, doubt=CERTAIN)
    found = forecast(here.scheduler, gone, 1, doubt=CERTAIN)
    assert here.scheduler.to_bytes() == before
    assert was == outlooks(here.scheduler, list(here.scheduler.state.jobs), CERTAIN, versions=1)
    assert set(found) == set(was)
    ends = [(was[id].ends.p50 or math.inf, found[id].ends.p50 or math.inf) for id in was]
    assert sum(after for _, after in ends) > sum(end for end, _ in ends)
    version = Version(here.scheduler)
    version.tell([msgspec.structs.replace(event, at=version.now) for event in gone])
    version.run(list(was), math.inf)
    assert {id: version.fates[id].ends for id in was} == {id: found[id].ends.p50 for id in was}


def test_what_went_with_its_node_is_charged_no_longer() -> None:
    """Of the only node nobody has anything until it is back."""
    place = parse_short("1x4xa100")
    scheduler = Scheduler(
        find("fifo"), place.tree(), queues=QueueTree(), speedups=SpeedBook("a100")
    )
    spec = m.JobSpec(name="a", devices=m.Range(min=4, max=4), estimate_seconds=1000.0)
    scheduler.handle([*place.events(0.0), m.Submitted(at=0.0, id="a", spec=spec)])
    scheduler.handle([m.Started(at=0.0, id="a", epoch=scheduler.state.jobs["a"].epoch)])
    version = Version(scheduler)
    version.pass_by(100.0)
    version.tell([m.NodeDown(at=100.0, name=place.nodes[0].name)])
    version.pass_by(500.0)
    assert version.fates["a"].device_seconds == pytest.approx(400.0)
    version.tell([m.NodeUp(at=500.0, node=place.nodes[0])])
    version.run(["a"], 10_000.0)
    fate = version.fates["a"]
    assert (fate.how, fate.ends) == ("done", pytest.approx(100.0 + 400.0 + 900.0))
    assert fate.device_seconds == pytest.approx(4 * 1000.0)

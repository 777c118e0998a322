"""The loop of a replay: what happens when, how it ends, what is counted; always the same."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.replays import assert_books_agree, found, job, replay

from bough.core import model as m
from bough.core.cluster import parse_short
from bough.core.model import INFINITY, Queue
from bough.core.policy import ACCEPTED, Verdict, View
from bough.core.speedup import SpeedBook
from bough.policies import builtin
from bough.policies.fifo import Fifo
from bough.sim import faults
from bough.sim.engine import USAGE_MAX, simulate
from bough.sim.options import Failures, Options, Tools
from bough.sim.record import RunRecord
from bough.sim.synthetic import generate
from bough.sim.trace import Trace
from bough.sim.world import NODE_UP, World

# --------------------------------------------------------------------------- what happens when


def test_arrivals_of_one_moment_are_decided_on_together() -> None:
    record = replay([job("long", 0, 100), job("short", 0, 10)], "1xv100", "srtf")
    assert [(one.begin, one.preemptions) for one in record.jobs] == [(10, 0), (0, 0)]


def test_an_end_and_an_arrival_of_one_moment_are_decided_on_together() -> None:
    # The device that becomes free goes to the shorter of the two, who comes just then.
    jobs = [job("now", 0, 10), job("long", 1, 50), job("short", 10, 5)]
    ran = found(replay(jobs, "1xv100", "srtf"))
    assert (ran["short"].begin, ran["long"].begin) == (10, 15)


def test_time_may_begin_anywhere() -> None:
    for begin in (-50.0, 0.0, 1.7e9):
        record = replay([job("a", begin, 10), job("b", begin + 20, 10)])
        assert [one.end - begin for one in record.jobs] == [10, 30]
        assert (record.started, record.ended) == (begin, begin + 30)


def test_a_trace_without_jobs_is_over_at_once() -> None:
    record = replay([])
    assert (record.jobs, record.ended) == ([], 0.0)


def test_only_the_first_jobs_are_replayed_if_so_asked() -> None:
    trace = Trace(name="t", jobs=tuple(job(str(i), i, 10) for i in range(5)))
    record = simulate(trace, parse_short("4xv100"), Fifo(), Options(jobs=2))
    assert [one.id for one in record.jobs] == ["0", "1"]


def test_a_run_that_is_cut_lasts_until_the_cut() -> None:
    jobs = [job("done", 0, 10), job("runs", 0, 100, 3), job("waits", 5, 100, 4)]
    record = replay([*jobs, job("later", 90, 1)], until=60)
    ran = found(record)
    assert list(ran) == ["done", "runs", "waits"]
    assert record.ended == 60
    assert [one.state for one in ran.values()] == ["done", "unfinished", "unfinished"]
    assert ran["runs"].device_seconds == 180
    assert sum(ran["waits"].waits.values()) == 55
    assert_books_agree(record)


def test_a_run_that_is_over_before_the_cut_is_not_drawn_out() -> None:
    assert replay([job("a", 0, 10)], until=60).ended == 10


def test_a_job_that_ran_too_long_is_stopped_at_that_moment_and_not_for_others() -> None:
    record = replay([job("a", 0, 100, max_run_seconds=40), job("b", 70, 1)])
    a = found(record)["a"]
    assert (a.state, a.end, a.preemptions, a.device_seconds) == ("timed-out", 40, 0, 40)
    last = replay([job("a", 0, 100, max_run_seconds=40)])
    assert (found(last)["a"].state, last.ended) == ("timed-out", 40)


def test_a_job_the_policy_refuses_never_starts() -> None:
    class Choosy(Fifo, frozen=True):
        """Takes no job that is called b."""

        def admit(self, view: View, job: m.JobSpec) -> Verdict:
            return ACCEPTED if job.name != "b" else Verdict(accepted=False, code="no")

    trace = Trace(name="t", jobs=(job("a", 0, 10), job("b", 1, 10)))
    b = found(simulate(trace, parse_short("1xv100"), Choosy()))["b"]
    assert (b.state, b.admitted, b.end, b.sizes) == ("rejected", False, 1, [])


# --------------------------------------------------------------------------- jobs that never run


NEVER: dict[str, tuple[dict[str, Any], tuple[Queue, ...]]] = {
    "too-big": ({"devices": 64}, ()),
    "kind": ({"kinds": ("h100",)}, ()),
    "topology": ({"devices": 8, "topology": m.Wish(mode="require", level="node")}, ()),
    "paused": ({}, (Queue(name="default", paused=True, half_life_seconds=60.0),)),
    "quota": ({}, (Queue(name="default", limit=0),)),
}
BREAKS = Failures(node_mtbf_seconds=500.0, device_mtbf_seconds=900.0, device_repair_seconds=50.0)


@pytest.mark.parametrize("failures", [Failures(), BREAKS], ids=["all is well", "things break"])
@pytest.mark.parametrize("why", NEVER)
def test_a_job_that_can_never_run_ends_the_replay_with_a_reason(
    why: str, failures: Failures
) -> None:
    asked, queues = NEVER[why]
    jobs = [job("other", 0, 20, queue="others"), job("never", 3, 10, **({"devices": 1} | asked))]
    record = replay(
        jobs,
        "2x4xv100",
        "srtf",
        queues=(*queues, Queue(name="others")),
        failures=failures,
        explain=frozenset({"never"}),
    )
    other, never = record.jobs
    assert (other.state, never.state, never.sizes) == ("done", "unfinished", [])
    assert math.fsum(never.waits.values()) == pytest.approx(record.ended - 3)
    assert never.waits[why] > 0
    assert f"waits, {why}" in never.story[1][1]
    assert record.events < 200


def test_a_queue_that_has_spent_its_budget_ends_the_replay_too() -> None:
    jobs = [job("other", 0, 1, queue="others"), job("a", 5, 100)]
    queues = (Queue(name="default", budget_device_hours=0.01), Queue(name="others"))
    a = found(replay(jobs, queues=queues, failures=BREAKS))["a"]
    assert a.state == "unfinished"
    assert a.device_seconds == pytest.approx(36)


def test_a_job_that_needs_all_there_is_waits_for_repairs() -> None:
    for seed in range(8):
        record = replay([job("a", 600, 30, 8)], "4x2xv100", failures=BREAKS, seed=seed)
        assert record.jobs[0].state == "done"


def test_a_cluster_that_is_never_whole_ends_the_replay_all_the_same() -> None:
    failures = Failures(node_mtbf_seconds=100.0, node_repair_seconds=1000.0)
    record = replay([job("a", 5000, 30, 32)], "32x1xv100", failures=failures)
    assert record.jobs[0].state == "unfinished"


# --------------------------------------------------------------------------- what breaks


def drawn(stream: list[int], *means: float) -> list[float]:
    """What the documented stream of a node or device draws, one after another."""
    rng = np.random.default_rng(stream)
    return [float(rng.exponential(mean)) for mean in means]


def test_a_node_that_fails_takes_its_jobs_with_it_until_it_is_repaired() -> None:
    failures = Failures(node_mtbf_seconds=1000.0, node_repair_seconds=50.0)
    down, repair, again = drawn([7, 2, 0], 1000.0, 50.0, 1000.0)
    seconds = down + 100.0  # fails once on the way
    assert again > 200
    a = found(replay([job("a", 0, seconds, 4)], failures=failures, seed=7, checkpoint_seconds=30))[
        "a"
    ]
    lost = down % 30
    assert (a.restarts, a.preemptions) == (1, 0)
    assert a.lost_device_seconds == pytest.approx(lost * 4)
    assert [at for at, _ in a.sizes[:3]] == pytest.approx([0, down, down + repair])
    assert [size for _, size in a.sizes] == [4, 0, 4, 0]
    assert a.end == pytest.approx(seconds + repair + lost)
    assert math.fsum(a.waits.values()) == pytest.approx(repair)


def test_on_a_node_that_came_back_a_planned_stop_loses_nothing() -> None:
    failures = Failures(node_mtbf_seconds=1000.0, node_repair_seconds=50.0)
    down, repair, again = drawn([7, 2, 0], 1000.0, 50.0, 1000.0)
    back = down + repair
    assert again > 60
    jobs = [job("a", 0, 1e5, 4), job("short", back + 20, 10, 4)]
    a = found(replay(jobs, policy="srtf", failures=failures, seed=7, until=back + 50))["a"]
    assert (a.restarts, a.preemptions) == (1, 1)
    assert a.lost_device_seconds == pytest.approx(down * 4)


def test_a_device_that_fails_takes_only_its_own_job_with_it() -> None:
    failures = Failures(device_mtbf_seconds=1000.0, device_repair_seconds=50.0)
    downs = [drawn([3, 3, 0, device], 1000.0)[0] for device in range(2)]
    first = min(downs)
    record = replay(
        [job("a", 0, first + 10), job("b", 0, first + 10)],
        "2xv100",
        failures=failures,
        seed=3,
        checkpoint_seconds=INFINITY,
        until=first + 1,
    )
    assert sorted(one.restarts for one in record.jobs) == [0, 1]
    assert sum(one.lost_device_seconds for one in record.jobs) == pytest.approx(first)


def test_a_broken_device_is_still_broken_when_its_node_comes_back() -> None:
    cluster = parse_short("2x4xv100")
    failures = Failures(node_mtbf_seconds=100.0, device_mtbf_seconds=100.0)
    trace = Trace(name="t", jobs=())
    world = World(Options(failures=failures), SpeedBook(), trace, "v100")
    node = cluster.nodes[1]
    world.broken |= {node.name, (node.name, 2), (cluster.nodes[0].name, 0)}
    told = faults.happen(world, NODE_UP, (node, -1, np.random.default_rng(1)), 5.0)
    assert told == [
        m.NodeUp(at=5.0, node=node),
        m.DeviceHealth(at=5.0, name=node.name, device=2, healthy=False),
    ]


def test_what_breaks_is_the_same_under_every_policy() -> None:
    """A job alone on its node meets the same failures whoever decides."""
    trace = [job("a", 0, 5000, 4)]
    runs = [
        replay(trace, policy=policy, failures=BREAKS, seed=1, checkpoint_seconds=10)
        .jobs[0]
        .restarts
        for policy in ("fifo", "srtf", "las")
    ]
    assert runs[0] > 3
    assert runs[0] == runs[1] == runs[2]


def test_a_job_that_crashes_is_tried_again_as_often_as_it_asked() -> None:
    failures = Failures(job_mtbf_seconds=1.0)
    a = found(replay([job("a", 0, 1e6, retries=3)], failures=failures))["a"]
    assert (a.state, a.restarts) == ("failed", 3)
    assert len([size for _, size in a.sizes if size]) == 4


def test_a_crash_that_the_trace_tells_of_happens_once() -> None:
    ran = found(replay([job("a", 0, 100, fails_at=0.3), job("b", 0, 100, fails_at=0.3, retries=1)]))
    assert (ran["a"].state, ran["a"].end, ran["a"].restarts) == ("failed", 30, 0)
    assert (ran["b"].state, ran["b"].end, ran["b"].restarts) == ("done", 130, 1)


# --------------------------------------------------------------------------- the books

WORLDS = {
    "ideal": Options(),
    "costly": Options(start_seconds=60.0, resize_seconds=20.0, park_seconds=10.0),
    "crowded": Options(interference=0.3, straggler_share=0.3, park_seconds=10.0),
    "mistaken": Options(speed_error=0.4, resize_seconds=15.0, damp_seconds=200.0),
    "in rounds": Options(round_seconds=60.0, start_seconds=5.0),
    "fragile": Options(
        failures=Failures(
            node_mtbf_seconds=2e4,
            node_repair_seconds=1e3,
            device_mtbf_seconds=4e4,
            device_repair_seconds=8e3,
            job_mtbf_seconds=5e4,
        ),
        checkpoint_seconds=500.0,
        park_seconds=10.0,
        start_seconds=30.0,
    ),
}


@pytest.mark.parametrize("world", WORLDS)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    load=st.sampled_from([0.5, 1.5]),
    elastic=st.sampled_from([0.0, 0.5, 1.0]),
    cluster=st.sampled_from(["4x4xv100", "2x4xv100 + 2x4xa100", "2 racks of 2x4xv100"]),
    policy=st.sampled_from(sorted(builtin())),
    until=st.sampled_from([INFINITY, 9000.0]),
)
def test_seconds_are_counted_once_and_work_is_done_or_lost(
    world: str, seed: int, load: float, elastic: float, cluster: str, policy: str, until: float
) -> None:
    options = replaced(WORLDS[world], seed=seed, until=until)
    trace = generate(20, 16, load, elastic, seed)
    assert_books_agree(simulate(trace, parse_short(cluster), builtin()[policy](), options))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    policy=st.sampled_from(["fifo", "srtf", "las", "backfill"]),
    every=st.sampled_from([0.0, 700.0]),
)
def test_what_rigid_jobs_hold_is_exactly_their_work_and_what_was_lost(
    seed: int, policy: str, every: float
) -> None:
    failures = replaced(WORLDS["fragile"].failures, job_mtbf_seconds=3e4)
    options = Options(seed=seed, failures=failures, checkpoint_seconds=every, park_seconds=0.0)
    trace = generate(20, 16, 1.0, 0.0, seed)
    retried = [
        replaced(one, spec=replaced(one.spec, retries=10_000, resize_in_place=False))
        for one in trace.jobs
    ]
    record = simulate(
        replaced(trace, jobs=tuple(retried)), parse_short("16xv100"), builtin()[policy](), options
    )
    for one, asked in zip(record.jobs, trace.jobs, strict=True):
        assert one.state == "done"
        work = asked.seconds * asked.devices
        assert one.device_seconds == pytest.approx(work + one.lost_device_seconds, rel=1e-9)


def replaced(record: Any, **changes: Any) -> Any:
    """The same with changes."""
    return msgspec.structs.replace(record, **changes)


# --------------------------------------------------------------------------- again, and otherwise


def everything_at_once(seed: int, policy: str, tools: Tools | None = None) -> RunRecord:
    options = replaced(
        WORLDS["fragile"], seed=seed, speed_error=0.3, interference=0.1, straggler_share=0.2
    )
    trace = generate(40, 16, 1.0, 0.5, 5)
    record = simulate(trace, parse_short("4x4xv100"), builtin()[policy](), options, tools)
    return replace(record, decision_seconds=[], cpu_seconds=0.0)


@pytest.mark.parametrize("policy", sorted(builtin()))
def test_the_same_seed_gives_the_same_record_and_another_one_another(policy: str) -> None:
    first = everything_at_once(1, policy)
    assert repr(first) == repr(everything_at_once(1, policy))
    assert repr(first) != repr(everything_at_once(2, policy))


def test_being_watched_changes_nothing() -> None:
    ticks = iter(range(10**9))
    told: list[float] = []
    tools = Tools(clock=lambda: float(next(ticks)), stopwatch=lambda: 0.0, on_progress=told.append)
    assert repr(everything_at_once(1, "las", tools)) == repr(everything_at_once(1, "las"))
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_one_run_teaches_the_next_nothing() -> None:
    jobs = [job(str(i), 7.0 * i, 50, estimate_seconds=None) for i in range(20)]
    book = SpeedBook("v100")
    runs = [replay(jobs, "2xv100", "srtf", Tools(speedups=book)) for _ in range(2)]
    assert repr(runs[0]) == repr(runs[1])
    assert (book.prior.state(), book.models()) == (SpeedBook().prior.state(), [])


def test_the_course_of_the_cluster_is_thinned_to_a_bounded_number_of_points() -> None:
    jobs = [job(str(i), i, 0.5) for i in range(1000)]
    usage = replay(jobs).usage
    assert len(usage) <= USAGE_MAX
    assert [at for at, *_ in usage] == sorted(at for at, *_ in usage)
    assert all(held + free == 4 and biggest <= free for _, held, free, biggest in usage)

"""A live job asks for something else: what it holds, waits for and may do follows at once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.core.driver import Driver, linear, node, on

from bough.core import model as m
from bough.core.scheduler import Scheduler, Settings
from bough.core.speedup import SpeedBook
from bough.policies import find


def range_of(*sizes: int) -> m.Range:
    return m.Range(min=sizes[0], max=sizes[-1], steps=sizes)


def running(
    sizes: int | tuple[int, ...] = 2, policy: str = "max_min", devices: int = 8, **fields: Any
) -> Driver:
    """One node, and a job `a` that runs alone."""
    d = Driver(policy, node("n0", devices))
    d.submit("a", sizes, **fields)
    d.settle()
    return d


def taken_over(d: Driver) -> None:
    """A scheduler from the bytes knows the same, and would say the same."""
    fresh = Scheduler(d.scheduler.policy, settings=d.scheduler.settings)
    fresh.from_bytes(d.scheduler.to_bytes())
    assert fresh.wake_at == d.wake_at
    assert {id: fresh.why(id) for id in fresh.state.jobs} == {
        id: d.why(id) for id in d.scheduler.state.jobs
    }
    fresh.state.topology.check()


# --------------------------------------------------------------------------------- devices


def test_a_running_job_that_may_have_more_grows_in_place() -> None:
    d = running((1, 2))
    [resize] = d.amend("a", devices=range_of(1, 2, 4))
    assert resize == m.Resize("a", 1, 1, on("n0", 0, 1, 2, 3))
    d.settle()
    assert d.runs() == {"a": 4}
    taken_over(d)


def test_a_running_job_that_holds_too_many_shrinks_in_place() -> None:
    d = running(4, policy="fifo")
    [resize] = d.amend("a", devices=range_of(1, 2))
    assert isinstance(resize, m.Resize)
    d.settle()
    assert d.runs() == {"a": 2}
    taken_over(d)


def test_what_it_gives_up_goes_to_others_when_it_has_left_it() -> None:
    d = running(8, policy="fifo")
    d.submit("b", 4)
    assert [type(c) for c in d.amend("a", devices=range_of(4))] == [m.Resize]
    assert isinstance(d.does("a")[0], m.Start)
    d.settle()
    assert d.runs() == {"a": 4, "b": 4}


def test_a_running_job_that_needs_more_than_it_holds_starts_anew() -> None:
    d = running(2, policy="fifo")
    assert d.amend("a", devices=range_of(4)) == [m.Stop("a", 1)]
    assert d.settle() == [m.Start("a", 2, on("n0", 0, 1, 2, 3))]
    d.settle()
    assert d.runs() == {"a": 4}
    taken_over(d)


def test_it_waits_its_turn_for_more() -> None:
    d = Driver("fifo", node("n0"))
    d.submit("a", 2)
    d.submit("b", 2)
    d.settle()
    d.amend("b", devices=range_of(4))
    d.settle()
    assert d.runs() == {"a": 2}
    assert d.why("b").facts["needs"] == 4
    taken_over(d)


def test_a_job_that_cannot_change_in_place_starts_anew_with_less() -> None:
    d = running(4, policy="fifo", resize_in_place=False)
    assert d.amend("a", devices=range_of(2)) == [m.Stop("a", 1)]
    d.settle()
    assert d.runs() == {"a": 2}


@pytest.mark.parametrize("bound", [{"preemptible": False}, {"min_run_seconds": 60.0}])
def test_who_may_not_be_disturbed_by_others_is_by_its_owner(bound: dict[str, Any]) -> None:
    for wanted in (2, 4, 8):
        d = running(4, policy="max_min", **bound)
        d.amend("a", devices=range_of(wanted))
        d.settle()
        assert d.runs() == {"a": wanted}
        assert not d.scheduler.state.refused


def test_a_size_it_still_allows_is_kept() -> None:
    d = running(4, policy="fifo")
    assert d.amend("a", devices=range_of(4, 8)) == []
    assert d.runs() == {"a": 4}


@pytest.mark.parametrize("moment", ["starting", "resizing", "stopping"])
@pytest.mark.parametrize("sizes", [(1,), (3,), (8,), (1, 2, 4, 8)])
def test_at_every_moment_of_its_life(moment: str, sizes: tuple[int, ...]) -> None:
    d = Driver("max_min", node("n0", 8))
    d.submit("a", (2, 8))
    if moment != "starting":
        d.settle()
    if moment == "resizing":
        d.submit("b", 4)
    elif moment == "stopping":
        d.hold("a")
        d.release("a")
    assert d.scheduler.state.jobs["a"].state == moment
    d.amend("a", devices=range_of(*sizes))
    d.settle()
    d.cancel("b")
    d.settle()
    assert d.runs() == {"a": sizes[-1]}
    d.scheduler.state.topology.check()
    taken_over(d)


def test_a_job_too_big_for_the_cluster_runs_when_it_asks_for_less() -> None:
    d = Driver("fifo", node("n0"))
    d.submit("a", 16)
    assert d.why("a").code == "too-big"
    [start] = d.amend("a", devices=range_of(4))
    assert isinstance(start, m.Start)


def test_a_job_that_asks_for_more_than_there_is_waits() -> None:
    d = running(4, policy="fifo", devices=4)
    d.amend("a", devices=range_of(16))
    d.settle()
    assert (d.runs(), d.why("a").code) == ({}, "too-big")
    taken_over(d)


def test_what_was_learnt_of_it_is_kept() -> None:
    book = SpeedBook()
    book.add("m", 0, "gpu", linear(1, 2, 4, 8))
    d = Driver("greedy", node("n0", 4), speedups=book)
    d.submit("a", (1, 2, 4), model="m")
    d.settle()
    d.progress("a", rate=1.0, size=4)
    before = d.scheduler.state.table.rate[0]
    d.amend("a", devices=range_of(2, 4))
    table, classes = d.scheduler.state.table, d.scheduler.state.classes
    assert before == table.rate[0] == 1.0
    own = int(table.cls[0])
    assert classes.sizes(own) == (2, 4)
    assert classes.speed(own, 4) < 2.0
    fresh = Scheduler(d.scheduler.policy, speedups=book)
    fresh.from_bytes(d.scheduler.to_bytes())
    assert fresh.state.classes.curve(int(fresh.state.table.cls[0])) == classes.curve(own)
    d.exits("a")
    assert not d.scheduler.state.fits


def test_a_gang_of_roles_keeps_its_devices() -> None:
    d = Driver("fifo", node("n0", 8))
    spec = m.JobSpec(name="g", roles=(m.Role(name="w", count=m.Range(min=2, max=2)),))
    d.submit_spec("g", spec)
    d.settle()
    assert d.amend("g", devices=range_of(4), priority=1) == []
    now = d.scheduler.state.jobs["g"].spec
    assert (now.devices, now.priority) == (m.Range(), 1)


# ------------------------------------------------------------------- queue, priority, deadline


def test_a_job_moves_to_another_queue_with_what_it_holds() -> None:
    queues = [m.Queue(name="a", limit=2), m.Queue(name="b", limit=4)]
    d = Driver("fifo", node("n0", 8), queues=queues)
    for id, size in (("x", 2), ("y", 2), ("z", 2)):
        d.submit(id, size, queue="a")
    d.settle()
    assert d.runs() == {"x": 2}
    d.amend("x", queue="b")
    d.settle()
    assert d.runs() == {"x": 2, "y": 2}
    d.amend("z", queue="b")
    d.settle()
    assert d.runs() == {"x": 2, "y": 2, "z": 2}
    taken_over(d)


def test_what_it_has_moved_into_has_its_own_limit() -> None:
    queues = [m.Queue(name="a"), m.Queue(name="b", limit=1)]
    d = Driver("fifo", node("n0", 8), queues=queues)
    d.submit("x", 2, queue="a")
    d.settle()
    d.amend("x", queue="b")
    d.settle()
    assert (d.runs(), d.why("x").code) == ({}, "quota")


def test_a_queue_not_seen_before_becomes_one() -> None:
    d = running()
    d.amend("a", queue="new")
    assert "new" in d.scheduler.state.queues.names
    assert d.runs() == {"a": 2}
    taken_over(d)


def test_a_higher_priority_brings_it_forward() -> None:
    d = Driver("fifo", node("n0"))
    d.submit("a", 4)
    d.settle()
    d.submit("b", 4)
    d.submit("c", 4)
    d.amend("c", priority=5)
    d.exits("a")
    d.settle()
    assert d.runs() == {"c": 4}


def test_priorities_are_counted() -> None:
    d = running()
    for priority, count in ((3, 1), (5, 1), (0, 0), (-1, 1), (0, 0)):
        d.amend("a", priority=priority)
        assert d.scheduler.state.priorities == count
    d.amend("a", priority=7)
    d.cancel("a")
    d.settle()
    assert d.scheduler.state.priorities == 0


def test_an_earlier_deadline_brings_it_forward() -> None:
    d = Driver("edf", node("n0"))
    d.submit("a", 4, deadline=500.0)
    d.settle()
    d.submit("b", 4, deadline=1000.0)
    assert d.amend("b", deadline=100.0) == [m.Stop("a", 1)]
    d.settle()
    assert d.runs() == {"b": 4}
    assert d.amend("b", deadline=0.0) == [m.Stop("b", 1)]
    assert d.scheduler.state.jobs["b"].spec.deadline is None
    taken_over(d)


def test_a_deadline_takes_the_place_of_one_told_from_submission() -> None:
    d = running(deadline_after=50.0)
    d.amend("a", deadline=900.0)
    assert d.scheduler.state.table.deadline[0] == 900.0
    d.amend("a", deadline=0.0)
    assert d.scheduler.state.table.deadline[0] == m.INFINITY


# ----------------------------------------------------------------------------- longest run time


def test_a_longer_run_time_lets_it_go_on() -> None:
    d = running(max_run_seconds=60.0)
    d.tick(30.0)
    d.amend("a", max_run_seconds=100.0)
    assert d.wake_at == 100.0
    taken_over(d)
    assert d.tick(60.0) == []
    assert d.tick(100.0) == [m.Stop("a", 1, park=False)]


def test_a_shorter_run_time_ends_it_earlier() -> None:
    d = running(max_run_seconds=60.0)
    d.tick(30.0)
    d.amend("a", max_run_seconds=40.0)
    assert d.tick(40.0) == [m.Stop("a", 1, park=False)]


def test_a_run_time_that_is_over_ends_it_now() -> None:
    d = running()
    d.tick(30.0)
    assert d.amend("a", max_run_seconds=20.0) == [m.Stop("a", 1, park=False)]
    assert d.settle() == [m.Ended("a", 1, "timed-out", "it may run for 20s")]


def test_a_waiting_job_that_has_run_for_so_long_is_over() -> None:
    d = running()
    d.tick(30.0)
    d.hold("a")
    d.settle()
    [ended] = d.amend("a", max_run_seconds=20.0)
    assert ended == m.Ended("a", 1, "timed-out", "it may run for 20s")


def test_no_limit_is_no_limit() -> None:
    d = running(max_run_seconds=60.0)
    d.amend("a", max_run_seconds=0.0)
    assert d.wake_at == m.INFINITY
    assert d.tick(1000.0) == []
    assert d.runs() == {"a": 2}


def test_a_limit_holds_for_the_next_start_too() -> None:
    d = running()
    d.tick(30.0)
    d.hold("a")
    d.settle()
    d.amend("a", max_run_seconds=50.0)
    d.tick(100.0)
    d.release("a")
    assert d.wake_at == 120.0


# -------------------------------------------------------------------------------- nonsense


NONSENSE: list[dict[str, Any]] = [
    {},
    {"devices": m.Range(min=0, max=0)},
    {"devices": m.Range(min=0, max=4)},
    {"priority": 1 << 70},
    {"deadline": float("nan")},
    {"max_run_seconds": float("nan")},
    {"max_run_seconds": -5.0},
    {"queue": "default"},
    {"devices": range_of(2), "priority": 0},
]


@pytest.mark.parametrize("wish", NONSENSE, ids=str)
def test_what_cannot_be_meant_changes_nothing(wish: dict[str, Any]) -> None:
    d = running()
    before = d.scheduler.to_bytes()
    assert d.amend("a", **wish) == []
    assert d.scheduler.to_bytes() == before


def test_what_can_be_meant_beside_it_is_done() -> None:
    d = running()
    d.amend("a", max_run_seconds=-5.0, priority=3)
    assert d.scheduler.state.jobs["a"].spec.priority == 3


def test_a_job_that_is_not_there_or_over_is_left_alone() -> None:
    d = running()
    assert d.amend("nobody", priority=1) == []
    d.cancel("a")
    assert d.amend("a", priority=1) == []  # it is being stopped
    d.settle()
    assert d.amend("a", priority=1) == []
    assert d.scheduler.state.priorities == 0


def test_it_is_written_down_and_read_back() -> None:
    told = m.Amended(at=1.0, id="a", devices=range_of(1, 4), deadline=0.0, max_run_seconds=0.0)
    read = msgspec.json.decode(msgspec.json.encode(told), type=m.AnyEvent)
    assert read == told


def test_a_job_that_waits_to_be_tried_again_waits_on() -> None:
    d = Driver("fifo", node("n0"), backoff_seconds=8.0)
    d.submit("a", 2, retries=1)
    d.settle()
    d.exits("a", "failed", code=1)
    at = d.wake_at
    assert d.amend("a", devices=range_of(4)) == []
    assert (d.wake_at, d.why("a").code) == (at, "retry")
    [start] = d.tick(at)
    assert isinstance(start, m.Start)


def test_a_held_job_stays_held() -> None:
    d = running()
    d.hold("a")
    d.settle()
    assert d.amend("a", devices=range_of(4)) == []
    assert d.why("a").code == "held"


def test_a_replay_comes_to_the_same() -> None:
    events: list[m.Event] = [
        m.NodeUp(at=0.0, node=node("n0", 8)),
        m.Submitted(at=1.0, id="a", spec=m.JobSpec(name="a", devices=range_of(2))),
        m.Started(at=2.0, id="a", epoch=1),
        m.Amended(at=3.0, id="a", devices=range_of(2, 4), max_run_seconds=60.0),
        m.Resized(at=4.0, id="a", epoch=1, step=1),
        m.Tick(at=90.0),
    ]
    one, other = (Scheduler(find("max_min"), settings=Settings()) for _ in "ab")
    for event in events:
        again = msgspec.json.decode(msgspec.json.encode(event), type=m.AnyEvent)
        assert one.handle([event]) == other.handle([again])
    assert one.to_bytes() == other.to_bytes()

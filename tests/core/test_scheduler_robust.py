"""Corners in which one odd event or plan once stopped the scheduler, or misled it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.driver import Driver, linear, node, on

from bough.core import model as m
from bough.core.policy import Plan, Policy
from bough.core.scheduler import Scheduler
from bough.core.speedup import Curve, SpeedBook

ALL, HALF = on("n0", 0, 1, 2, 3), on("n0", 0, 1)


def test_a_long_chain_of_dependents_is_cancelled() -> None:
    d = Driver("fifo", node("n0"))
    d.submit("j0", 1)
    for i in range(1, 1500):
        d.submit(f"j{i}", 1, after=(m.After(job=f"j{i - 1}"),))
    d.settle()
    assert len(d.exits("j0", "failed")) == 1500


@pytest.mark.parametrize(
    "plan",
    [
        lambda v: Plan(np.zeros(0, np.int64), order=np.arange(v.jobs.n)),
        lambda v: Plan(v.jobs.wish.copy(), order=np.array([5])),
        lambda v: Plan(v.jobs.wish.copy(), reasons={5: "policy"}),
    ],
    ids=["too few sizes", "row out of range", "reason for nobody"],
)
def test_a_bad_ordered_plan_is_refused(plan) -> None:
    class Bad(Policy, frozen=True):
        def plan(self, view: Any) -> Any:
            return plan(view)

    d = Driver(Bad(), node("n0"))
    d.submit("a", 1)
    assert d.scheduler.state.refused


def test_a_row_is_granted_once() -> None:
    class Twice(Policy, frozen=True):
        def plan(self, view: Any) -> Any:
            return Plan(view.jobs.wish.copy(), order=np.array([0, 0]))

    d = Driver(Twice(), node("n0"))
    d.submit("a", 4)
    assert d.scheduler.state.refused


def test_a_rate_at_a_size_that_is_not_the_jobs_is_ignored() -> None:
    d = Driver("fifo", node("n0"))
    d.submit("a", 4)
    d.settle()
    assert d.progress("a", rate=3.0, size=3) == []


def test_a_device_that_does_not_exist_leaves_no_trace() -> None:
    d = Driver("fifo", node("n0"))
    with pytest.raises(ValueError, match="no device 9"):
        d.health("n0", 9, False)
    fresh = Scheduler(d.scheduler.policy)
    fresh.from_bytes(d.scheduler.to_bytes())


def test_a_snapshot_outlives_a_change_of_kind() -> None:
    d = Driver("fifo", node("n0", 4, "a"))
    d.up(node("n0", 4, "b"))
    d.submit("x", 4)
    d.submit("y", 4)
    d.settle()
    fresh = Scheduler(d.scheduler.policy)
    fresh.from_bytes(d.scheduler.to_bytes())
    told = [m.Exited(at=1.0, id="x", epoch=1)]
    assert fresh.handle(told) == d.scheduler.handle(told)


def test_a_job_submitted_before_any_node_is_believed_the_same() -> None:
    def run(first: bool) -> dict[str, int]:
        book = SpeedBook("a")
        book.add("m", 0, "a", linear(1, 2, 4))
        book.add("m", 0, "b", Curve((1, 2, 4), (3.0, 3.0, 3.0)))
        d = Driver("greedy", speedups=book)
        if first:
            d.submit("x", (1, 2, 4), model="m")
        d.up(node("n0", 4, "b"))
        if not first:
            d.submit("x", (1, 2, 4), model="m")
        d.settle()
        return d.runs()

    assert run(True) == run(False)


def test_the_speed_at_the_wish_is_that_of_the_wish_after_learning() -> None:
    book = SpeedBook()
    book.add("m", 0, "gpu", linear(1, 2, 4))
    d = Driver("srtf", node("n0", 2), speedups=book)
    d.submit("a", (1, 2, 4), model="m", estimate_seconds=100.0)
    d.settle()
    d.progress("a", rate=1.0, size=2)
    t = d.scheduler.state.table
    assert t.wish[0] == 2
    assert t.wish_speed[0] == d.scheduler.state.classes.speed(int(t.cls[0]), 2)


def test_a_plan_over_kinds_says_why_jobs_wait() -> None:
    class R(Policy, frozen=True):
        scope = "cluster"

        def plan(self, view: Any) -> Any:
            return Plan(np.zeros((view.jobs.n, 1), np.int64), reasons={0: "policy"})

    d = Driver(R(), node("n0"))
    d.submit("a", 1)
    assert d.why("a").code == "policy"


def test_another_label_on_a_node_stops_nobody() -> None:
    d = Driver("fifo", node("n0"))
    d.submit("a", 1)
    d.settle()
    assert d.up(node("n0", labels={"x": "y"})) == []


def test_letting_a_running_job_go_on_is_no_cause_of_waiting() -> None:
    d = Driver("fifo", node("n0"))
    d.submit("a", 1)
    d.settle()
    d.scheduler.state.causes.clear()
    d.release("a")
    assert d.scheduler.state.causes == []


def test_rounds_of_a_fraction_of_a_second_are_due() -> None:
    d = Driver("fifo", node("n0"), round_seconds=0.1)
    d.now = 0.25
    d.submit("a", 1)
    for _ in range(3):
        if d.wake_at < 1e9:
            d.tick(d.wake_at)
    assert d.settle() == []
    assert d.runs() == {"a": 1}
    assert d.now < 0.31


def test_a_longest_run_time_does_not_wait_for_the_round() -> None:
    d = Driver("fifo", node("n0"), round_seconds=60.0)
    d.submit("a", 1, max_run_seconds=90.0)
    d.settle()
    assert d.wake_at == 90.0

"""Corners in which devices, limits and promises were once broken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.driver import Driver, half_taken, job, linear, node, on

from bough.core import model as m
from bough.core.policy import Policy
from bough.core.speedup import Curve, SpeedBook

ALL, HALF = on("n0", 0, 1, 2, 3), on("n0", 0, 1)


def test_devices_of_a_failed_shrink_are_not_given_on_before_the_job_is_gone() -> None:
    d = Driver("max_min", node("n0"))
    d.submit("a", (1, 2, 4))
    d.settle()
    assert d.submit("b", 2) == [m.Resize("a", 1, 1, HALF)]
    assert d.say(m.Resized(at=1.0, id="a", epoch=1, step=1, ok=False)) == [m.Stop("a", 1)]


@pytest.mark.parametrize(
    "queue",
    [
        m.Queue(name="q", limit=1),
        m.Queue(name="q", budget_device_hours=0.0),
        m.Queue(name="q", paused=True),
    ],
)
def test_what_one_job_cannot_be_placed_on_is_not_given_beyond_limits_and_pauses(
    queue: m.Queue,
) -> None:
    d = half_taken("fifo(skip=true)", [queue])
    for i in range(3):
        d.submit(f"q{i}", 1, queue="q")
    d.settle()
    before = {k: v for k, v in d.runs().items() if k[0] == "q"}
    assert sum(before.values()) == (queue.limit or 0)
    d.submit("wide", 2)
    d.settle()
    assert {k: v for k, v in d.runs().items() if k[0] == "q"} == before


def test_a_limit_for_all_kinds_together_holds_in_one_decision() -> None:
    d = Driver("fifo", node("n0", 4, "a"), node("n1", 4, "b"), queues=[m.Queue(name="q", limit=4)])
    d.say(*[m.Submitted(at=0.0, id=k, spec=job(4, kinds=(k,), queue="q")) for k in "ab"])
    d.settle()
    assert sum(d.runs().values()) == 4
    first = d.runs()
    for t in (1.0, 2.0, 3.0):
        d.tick(t)
        d.settle()
        assert d.runs() == first  # flaps all on / all off


def test_a_bad_size_on_another_kind_does_not_stop_the_cluster() -> None:
    book = SpeedBook()
    book.add("m", 0, "a", linear(1, 2, 4))
    book.add("m", 0, "b", Curve((1, 2, 4), (0.0, 2.0, 4.0)))
    d = Driver("max_min", node("n0", 4, "a"), node("n1", 4, "b"), speedups=book)
    d.submit("x", 4, kinds=("a",))
    d.submit("w", 3, kinds=("b",))
    d.submit("y", (1, 2, 4), kinds=("a", "b"), model="m")
    assert d.scheduler.state.refused == ""


def test_a_budget_is_charged_from_the_first_moment() -> None:  # docs/queues.md: "to the second"
    d = Driver("fifo", node("n0"), queues=[m.Queue(name="q", budget_device_hours=10.0)])
    d.submit("a", 4, queue="q")
    d.settle()
    assert d.wake_at == 9000.0
    assert d.tick(9000.0) == [m.Stop("a", 1)]


def test_a_move_that_was_rolled_back_leaves_the_pool_as_it_was() -> None:
    class Move(Policy, frozen=True):
        scope = "cluster"

        def plan(self, view: Any) -> Any:
            out = np.zeros((view.jobs.n, len(view.pools)), np.int64)
            for i in range(view.jobs.n):
                out[i, 0 if view.jobs.priority[i] == 5 and view.now < 10 else 1] = view.jobs.wish[i]
            return out

    d = Driver(
        Move(), node("n0", 2, "a"), node("n1", 2, "b"), node("n2", 2, "b"), node("n3", 1, "b")
    )
    d.submit("x", 1, priority=5)
    for i in range(5):
        d.submit(f"z{i}", 1)
    d.settle()
    state = d.scheduler.state
    at = {j.place[0]: j.id for j in state.table.items if j.id != "x"}
    for slot in ((1, 1), (2, 1), (3, 1)):
        d.exits(at[slot])
    d.now = 10.0
    d.submit("y", 2)  # finds no compact place: second attempt
    x = state.jobs["x"]
    assert state.topology.pools[x.place[0][0]] == state.table.pool[state.table.row(x)]

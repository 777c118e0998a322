"""Corners in which jobs were once stopped for nothing, or never grew."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.core.driver import Driver, half_taken, node, on

from bough.core import model as m
from bough.core.policy import Plan, Policy, Verdict, View

ALL, HALF = on("n0", 0, 1, 2, 3), on("n0", 0, 1)


def test_a_running_job_is_not_stopped_for_one_that_cannot_be_placed_on_a_drained_node() -> None:
    d = Driver("srtf", node("n0"))
    d.submit("a", 4, estimate_seconds=100.0)
    d.settle()
    d.drain("n0")
    assert d.submit("b", 4, estimate_seconds=1.0) == []


def test_a_running_job_grows_onto_a_node_that_joins() -> None:
    d = Driver("max_min", node("n0"))
    d.submit("a", (1, 2, 4, 8))
    d.settle()
    d.now = 100000.0
    d.up(node("n1"))
    d.tick(200000.0)
    d.settle()
    assert d.runs() == {"a": 8}


def test_progress_reports_do_not_prolong_the_damping() -> None:
    d = Driver("max_min", node("n0"), damp_seconds=100.0)
    d.submit("a", (1, 2, 4))
    d.submit("b", 2)
    d.settle()
    d.now = 10.0
    d.exits("b")
    for t in range(20, 1000, 20):
        d.now = float(t)
        d.progress("a", left=1000.0)
        if d.wake_at <= t:
            d.tick(float(t))
            d.settle()
    d.tick(1000.0)
    d.settle()
    assert d.runs() == {"a": 4}


def test_a_cancelled_job_takes_no_devices_when_nodes_change() -> None:
    d = Driver("fifo", node("n0"))
    d.submit("a", 4)
    d.settle()
    d.cancel("a")
    d.drain("n0")
    d.up(node("n1"))
    assert d.submit("b", 4) == [m.Start("b", 1, on("n1", 0, 1, 2, 3))]


def test_a_preempted_job_gets_what_is_left_over() -> None:
    d = Driver("fifo", node("n0"), node("n1"))
    for i in range(4):
        d.submit(f"l{i}", 2)
    d.settle()
    d.exits("l1")
    d.exits("l3")
    d.submit("high", 4, priority=1)
    d.settle()
    assert sum(d.runs().values()) == 8


def test_patience_is_each_jobs_own() -> None:
    d = half_taken("srtf")
    d.submit("old", 2, estimate_seconds=1000.0)
    d.now = 170.0
    d.submit("new", 2, estimate_seconds=10.0)
    assert d.wake_at == 180.0
    assert [c.id for c in d.tick(180.0)] == ["old"]


def test_waiting_for_devices_to_be_left_is_not_running() -> None:
    d = Driver("srtf", node("n0"))
    d.submit("a", 4, estimate_seconds=1000.0)
    d.settle()
    d.submit("b", 4, estimate_seconds=100.0, max_run_seconds=100.0)
    d.now = 50.0
    d.does("a")
    d.settle()
    d.now = 60.0
    d.hold("a")
    d.hold("b")
    d.settle()
    d.now = 70.0
    d.release("b")
    assert d.wake_at == 160.0  # ran 10 s of 100


def test_a_non_preemptible_job_is_not_moved_to_another_kind() -> None:
    class Swap(Policy, frozen=True):
        scope = "cluster"

        def plan(self, view: Any) -> Any:
            out = np.zeros((view.jobs.n, len(view.pools)), np.int64)
            out[:, int(view.now >= 10.0)] = view.jobs.wish
            return out

    d = Driver(Swap(), node("n0", 4, "a"), node("n1", 4, "b"))
    d.submit("x", 2, preemptible=False)
    d.settle()
    assert d.tick(10.0) == []


def test_a_device_that_is_well_again_after_its_node_changed_is_used() -> None:
    d = Driver("fifo", node("n0"))
    d.health("n0", 0, False)
    d.up(node("n0", cpus=8.0))
    d.health("n0", 0, True)
    assert d.submit("a", 4) == [m.Start("a", 1, ALL)]


class Choosy(Policy, frozen=True):
    """Refuses what is bad."""

    def admit(self, view: View, job: m.JobSpec) -> Verdict:
        return Verdict(accepted=job.model != "bad", code="no")

    def plan(self, view: View) -> Plan:
        return Plan(view.jobs.wish.copy(), order=np.arange(view.jobs.n))


def test_who_waits_for_a_job_that_is_then_rejected_is_cancelled() -> None:
    d = Driver(Choosy(), node("n0"))
    d.submit("b", 1, after=(m.After(job="a"),))
    ended = [(c.id, c.state) for c in d.submit("a", 1, model="bad") if isinstance(c, m.Ended)]
    assert ended == [("a", "rejected"), ("b", "cancelled")]


def test_non_preemptible_jobs_do_not_get_their_queue_more_than_its_share() -> None:
    d = Driver("fifo", node("n0", 8), queues=[m.Queue(name="a"), m.Queue(name="b")])
    d.submit("a1", 4, queue="a", preemptible=False)
    d.submit("b1", 4, queue="b")
    d.settle()
    assert d.submit("a2", 2, queue="a") == []  # each has its half already

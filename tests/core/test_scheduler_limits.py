"""Bounds on time and place: run times, protection, damping, rounds, patience, priorities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.driver import Driver, node, on

from bough.core import model as m
from bough.core.policy import Ints, Plan, Policy, View

ALL = on("n0", 0, 1, 2, 3)
HALF = on("n0", 0, 1)
NEVER = m.INFINITY


# ---------------------------------------------------------------------- the longest run time


def test_a_job_is_stopped_when_it_has_run_as_long_as_it_may() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4, max_run_seconds=60.0)
    driver.settle()
    assert driver.wake_at == 60.0
    assert driver.tick(59.0) == []
    assert driver.tick(60.0) == [m.Stop("a", 1, park=False)]
    assert driver.wake_at == NEVER
    assert driver.settle() == [m.Ended("a", 1, "timed-out", "it may run for 1m")]


def test_waiting_does_not_count_as_running() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    driver.settle()
    driver.submit("b", 4, max_run_seconds=60.0)
    assert driver.wake_at == NEVER
    driver.tick(100.0)
    assert driver.exits("a")[1:] == [m.Start("b", 1, ALL)]
    assert driver.wake_at == 160.0


def test_what_it_ran_before_it_was_parked_counts() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4, max_run_seconds=60.0)
    driver.settle()
    driver.tick(40.0)
    driver.hold("a")
    driver.settle()
    driver.tick(1000.0)
    assert driver.release("a") == [m.Start("a", 2, ALL)]
    assert driver.wake_at == 1020.0
    driver.settle()
    assert driver.tick(1020.0) == [m.Stop("a", 2, park=False)]


def test_a_job_that_ends_in_time_is_not_stopped() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4, max_run_seconds=60.0)
    driver.settle()
    driver.exits("a")
    assert driver.tick(60.0) == []


# ------------------------------------------------------------------------------- protection


def test_a_job_is_left_alone_for_its_least_run_time() -> None:
    driver = Driver("srtf", node("n0"))
    driver.submit("a", 4, estimate_seconds=100.0, min_run_seconds=30.0)
    driver.settle()
    assert driver.submit("b", 4, estimate_seconds=1.0) == []
    assert driver.wake_at == 30.0
    assert driver.tick(29.0) == []
    assert driver.tick(30.0) == [m.Stop("a", 1)]


def test_each_start_is_protected_anew() -> None:
    driver = Driver("srtf", node("n0"))
    driver.submit("a", 4, estimate_seconds=100.0, min_run_seconds=30.0)
    driver.settle()
    driver.now = 20.0
    driver.exits("a", "lost")
    driver.settle()
    assert driver.submit("b", 4, estimate_seconds=1.0) == []
    assert driver.tick(30.0) == []
    assert driver.wake_at == 50.0
    assert driver.tick(50.0) == [m.Stop("a", 2)]


def test_a_protected_job_is_not_shrunk_but_may_grow() -> None:
    driver = Driver("max_min", node("n0"))
    driver.submit("a", (1, 2, 4), min_run_seconds=30.0)
    driver.submit("b", (1, 2), min_run_seconds=30.0)
    driver.settle()
    assert driver.runs() == {"a": 4}
    driver.tick(30.0)
    driver.settle()
    assert driver.runs() == {"a": 2, "b": 2}
    assert driver.exits("b")[1:] == [m.Resize("a", 1, 2, ALL)]


def test_a_job_that_is_not_preemptible_runs_to_its_end() -> None:
    driver = Driver("srtf", node("n0"))
    driver.submit("a", 4, estimate_seconds=100.0, preemptible=False)
    driver.settle()
    assert driver.submit("b", 4, estimate_seconds=1.0, priority=9) == []
    assert driver.tick(50.0) == []
    assert driver.exits("a")[1:] == [m.Start("b", 1, ALL)]


def test_a_user_may_stop_what_others_may_not() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4, preemptible=False, min_run_seconds=60.0)
    driver.settle()
    assert driver.hold("a") == [m.Stop("a", 1)]


# ----------------------------------------------------------------------------- damping, rounds


def test_a_job_is_not_grown_again_within_the_damping() -> None:
    driver = Driver("max_min", node("n0"), damp_seconds=20.0)
    driver.submit("a", (1, 2, 4))
    driver.submit("b", 2)
    driver.settle()
    driver.tick(10.0)
    driver.exits("b")
    assert driver.runs() == {"a": 2}
    assert driver.wake_at == 20.0
    assert driver.tick(20.0) == [m.Resize("a", 1, 2, ALL)]


def test_damping_keeps_nobody_from_shrinking() -> None:
    driver = Driver("max_min", node("n0"), damp_seconds=20.0)
    driver.submit("a", (1, 2, 4))
    driver.settle()
    assert driver.submit("b", 2) == [m.Resize("a", 1, 1, HALF)]


def test_plans_are_made_at_the_rounds_only() -> None:
    driver = Driver("fifo", node("n0"), round_seconds=60.0)
    driver.now = 10.0
    assert driver.submit("a", 2) == []
    assert driver.wake_at == 60.0
    assert driver.tick(59.0) == []
    assert driver.tick(60.0) == [m.Start("a", 1, HALF)]
    assert driver.wake_at == NEVER


def test_between_rounds_what_was_decided_is_carried_out() -> None:
    driver = Driver("srtf", node("n0"), round_seconds=60.0)
    driver.submit("a", 4, estimate_seconds=100.0)
    driver.settle()
    driver.now = 30.0
    driver.submit("b", 4, estimate_seconds=1.0)
    assert driver.tick(60.0) == [m.Stop("a", 1)]
    driver.now = 61.0
    assert driver.does("a") == [m.Start("b", 1, ALL)]


class Waking(Policy, frozen=True):
    """Lets every job wait until a moment."""

    until: float = 100.0

    def plan(self, view: View) -> Plan:
        sizes = view.jobs.wish * (view.now >= self.until)
        return Plan(sizes, wake_at=self.until)


@pytest.mark.parametrize(("round_seconds", "wake_at"), [(0.0, 100.0), (30.0, 120.0)])
def test_the_policy_says_when_it_wants_to_be_asked_again(
    round_seconds: float, wake_at: float
) -> None:
    driver = Driver(Waking(), node("n0"), round_seconds=round_seconds)
    assert driver.submit("a", 4) == []
    assert driver.wake_at == wake_at
    assert driver.tick(wake_at) == [m.Start("a", 1, ALL)]


def test_a_moment_that_has_passed_is_not_waited_for() -> None:
    driver = Driver(Waking(until=100.0), node("n0"))
    driver.tick(200.0)
    driver.submit("a", 4)
    assert driver.wake_at == NEVER


# ------------------------------------------------------------------------ patience for a place


def scattered(policy: str = "fifo", **settings: Any) -> Driver:
    """Two nodes of two devices, half of each taken."""
    driver = Driver(policy, node("n0", 2), node("n1", 2), **settings)
    for id in ("w", "x", "y", "z"):
        driver.submit(id, 1)
    driver.settle()
    driver.exits("w")
    driver.exits("y")
    return driver


def test_a_job_waits_for_a_compact_place_and_then_accepts_a_scattered_one() -> None:
    driver = scattered(locality_seconds=50.0)
    driver.now = 10.0
    assert driver.submit("a", 2) == []
    assert driver.why("a").code == "fragmentation"
    assert driver.wake_at == 60.0
    assert driver.tick(59.0) == []
    assert driver.tick(60.0) == [m.Start("a", 1, (("n0", (0,)), ("n1", (0,))))]


def test_a_compact_place_that_appears_in_time_is_taken() -> None:
    driver = scattered(locality_seconds=50.0)
    driver.submit("a", 2)
    assert driver.exits("x")[1:] == [m.Start("a", 1, (("n0", (0, 1)),))]


def test_a_patience_without_end_is_never_lost() -> None:
    driver = scattered(locality_seconds=NEVER)
    driver.submit("a", 2)
    assert driver.wake_at == NEVER
    assert driver.tick(1e9) == []


def test_no_patience_takes_what_there_is() -> None:
    driver = scattered(locality_seconds=0.0)
    assert driver.submit("a", 2) == [m.Start("a", 1, (("n0", (0,)), ("n1", (0,))))]


def test_a_required_domain_is_waited_for_without_end() -> None:
    driver = scattered(locality_seconds=50.0)
    driver.submit("a", 2, topology=m.Wish(mode="require", level="node"))
    assert driver.tick(1000.0) == []
    assert driver.why("a").code == "topology"


# -------------------------------------------------------------------------------- priorities


def test_higher_priority_waits_in_front() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    driver.submit("b", 4)
    driver.submit("c", 4, priority=1)
    driver.settle()
    assert driver.exits("a")[1:] == [m.Start("c", 1, ALL)]


def test_fifo_never_stops_a_job_for_one_of_higher_priority_that_does_not_fit() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    driver.settle()
    assert driver.submit("b", 4, priority=9) == []


def test_an_elastic_job_of_lower_priority_gives_way_first() -> None:
    driver = Driver("max_min", node("n0"))
    driver.submit("low", 2)
    driver.submit("other", 2)
    driver.settle()
    assert driver.submit("high", 2, priority=1) == [m.Stop("other", 1)]
    assert driver.settle() == [m.Start("high", 1, on("n0", 2, 3))]


class Whole(Policy, frozen=True):
    """All have what they wish while it lasts, those of higher priority first."""

    def plan(self, view: View) -> Plan:
        order: Ints = np.argsort(-view.jobs.priority, kind="stable")
        return Plan(view.jobs.wish.copy(), order=order)


def test_who_was_granted_devices_but_found_no_place_takes_one_from_lower_priority() -> None:
    driver = Driver(Whole(), node("n0", 2), node("n1", 2))
    for id in ("w", "x", "y", "z"):
        driver.submit(id, 1)
    driver.settle()
    driver.exits("w")
    driver.exits("y")
    [stop] = driver.submit("high", 2, priority=1)
    assert isinstance(stop, m.Stop)
    assert stop.id in ("x", "z")
    start = m.Start("high", 1, on("n0" if stop.id == "x" else "n1", 0, 1))
    assert start in driver.settle()


def test_nobody_of_equal_priority_is_disturbed_for_a_place() -> None:
    driver = Driver(Whole(), node("n0", 2), node("n1", 2))
    for id in ("w", "x", "y", "z"):
        driver.submit(id, 1, priority=1)
    driver.settle()
    driver.exits("w")
    driver.exits("y")
    assert driver.submit("high", 2, priority=1) == []


def test_nobody_is_disturbed_who_may_not_be_preempted() -> None:
    driver = Driver(Whole(), node("n0", 2), node("n1", 2))
    for id in ("w", "x", "y", "z"):
        driver.submit(id, 1, preemptible=False)
    driver.settle()
    driver.exits("w")
    driver.exits("y")
    assert driver.submit("high", 2, priority=1) == []

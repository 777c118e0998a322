"""What is said of jobs whose tries failed, or whose devices were lost."""

from __future__ import annotations

import pytest
from tests.core.driver import Driver, node
from tests.core.test_retries import TRANSIENT, WAITS, fails, running, waits

from bough.core import model as m
from bough.core.scheduler import Scheduler
from bough.policies import find


def test_who_waits_to_be_tried_again_says_after_what_and_when() -> None:
    d = running(retries=3, **WAITS)
    fails(d)
    waits(d)
    fails(d, TRANSIENT)
    d.now += 2.0
    d.tick(d.now)
    reason = d.why("a")
    again = d.wake_at - d.now
    assert reason.code == "retry"
    assert reason.text == (
        f"It failed 2s ago (somebody else killed it (SIGKILL)); try 3 comes in {round(again)}s."
    )
    assert reason.remedy == ""
    told = {
        "exit_code": 137, "exit_kind": "transient", "failures": 1, "try": 3,
        "exit": "somebody else killed it (SIGKILL)", "again_in_seconds": pytest.approx(again),
    }  # fmt: skip
    assert {name: reason.facts[name] for name in told} == told


def test_after_the_wait_it_waits_for_devices_and_still_says_so() -> None:
    d = running(retries=3, **WAITS)
    d.submit("b", 4)
    fails(d)
    d.settle()
    d.tick(d.wake_at)
    reason = d.why("a")
    assert reason.code == "retry"
    assert reason.text.endswith(
        "(exit code 3); it needs 4 gpu devices for try 2 and 0 of 4 are free."
    )


def test_a_job_that_failed_says_how_with_the_facts() -> None:
    d = running(retries=1)
    fails(d)
    d.settle()
    fails(d, 139, after=5.0)
    reason = d.why("a")
    assert reason.text == (
        "It failed: it touched memory that is not its own (SIGSEGV), on the last of 2 tries."
    )
    assert reason.facts == {
        "ran_seconds": 6.0, "attempts": 2, "failures": 2, "exit_code": 139,
        "exit_kind": "unknown", "exit": "it touched memory that is not its own (SIGSEGV)",
        "tries": 2,
    }  # fmt: skip


def test_what_is_said_of_a_job_that_failed_are_its_own_numbers() -> None:
    d = Driver("fifo", node("n0"))
    for id in ("x", "y"):
        d.submit(id, 1)
        d.settle()
        d.now += 100.0
    d.exits("x", "failed", code=1)
    assert d.why("x").facts["ran_seconds"] == 200.0


def test_a_lost_job_says_what_befell_it() -> None:
    d = running()
    d.submit("b", 4, priority=1)
    d.exits("a", "lost", note="the machine was restarted")
    assert "(the machine was restarted)" in d.why("a").text
    assert d.why("a").facts["by"] == "the machine was restarted"


def test_a_lost_job_without_a_word_says_what_is_known() -> None:
    d = running()
    d.submit("b", 4, priority=1)
    d.exits("a", "lost")
    assert "its processes were lost with their machine" in d.why("a").text


def test_a_job_whose_device_failed_names_it() -> None:
    d = running()
    d.submit("b", 4, priority=1)
    d.up(node("n1"))
    told = m.DeviceHealth(at=0.0, name="n0", device=2, healthy=False, note="it fell off the bus")
    [stop, *_] = d.say(told)
    assert stop == m.Stop("a", 1)
    d.settle()
    reason = d.why("a")
    assert reason.code == "lost"
    assert reason.facts["by"] == "device 2 of n0: it fell off the bus"


def test_a_job_whose_node_went_down_names_it() -> None:
    d = running()
    d.up(node("n1"))
    d.submit("b", 4)
    d.settle()
    d.down("n0")
    d.exits("a", "lost")
    reason = d.why("a")
    assert reason.code == "lost"
    assert "(node n0 is down)" in reason.text


def test_a_cluster_too_small_names_what_ails_it() -> None:
    d = Driver("fifo", node("n0"))
    for device, note in ((1, "it fell off the bus"), (3, "")):
        d.say(m.DeviceHealth(at=0.0, name="n0", device=device, healthy=False, note=note))
    d.submit("a", 4)
    reason = d.why("a")
    assert reason.text == (
        "It needs 4 gpu devices; the cluster has 2 in working order, and 2 that are not "
        "(device 1 of n0: it fell off the bus; device 3 of n0)."
    )
    assert reason.facts["broken"] == 2


def test_what_ails_a_device_is_kept_and_told_anew() -> None:
    d = Driver("fifo", node("n0"))
    for note in ("taken by process 12", "taken by process 13"):
        d.say(m.DeviceHealth(at=0.0, name="n0", device=1, healthy=False, note=note))
    assert d.scheduler.state.nodes["n0"].unhealthy == {1: "taken by process 13"}
    fresh = Scheduler(find("fifo"))
    fresh.from_bytes(d.scheduler.to_bytes())
    assert fresh.state.nodes["n0"].unhealthy == {1: "taken by process 13"}


def test_a_wait_is_told_up_to_the_moment_somebody_asks() -> None:
    """Nothing may have happened since, and asking is no event: nothing is decided by it."""
    d = running(retries=3, **WAITS)
    fails(d)
    before, wait = d.scheduler.to_bytes(), d.wake_at - d.now
    early, late = d.scheduler.why("a"), d.scheduler.why("a", d.now + 0.25 * wait)
    assert early.facts["again_in_seconds"] == pytest.approx(wait)
    assert late.facts["again_in_seconds"] == pytest.approx(0.75 * wait)
    assert late.facts["waited_seconds"] == pytest.approx(0.25 * wait)
    assert d.scheduler.why("a", 0.0) == early, "nobody asks in the past"
    assert d.scheduler.to_bytes() == before

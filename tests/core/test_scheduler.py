"""A job's life, as commands: it starts, ends, fails, is parked, waits for others, is resized."""

from __future__ import annotations

import pytest
from tests.core.driver import Driver, Why, job, node, on

from bough.core import model as m

ALL = on("n0", 0, 1, 2, 3)
HALF, OTHER = on("n0", 0, 1), on("n0", 2, 3)


def after(id: str, how: str = "success") -> tuple[m.After, ...]:
    return (m.After(job=id, on=how),)  # type: ignore[arg-type]


# ----------------------------------------------------------------------- from start to end


def test_a_job_starts_runs_and_ends() -> None:
    driver = Driver("fifo", node("n0"))
    assert driver.submit("a", 4) == [m.Start("a", 1, ALL)]
    assert driver.does("a") == []
    assert driver.runs() == {"a": 4}
    assert driver.exits("a") == [m.Ended("a", 1, "done")]
    assert driver.why("a").code == "done"


def test_what_is_left_goes_to_the_next_in_line_at_once() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    assert driver.submit("b", 4) == []
    driver.settle()
    assert driver.exits("a") == [m.Ended("a", 1, "done"), m.Start("b", 1, ALL)]


def test_events_of_one_moment_are_decided_together() -> None:
    driver = Driver("srtf", node("n0"))
    long = job(4, estimate_seconds=100.0)
    short = job(4, estimate_seconds=10.0)
    told = [m.Submitted(at=0.0, id="a", spec=long), m.Submitted(at=0.0, id="b", spec=short)]
    assert driver.say(*told) == [m.Start("b", 1, ALL)]


@pytest.mark.parametrize("again", ["while it lives", "after its end"])
def test_a_name_is_used_once(again: str) -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 1)
    if again == "after its end":
        driver.settle()
        driver.exits("a")
    assert driver.submit("a", 2) == []
    assert len(driver.scheduler.state.jobs) == (again == "while it lives")


def test_a_failed_job_is_tried_again_as_often_as_it_may_be() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4, retries=2)
    for epoch in (2, 3):
        driver.settle()
        assert driver.exits("a", "failed", code=1) == [m.Start("a", epoch, ALL)]
    driver.settle()
    assert driver.exits("a", "failed", code=9) == [
        m.Ended("a", 3, "failed", "exit code 9, on the last of 3 tries")
    ]


@pytest.mark.parametrize("why", ["lost", "stopped"])
def test_what_is_lost_by_no_fault_of_the_job_costs_no_retry(why: Why) -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    for epoch in range(2, 6):
        driver.settle()
        assert driver.exits("a", why) == [m.Start("a", epoch, ALL)]


def test_a_job_may_end_before_its_start_was_confirmed() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    assert driver.say(m.Exited(at=0.0, id="a", epoch=1)) == [m.Ended("a", 1, "done")]


# -------------------------------------------------------------------------------- cancelled


def test_a_waiting_job_is_cancelled_in_the_books_alone() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    driver.submit("b", 4)
    assert driver.cancel("b") == [m.Ended("b", 0, "cancelled", "by a user")]


@pytest.mark.parametrize("state", ["starting", "running"])
def test_a_started_job_is_stopped_and_then_ends_as_cancelled(state: str) -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    if state == "running":
        driver.settle()
    assert driver.cancel("a") == [m.Stop("a", 1, park=False)]
    assert driver.cancel("a") == []
    assert driver.settle() == [m.Ended("a", 1, "cancelled", "by a user")]


def test_a_job_that_is_being_parked_can_be_cancelled() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    driver.settle()
    assert driver.hold("a") == [m.Stop("a", 1)]
    assert driver.cancel("a") == []
    assert driver.settle() == [m.Ended("a", 1, "cancelled", "by a user")]


def test_a_job_that_finishes_while_it_is_being_cancelled_is_done() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    driver.settle()
    driver.cancel("a")
    assert driver.exits("a", "done") == [m.Ended("a", 1, "done")]


def test_what_a_cancelled_job_left_is_given_on_only_when_it_is_gone() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    driver.submit("b", 4)
    driver.settle()
    assert driver.cancel("a") == [m.Stop("a", 1, park=False)]
    assert driver.does("a") == [m.Ended("a", 1, "cancelled", "by a user"), m.Start("b", 1, ALL)]


# ------------------------------------------------------------------------- held and let go on


def test_a_held_job_is_parked_and_goes_on_as_a_new_epoch() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    driver.settle()
    assert driver.hold("a") == [m.Stop("a", 1)]
    assert driver.hold("a") == []
    assert driver.settle() == []
    assert driver.why("a").code == "held"
    assert driver.release("a") == [m.Start("a", 2, ALL)]


def test_a_job_held_before_it_starts_lets_others_pass() -> None:
    driver = Driver("fifo")
    driver.submit("a", 4)
    assert driver.hold("a") == []
    driver.submit("b", 4)
    assert driver.up(node("n0")) == [m.Start("b", 1, ALL)]


def test_a_job_let_go_on_while_it_stops_starts_again_when_it_has_stopped() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    driver.settle()
    driver.hold("a")
    assert driver.release("a") == []
    assert driver.does("a") == [m.Start("a", 2, ALL)]


# ----------------------------------------------------------------------------- dependencies


@pytest.mark.parametrize(
    ("on_end", "end", "starts"),
    [
        ("success", "done", True),
        ("success", "failed", False),
        ("failure", "failed", True),
        ("failure", "done", False),
        ("any", "done", True),
        ("any", "failed", True),
    ],
)
def test_a_job_waits_for_the_end_it_asks_for(on_end: str, end: Why, starts: bool) -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 1)
    assert driver.submit("b", 2, after=after("a", on_end)) == []
    driver.settle()
    doomed = m.Ended("b", 0, "cancelled", f"it depends on a, which ended as {end}")
    expected = m.Start("b", 1, HALF) if starts else doomed
    assert driver.exits("a", end)[1:] == [expected]


def test_cancelling_counts_as_failure() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 8)
    driver.submit("b", 2, after=after("a", "failure"))
    assert driver.cancel("a") == [m.Ended("a", 0, "cancelled", "by a user"), m.Start("b", 1, HALF)]


def test_one_failure_dooms_the_whole_chain() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 1)
    driver.submit("b", 1, after=after("a"))
    driver.submit("c", 1, after=after("b"))
    driver.settle()
    ended = [(c.id, c.state) for c in driver.exits("a", "failed") if isinstance(c, m.Ended)]
    assert ended == [("a", "failed"), ("b", "cancelled"), ("c", "cancelled")]


def test_a_job_waits_for_one_that_is_not_known_yet() -> None:
    driver = Driver("fifo", node("n0"))
    assert driver.submit("b", 2, after=after("a")) == []
    assert driver.submit("a", 1) == [m.Start("a", 1, on("n0", 0))]
    driver.settle()
    assert driver.exits("a") == [m.Ended("a", 1, "done"), m.Start("b", 1, HALF)]


def test_what_ended_before_counts_at_submission() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 1)
    driver.settle()
    driver.exits("a")
    assert driver.submit("b", 2, after=after("a")) == [m.Start("b", 1, HALF)]
    [ended] = driver.submit("c", 2, after=after("a", "failure"))
    assert ended == m.Ended("c", 0, "cancelled", "it depends on a, which ended otherwise")


def test_a_job_waits_for_all_that_it_depends_on() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 1)
    driver.submit("b", 1)
    driver.submit("c", 2, after=after("a") + after("b", "any"))
    driver.settle()
    assert driver.exits("a") == [m.Ended("a", 1, "done")]
    assert driver.exits("b", "failed")[1:] == [m.Start("c", 1, on("n0", 0, 1))]


# ------------------------------------------------------------------ answers stale and doubled


def running() -> Driver:
    """a has been parked once and runs as epoch 2, resized once: it has half of the node."""
    driver = Driver("max_min", node("n0"))
    driver.submit("a", (1, 2, 4))
    driver.settle()
    driver.hold("a")
    driver.settle()
    driver.release("a")
    driver.settle()
    driver.submit("b", (2,))
    driver.settle()
    assert driver.runs() == {"a": 2, "b": 2}
    return driver


@pytest.mark.parametrize(
    "answer",
    [
        m.Started(at=0.0, id="a", epoch=1),
        m.Resized(at=0.0, id="a", epoch=1, step=1),
        m.Exited(at=0.0, id="a", epoch=1),
        m.Exited(at=0.0, id="a", epoch=1, why="failed"),
        m.Exited(at=0.0, id="a", epoch=3),
        m.Started(at=0.0, id="a", epoch=2),
        m.Resized(at=0.0, id="a", epoch=2, step=1),
        m.Resized(at=0.0, id="a", epoch=2, step=0),
        m.Resized(at=0.0, id="a", epoch=2, step=2, ok=False),
        m.Progressed(at=0.0, id="a", epoch=1, left=0.0),
        m.Started(at=0.0, id="nobody", epoch=1),
        m.Resized(at=0.0, id="nobody", epoch=1, step=1),
        m.Exited(at=0.0, id="nobody", epoch=1),
        m.Progressed(at=0.0, id="nobody", epoch=1, left=0.0),
        m.Cancelled(at=0.0, id="nobody"),
        m.Held(at=0.0, id="nobody"),
        m.NodeDown(at=0.0, name="nobody"),
        m.NodeDrained(at=0.0, name="nobody"),
        m.DeviceHealth(at=0.0, name="nobody", device=0, healthy=False),
    ],
    ids=repr,
)
def test_answers_that_are_late_doubled_or_of_nobody_change_nothing(answer: m.Event) -> None:
    driver = running()
    before = driver.scheduler.to_bytes()
    assert driver.say(answer) == []
    assert driver.scheduler.to_bytes() == before


def test_an_exit_told_twice_ends_one_epoch_only() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    driver.settle()
    lost = m.Exited(at=0.0, id="a", epoch=1, why="lost")
    assert driver.say(lost, lost) == [m.Start("a", 2, ALL)]
    assert driver.say(lost) == []


# ----------------------------------------------------------------- devices that are being left


def test_a_start_waits_until_its_devices_are_left() -> None:
    driver = Driver("srtf", node("n0"))
    driver.submit("a", 4, estimate_seconds=100.0)
    driver.settle()
    assert driver.submit("b", 4, estimate_seconds=1.0) == [m.Stop("a", 1)]
    assert driver.tick(5.0) == []
    assert driver.does("a") == [m.Start("b", 1, ALL)]


def test_a_job_makes_room_before_another_moves_in() -> None:
    driver = Driver("max_min", node("n0"))
    driver.submit("a", (1, 2, 4))
    driver.settle()
    assert driver.submit("b", 2) == [m.Resize("a", 1, 1, HALF)]
    assert driver.tick(5.0) == []
    assert driver.does("a") == [m.Start("b", 1, OTHER)]


def test_a_job_grows_into_what_another_left() -> None:
    driver = Driver("max_min", node("n0"))
    driver.submit("a", (2, 4))
    driver.submit("b", 2)
    driver.settle()
    assert driver.runs() == {"a": 2, "b": 2}
    assert driver.exits("b") == [m.Ended("b", 1, "done"), m.Resize("a", 1, 2, ALL)]


def test_nothing_more_is_asked_of_a_job_until_it_has_answered() -> None:
    driver = Driver("max_min", node("n0"))
    driver.submit("a", (1, 2, 4))
    assert driver.submit("b", 2) == []
    assert driver.does("a") == [m.Resize("a", 1, 1, HALF)]
    assert driver.cancel("b") == [m.Ended("b", 0, "cancelled", "by a user")]
    assert driver.does("a") == [m.Resize("a", 1, 2, ALL)]


def test_a_job_that_cannot_change_size_in_place_is_parked_and_started_again() -> None:
    driver = Driver("max_min", node("n0"))
    driver.submit("a", (1, 2, 4), resize_in_place=False)
    driver.settle()
    assert driver.submit("b", 2) == [m.Stop("a", 1)]
    assert driver.does("a") == [m.Start("a", 2, HALF), m.Start("b", 1, OTHER)]


def test_a_resize_that_fails_is_made_good_by_a_new_start() -> None:
    driver = Driver("max_min", node("n0"))
    driver.submit("a", (2, 4))
    driver.submit("b", 2)
    driver.settle()
    driver.exits("b")
    failed = m.Resized(at=0.0, id="a", epoch=1, step=2, ok=False)
    assert driver.say(failed) == [m.Stop("a", 1)]
    assert driver.say(m.Exited(at=0.0, id="a", epoch=1, why="stopped")) == [m.Start("a", 2, ALL)]

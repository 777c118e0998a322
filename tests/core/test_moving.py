"""What a change of size costs a job, as the scheduler sees it, and how it spares jobs for it."""

from __future__ import annotations

from tests.core.driver import Driver, node, on

from bough.core import model as m
from bough.core.scheduler import Scheduler

ALL, HALF = on("n0", 0, 1, 2, 3), on("n0", 0, 1)


def slow_starter(**settings: float) -> Driver:
    """Job a, which took 30 s to start, shares a node with b."""
    driver = Driver("max_min", node("n0"), **settings)
    driver.submit("b", 2)
    driver.submit("a", (1, 2, 4))
    driver.does("b")
    driver.now = 30.0
    driver.does("a")
    return driver


def test_what_starts_at_once_may_grow_at_once() -> None:
    driver = Driver("max_min", node("n0"))
    driver.submit("b", 2)
    driver.submit("a", (1, 2, 4))
    driver.settle()
    assert driver.exits("b")[1:] == [m.Resize("a", 1, 1, ALL)]


def test_what_was_slow_to_start_is_grown_only_when_that_has_paid_for_itself() -> None:
    driver = slow_starter()
    assert driver.exits("b")[1:] == []
    assert driver.wake_at == 300.0
    assert driver.tick(299.0) == []
    assert driver.tick(300.0) == [m.Resize("a", 1, 1, ALL)]


def test_the_share_of_time_to_spend_on_growing_is_a_setting() -> None:
    for share, wait in ((0.5, 60.0), (0.25, 120.0)):
        driver = slow_starter(moving_share=share)
        driver.exits("b")
        assert driver.wake_at == wait


def test_a_share_of_nothing_asks_for_no_patience() -> None:
    driver = slow_starter(moving_share=0.0)
    assert driver.exits("b")[1:] == [m.Resize("a", 1, 1, ALL)]


def test_a_slow_starter_may_still_be_shrunk_for_others() -> None:
    driver = Driver("max_min", node("n0"))
    driver.submit("a", (1, 2, 4))
    driver.now = 30.0
    driver.does("a")
    assert driver.submit("b", 2) == [m.Resize("a", 1, 1, HALF)]


def test_leaving_counts_too_where_the_processes_must_end_for_a_change() -> None:
    driver = Driver("max_min", node("n0"))
    driver.submit("b", 2)
    driver.submit("a", (1, 2, 4), resize_in_place=False)
    driver.does("b")
    driver.does("a")
    driver.exits("b")  # a is told to stop, to go on with 4
    driver.now = 20.0
    driver.does("a")
    driver.now = 25.0
    driver.does("a")
    job = driver.scheduler.state.jobs["a"]
    assert (job.leaves, job.begins, job.change_seconds()) == (20.0, 5.0, 25.0)


def test_a_snapshot_remembers_the_cost() -> None:
    driver = slow_starter()
    again = Scheduler(driver.scheduler.policy)
    again.from_bytes(driver.scheduler.to_bytes())
    events = [m.Exited(at=40.0, id="b", epoch=1)]
    assert again.handle(events) == driver.scheduler.handle(events)
    assert again.wake_at == driver.scheduler.wake_at == 300.0

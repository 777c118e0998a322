"""Queues at work: borrowing, taking back, limits, pauses and budgets, as commands."""

from __future__ import annotations

import pytest
from tests.core.driver import Driver, node, on

from bough.core import model as m

ALL = on("n0", 0, 1, 2, 3)
HALF, OTHER = on("n0", 0, 1), on("n0", 2, 3)
HOUR = 3600.0


def shared(policy: str = "max_min", *queues: m.Queue, devices: int = 4) -> Driver:
    """One node among queues."""
    return Driver(policy, node("n0", devices), queues=queues)


OWNER = m.Queue(name="owner", guarantee=2)
GUEST = m.Queue(name="guest")


# -------------------------------------------------------------------- guarantees and borrowing


def test_a_guarantee_nobody_asks_for_is_lent() -> None:
    driver = shared("max_min", OWNER, GUEST)
    assert driver.submit("g", (1, 2, 4), queue="guest") == [m.Start("g", 1, ALL)]


def test_the_owner_takes_back_what_is_guaranteed() -> None:
    driver = shared("max_min", OWNER, GUEST)
    driver.submit("g", (1, 2, 4), queue="guest")
    driver.settle()
    assert driver.submit("o", 2, queue="owner") == [m.Resize("g", 1, 1, HALF)]
    assert driver.does("g") == [m.Start("o", 1, OTHER)]


def test_a_borrower_that_cannot_shrink_is_parked() -> None:
    driver = shared("fifo", OWNER, GUEST)
    driver.submit("g", 4, queue="guest")
    driver.settle()
    assert driver.submit("o", 2, queue="owner") == [m.Stop("g", 1)]
    assert driver.does("g") == [m.Start("o", 1, HALF)]
    driver.does("o")
    assert driver.exits("o")[1:] == [m.Start("g", 2, ALL)]


def test_what_may_not_be_taken_is_not_taken_back() -> None:
    driver = shared("fifo", OWNER, GUEST)
    driver.submit("g", 4, queue="guest", preemptible=False)
    driver.settle()
    assert driver.submit("o", 2, queue="owner") == []
    assert driver.exits("g")[1:] == [m.Start("o", 1, HALF)]


def test_a_protected_borrower_is_left_alone_until_its_time_is_over() -> None:
    driver = shared("fifo", OWNER, GUEST)
    driver.submit("g", 4, queue="guest", min_run_seconds=30.0)
    driver.settle()
    assert driver.submit("o", 2, queue="owner") == []
    assert driver.wake_at == 30.0
    assert driver.tick(30.0) == [m.Stop("g", 1)]


def test_the_rest_goes_by_weight() -> None:
    driver = shared("max_min", m.Queue(name="a", weight=3.0), m.Queue(name="b"), devices=8)
    sizes = tuple(range(1, 9))
    driver.submit("x", sizes, queue="a")
    driver.submit("y", sizes, queue="b")
    driver.settle()
    assert driver.runs() == {"x": 6, "y": 2}


def test_what_one_queue_leaves_another_uses() -> None:
    driver = shared("max_min", m.Queue(name="a"), m.Queue(name="b"), devices=8)
    driver.submit("x", 1, queue="a")
    driver.submit("y", tuple(range(1, 9)), queue="b")
    driver.settle()
    assert driver.runs() == {"x": 1, "y": 7}


def test_a_gang_larger_than_its_queues_share_uses_what_others_leave() -> None:
    driver = shared("fifo", m.Queue(name="a"), m.Queue(name="b"))
    driver.submit("x", 4, queue="a")
    assert driver.submit("y", 4, queue="b") == []
    driver.settle()
    assert driver.runs() == {"x": 4}


# ------------------------------------------------------------------------------------ limits


def test_a_limit_holds_whatever_is_free() -> None:
    driver = shared("fifo", m.Queue(name="q", limit=2))
    assert driver.submit("a", 2, queue="q") == [m.Start("a", 1, HALF)]
    assert driver.submit("b", 1, queue="q") == []
    assert driver.why("b").code == "quota"
    driver.settle()
    assert driver.exits("a")[1:] == [m.Start("b", 1, on("n0", 0))]


def test_a_limit_makes_an_elastic_job_smaller() -> None:
    driver = shared("max_min", m.Queue(name="q", limit=2))
    assert driver.submit("a", (1, 2, 4), queue="q") == [m.Start("a", 1, HALF)]


def test_a_queue_that_may_not_borrow_stays_within_its_guarantee() -> None:
    driver = shared("max_min", m.Queue(name="q", guarantee=2, borrow=False))
    assert driver.submit("a", (1, 2, 4), queue="q") == [m.Start("a", 1, HALF)]


def test_a_limit_for_one_kind_leaves_the_others() -> None:
    queue = m.Queue(name="q", kind_limits={"new": 1})
    driver = Driver("fifo", node("n0", 2, "new"), node("n1", 2, "old"), queues=[queue])
    assert driver.submit("a", 2, kinds=("new",), queue="q") == []
    assert driver.submit("b", 2, kinds=("old",), queue="q") == [m.Start("b", 1, on("n1", 0, 1))]


def test_a_limit_counts_all_queues_below() -> None:
    driver = shared(
        "fifo",
        m.Queue(name="top", limit=3),
        m.Queue(name="left", parent="top"),
        m.Queue(name="right", parent="top"),
        devices=8,
    )
    driver.submit("a", 2, queue="left")
    assert driver.submit("b", 2, queue="right") == []
    assert driver.submit("c", 1, queue="right") == [], "fifo passes over nobody"
    assert driver.cancel("b")[1:] == [m.Start("c", 1, on("n0", 2))]


def test_guarantees_of_the_queues_below_are_honoured() -> None:
    driver = shared(
        "max_min",
        m.Queue(name="top"),
        m.Queue(name="left", parent="top", guarantee=3),
        m.Queue(name="right", parent="top"),
        m.Queue(name="aside"),
        devices=8,
    )
    sizes = tuple(range(1, 9))
    for id, queue in (("x", "aside"), ("y", "right"), ("z", "left")):
        driver.submit(id, sizes, queue=queue)
    driver.settle()
    assert driver.runs()["z"] >= 3
    assert sum(driver.runs().values()) == 8


# --------------------------------------------------------------------------------- pauses


def test_a_paused_queue_starts_nothing() -> None:
    driver = shared("fifo", m.Queue(name="q", paused=True))
    assert driver.submit("a", 1, queue="q") == []
    assert driver.why("a").code == "paused"
    assert driver.submit("b", 4) == [m.Start("b", 1, ALL)]


def test_pausing_parks_what_runs_and_lifting_the_pause_starts_it_again() -> None:
    driver = shared("fifo")
    driver.submit("a", 2, queue="q")
    driver.settle()
    assert driver.queue("q", paused=True) == [m.Stop("a", 1)]
    driver.settle()
    assert driver.queue("q") == [m.Start("a", 2, HALF)]


def test_pausing_a_queue_pauses_those_below_it() -> None:
    driver = shared("fifo", m.Queue(name="top", paused=True), m.Queue(name="q", parent="top"))
    assert driver.submit("a", 1, queue="q") == []


# --------------------------------------------------------------------------------- budgets


def test_a_queue_is_stopped_to_the_second_when_its_budget_is_spent() -> None:
    driver = shared("fifo", m.Queue(name="q", budget_device_hours=10.0))
    driver.tick(100.0)
    driver.submit("a", 4, queue="q")
    driver.settle()
    assert driver.wake_at == 100.0 + 2.5 * HOUR
    assert driver.tick(99.0 + 2.5 * HOUR) == []
    assert driver.wake_at == pytest.approx(100.0 + 2.5 * HOUR)
    assert driver.tick(100.0 + 2.5 * HOUR) == [m.Stop("a", 1)]
    driver.settle()
    assert driver.why("a").code == "budget"


def test_another_budget_begins_anew() -> None:
    driver = shared("fifo", m.Queue(name="q", budget_device_hours=1.0))
    driver.tick(100.0)
    driver.submit("a", 4, queue="q")
    driver.settle()
    driver.tick(100.0 + HOUR)
    driver.settle()
    assert driver.runs() == {}
    assert driver.queue("q", budget_device_hours=2.0) == [m.Start("a", 2, ALL)]
    assert driver.wake_at == 100.0 + 1.5 * HOUR


def test_what_may_not_be_taken_outlives_the_budget() -> None:
    driver = shared("fifo", m.Queue(name="q", budget_device_hours=1.0))
    driver.tick(100.0)
    driver.submit("a", 2, queue="q", preemptible=False)
    driver.settle()
    assert driver.tick(100.0 + HOUR) == []
    assert driver.submit("b", 1, queue="q") == []
    assert driver.runs() == {"a": 2}


# --------------------------------------------------------------------- queues change mid-run


def test_a_queue_set_while_jobs_run_takes_effect_at_once() -> None:
    driver = shared("max_min")
    driver.submit("a", (1, 2, 4), queue="q")
    driver.settle()
    assert driver.queue("q", limit=2) == [m.Resize("a", 1, 1, HALF)]
    driver.settle()
    assert driver.queue("q") == [m.Resize("a", 1, 2, ALL)]


def test_a_queue_nobody_wrote_down_is_made_when_a_job_names_it() -> None:
    driver = shared("fifo")
    assert driver.submit("a", 2, queue="new") == [m.Start("a", 1, HALF)]
    assert "new" in driver.scheduler.state.queues.names


def test_past_use_counts_against_a_queue() -> None:
    day = 24 * HOUR
    queues = [m.Queue(name=n, half_life_seconds=day) for n in ("a", "b")]
    driver = shared("max_min", *queues, devices=40)
    driver.tick(1.0)
    sizes = tuple(range(1, 41))
    driver.submit("x", sizes, queue="a")
    driver.settle()
    driver.now = 1.0 + day
    driver.submit("y", sizes, queue="b")
    driver.settle()
    assert driver.runs() == {"x": 9, "y": 31}


def test_what_a_queue_cannot_have_holds_up_nobody_in_it_where_all_are_treated_fairly() -> None:
    """Its share is half of the node while others want theirs: the gang of four waits for those."""
    driver = shared("fair", m.Queue(name="here"), m.Queue(name="there"))
    driver.submit("elastic", (2, 4), queue="there")
    driver.settle()
    assert driver.submit("gang", 4, queue="here") == []
    assert driver.submit("small", 1, queue="here") == [m.Resize("elastic", 1, 1, HALF)]
    assert driver.does("elastic") == [m.Start("small", 1, on("n0", 2))]
    driver.does("small")
    assert driver.exits("elastic")[1:] == [m.Stop("small", 1)], "now there is room for the gang"
    assert driver.does("small") == [m.Start("gang", 1, ALL)]

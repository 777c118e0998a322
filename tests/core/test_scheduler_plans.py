"""What a policy may say and what becomes of it: bad plans, orders, and beliefs that change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.core.driver import Driver, job, node, on

from bough.core import model as m
from bough.core.policy import Ints, Plan, Policy, Verdict, View
from bough.core.speedup import Curve, SpeedBook

ALL = on("n0", 0, 1, 2, 3)
HALF, OTHER = on("n0", 0, 1), on("n0", 2, 3)

#: What the policy below says, by the name a test gives it; tests put their answers here.
SAYINGS: dict[str, Callable[[View], Plan | Ints]] = {}


class Says(Policy, frozen=True):
    """Says what it is told to say until a moment, and from then on what is right."""

    what: str
    until: float = m.INFINITY

    def plan(self, view: View) -> Plan | Ints:
        if view.now < self.until:
            return SAYINGS[self.what](view)
        return Plan(view.jobs.wish.copy(), order=np.arange(view.jobs.n))


def says(name: str) -> Callable[[Callable[[View], Any]], None]:
    def keep(answer: Callable[[View], Any]) -> None:
        SAYINGS[name] = answer

    return keep


@says("too few")
def _(view: View) -> Ints:
    return view.jobs.wish[1:]


@says("an odd size")
def _(view: View) -> Ints:
    return np.full(view.jobs.n, 3)


@says("less than nothing")
def _(view: View) -> Ints:
    return np.full(view.jobs.n, -1)


@says("more than there is")
def _(view: View) -> Ints:
    return np.full(view.jobs.n, 4)


@says("nobody")
def _(view: View) -> Ints:
    return np.zeros(view.jobs.n, np.int64)


# ------------------------------------------------------------------------------ bad plans


@pytest.mark.parametrize(
    ("what", "because"),
    [
        ("too few", "1 sizes for 2 jobs"),
        ("an odd size", "3 is not a size of job row 0: (1, 2, 4)"),
        ("less than nothing", "-1 is not a size of job row 0: (1, 2, 4)"),
        ("more than there is", "8 devices planned where there are 4"),
    ],
)
def test_a_plan_that_breaks_the_contract_is_refused_as_a_whole(what: str, because: str) -> None:
    driver = Driver(Says(what, until=10.0), node("n0"))
    spec = job((1, 2, 4))
    assert driver.say(*[m.Submitted(at=0.0, id=i, spec=spec) for i in "ab"]) == []
    assert driver.scheduler.state.refused == because
    assert driver.tick(10.0) == [m.Start("a", 1, ALL)]
    assert driver.scheduler.state.refused == ""


def test_the_last_good_plan_is_kept_while_bad_ones_are_refused() -> None:
    SAYINGS["first good"] = lambda view: np.array([2, *[3] * (view.jobs.n - 1)])
    driver = Driver(Says("first good", until=10.0), node("n0"))
    assert driver.submit("a", (1, 2, 4)) == [m.Start("a", 1, HALF)]
    driver.settle()
    assert driver.submit("b", (1, 2)) == []
    assert driver.runs() == {"a": 2}
    assert driver.exits("a") == [m.Ended("a", 1, "done"), m.Start("b", 1, HALF)]


def test_starts_that_wait_for_devices_go_on_under_a_refused_plan() -> None:
    SAYINGS["the newest"] = lambda view: np.array([0, 4]) if view.jobs.n == 2 else np.array([4])
    driver = Driver(Says("the newest"), node("n0"))
    driver.submit("a", 4)
    driver.settle()
    assert driver.submit("b", 4) == [m.Stop("a", 1)]
    SAYINGS["the newest"] = SAYINGS["too few"]
    assert driver.tick(1.0) == []
    assert driver.scheduler.state.refused
    assert driver.does("a") == [m.Start("b", 1, ALL)]


@pytest.mark.parametrize("protection", [{"preemptible": False}, {"min_run_seconds": 60.0}])
def test_a_plan_may_not_park_what_is_protected(protection: dict[str, Any]) -> None:
    SAYINGS["changes its mind"] = lambda view: view.jobs.wish * (view.now < 5.0)
    driver = Driver(Says("changes its mind"), node("n0"))
    driver.submit("a", 4, **protection)
    driver.settle()
    assert driver.tick(5.0) == []
    assert driver.scheduler.state.refused == "job row 0 may not be parked now"


def test_a_plan_may_not_grow_what_is_damped() -> None:
    SAYINGS["grows"] = lambda view: np.full(view.jobs.n, 2 if view.now < 5.0 else 4)
    driver = Driver(Says("grows"), node("n0"), damp_seconds=20.0)
    assert driver.submit("a", (1, 2, 4)) == [m.Start("a", 1, HALF)]
    driver.settle()
    assert driver.tick(5.0) == []
    assert driver.scheduler.state.refused == "4 is outside 1..2 of job row 0"
    assert driver.tick(20.0) == [m.Resize("a", 1, 1, ALL)]


def test_a_policy_may_leave_everything_idle() -> None:
    driver = Driver(Says("nobody", until=10.0), node("n0"))
    assert driver.submit("a", 4) == []
    assert driver.scheduler.state.refused == ""
    assert driver.tick(10.0) == [m.Start("a", 1, ALL)]


def test_a_policy_cannot_write_to_what_it_is_shown() -> None:
    def scribbles(view: View) -> Ints:
        with pytest.raises(ValueError, match="read-only"):
            view.jobs.wish[0] = 1
        with pytest.raises(ValueError, match="read-only"):
            view.classes.speed[0, 0] = 1.0
        return view.jobs.wish.copy()

    SAYINGS["scribbles"] = scribbles
    driver = Driver(Says("scribbles"), node("n0"))
    assert driver.submit("a", 4) == [m.Start("a", 1, ALL)]


# --------------------------------------------------------------------------------- orders


def test_the_first_that_does_not_fit_holds_back_all_behind_it() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 2)
    assert driver.submit("b", 4) == []
    assert driver.submit("c", 2) == []
    driver.settle()
    assert driver.exits("a")[1:] == [m.Start("b", 1, ALL)]


def test_with_skip_those_that_fit_pass_over_it() -> None:
    driver = Driver("fifo(skip=true)", node("n0"))
    driver.submit("a", 2)
    assert driver.submit("b", 4) == []
    assert driver.submit("c", 2) == [m.Start("c", 1, OTHER)]


def torn(policy: str) -> Driver:
    """Four nodes of two devices, half of each taken."""
    driver = Driver(policy, *[node(f"n{i}", 2) for i in range(4)])
    for number in range(8):
        driver.submit(f"x{number}", 1)
    driver.settle()
    for number in range(0, 8, 2):
        driver.exits(f"x{number}")
    return driver


def test_what_one_cannot_be_placed_on_goes_to_the_next_who_can() -> None:
    driver = torn("fifo(skip=true)")
    assert driver.submit("a", 2) == []
    assert driver.submit("b", 1) == [m.Start("b", 1, on("n0", 0))]


def test_nobody_passes_one_that_was_granted_but_found_no_place_in_strict_order() -> None:
    driver = torn("fifo")
    assert driver.submit("a", 2) == []
    assert driver.submit("b", 1) == []


def test_one_who_would_be_parked_stays_where_the_favoured_one_found_no_place() -> None:
    driver = Driver("srtf", node("n0", 2), node("n1", 2))
    driver.submit("x", 1, estimate_seconds=1.0)
    driver.submit("long", 1, estimate_seconds=100.0)
    driver.submit("y", 1, estimate_seconds=1.0)
    driver.settle()
    assert driver.submit("short", 2, estimate_seconds=10.0) == []
    assert driver.why("short").code == "fragmentation"
    driver.settle()
    assert driver.runs() == {"long": 1, "x": 1, "y": 1}


# ----------------------------------------------------------------------------- rejections


class Choosy(Policy, frozen=True):
    """Takes jobs that are small enough."""

    most: int = 2

    def admit(self, view: View, job: m.JobSpec) -> Verdict:
        size = job.sizes()[0]
        text = f"It asks for {size} devices, and nobody gets more than {self.most}."
        facts: dict[str, int | float | str] = {"asked": size, "most": self.most}
        return Verdict(accepted=size <= self.most, code="too-much", text=text, facts=facts)

    def plan(self, view: View) -> Plan:
        return Plan(view.jobs.wish.copy(), order=np.arange(view.jobs.n))


def test_a_policy_may_turn_a_job_away_once_and_for_all() -> None:
    driver = Driver(Choosy(), node("n0"))
    sentence = "It asks for 4 devices, and nobody gets more than 2."
    assert driver.submit("a", 4) == [m.Ended("a", 0, "rejected", sentence)]
    assert driver.submit("a", 1) == [], "the name is used up"
    assert driver.submit("b", 2) == [m.Start("b", 1, HALF)]


def test_who_depends_on_a_job_that_was_turned_away_is_told() -> None:
    driver = Driver(Choosy(), node("n0"))
    driver.submit("a", 4)
    [ended] = driver.submit("b", 1, after=(m.After(job="a"),))
    assert isinstance(ended, m.Ended)
    assert ended.state == "cancelled"


# ------------------------------------------------------------------------- what is believed


def test_devices_go_to_whom_they_serve_best() -> None:
    book = SpeedBook()
    book.add("scales", 0, "gpu", Curve((1, 2, 3), (1.0, 2.0, 3.0)))
    book.add("saturates", 0, "gpu", Curve((1, 2, 3), (1.0, 1.1, 1.2)))
    driver = Driver("greedy", node("n0"), speedups=book)
    driver.submit("a", (1, 2, 3), model="saturates")
    driver.submit("b", (1, 2, 3), model="scales")
    driver.settle()
    assert driver.runs() == {"a": 1, "b": 3}


def test_measured_rates_change_the_plan() -> None:
    book = SpeedBook()
    book.add("m", 0, "gpu", Curve((1, 2, 3), (1.0, 1.9, 2.7)))
    driver = Driver("greedy", node("n0"), speedups=book)
    driver.submit("a", (1, 2, 3), model="m")
    driver.submit("b", (1, 2, 3), model="m")
    driver.settle()
    assert driver.runs() == {"a": 2, "b": 2}
    for second in range(1, 20):
        driver.now = float(second)
        driver.progress("a", rate=1.0, size=2)
    driver.tick(20.0)
    driver.settle()
    assert driver.runs() == {"a": 1, "b": 3}


def test_the_work_left_as_measured_changes_the_order() -> None:
    driver = Driver("srtf", node("n0"))
    driver.submit("a", 4, estimate_seconds=10.0)
    driver.settle()
    assert driver.submit("b", 4, estimate_seconds=50.0) == []
    driver.now = 1.0
    driver.progress("a", left=1000.0)
    assert driver.tick(2.0) == [m.Stop("a", 1)]


def test_jobs_without_an_estimate_are_expected_to_be_like_those_that_ended() -> None:
    driver = Driver("fifo", node("n0"))
    state = driver.scheduler.state

    def guess(id: str, model: str) -> float:
        driver.submit(id, 1, model=model)
        return float(state.table.guess[state.table.row(state.jobs[id])])

    before = guess("before", "short")
    for number in range(20):
        driver.submit(f"s{number}", 1, model="short")
        driver.settle()
        driver.tick(driver.now + 10.0)
        driver.exits(f"s{number}")
    assert guess("after", "short") < before / 10
    assert guess("of others", "long") > guess("again", "short")


def test_learning_can_be_left_out() -> None:
    driver = Driver("fifo", node("n0"), learns=False)
    before = driver.scheduler.state.speedups.prior.expect_seconds("m", "")
    driver.submit("a", 1, model="m")
    driver.settle()
    driver.tick(10.0)
    driver.exits("a")
    assert driver.scheduler.state.speedups.prior.expect_seconds("m", "") == before

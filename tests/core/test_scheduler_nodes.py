"""What nodes do to jobs: they fail, drain, come back and differ; gangs sit on them whole."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import pytest
from tests.core.driver import Driver, job, linear, node, on

from bough.core import model as m
from bough.core.policy import Ints, Policy, View
from bough.core.speedup import Curve, SpeedBook

ALL = on("n0", 0, 1, 2, 3)


# ------------------------------------------------------------------------------------ drains


def test_a_drained_node_lets_jobs_finish_and_takes_no_new_ones() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 2)
    driver.settle()
    assert driver.drain("n0") == []
    assert driver.submit("b", 2) == []
    assert driver.exits("a") == [m.Ended("a", 1, "done")]
    assert driver.drain("n0", False) == [m.Start("b", 1, on("n0", 0, 1))]


def test_a_drained_node_is_passed_over() -> None:
    driver = Driver("fifo", node("n0"), node("n1"))
    driver.drain("n0")
    assert driver.submit("a", 1) == [m.Start("a", 1, on("n1", 0))]


def test_a_node_that_returns_is_still_drained() -> None:
    driver = Driver("fifo", node("n0"))
    driver.drain("n0")
    driver.down("n0")
    driver.up(node("n0"))
    assert driver.submit("a", 1) == []
    assert driver.drain("n0", False) == [m.Start("a", 1, on("n0", 0))]


# ------------------------------------------------------------------------------------ health


def test_a_job_leaves_a_device_that_failed() -> None:
    driver = Driver("fifo", node("n0"), node("n1"))
    driver.submit("a", 4)
    driver.settle()
    assert driver.health("n0", 2, False) == [m.Stop("a", 1)]
    assert driver.does("a") == [m.Start("a", 2, on("n1", 0, 1, 2, 3))]


def test_other_jobs_on_the_node_stay() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 1)
    driver.submit("b", 1)
    driver.settle()
    assert driver.health("n0", 1, False) == [m.Stop("b", 1)]
    assert driver.does("b") == [m.Start("b", 2, on("n0", 2))]


def test_a_device_that_is_well_again_is_used_again() -> None:
    driver = Driver("fifo", node("n0"))
    driver.health("n0", 2, False)
    assert driver.submit("a", 4) == []
    assert driver.health("n0", 2, True) == [m.Start("a", 1, ALL)]


def test_a_node_that_was_down_returns_with_all_its_devices_well() -> None:
    driver = Driver("fifo", node("n0"))
    driver.health("n0", 2, False)
    driver.down("n0")
    driver.up(node("n0"))
    assert driver.submit("a", 4) == [m.Start("a", 1, ALL)]


# --------------------------------------------------------------------------------- down and up


def test_the_rest_of_a_gang_is_stopped_when_a_node_is_lost() -> None:
    driver = Driver("fifo", node("n0"), node("n1"), node("n2"))
    driver.submit("a", 8)
    driver.submit("b", 4)
    driver.settle()
    assert driver.down("n1") == [m.Stop("a", 1)]
    assert driver.exits("a", "lost") == []
    assert driver.runs() == {"b": 4}
    assert driver.exits("b")[1:] == [m.Start("a", 2, (*ALL, *on("n2", 0, 1, 2, 3)))]


def test_the_loss_may_be_told_before_the_node_is() -> None:
    driver = Driver("fifo", node("n0"), node("n1"))
    driver.submit("a", 4)
    driver.settle()
    lost = m.Exited(at=0.0, id="a", epoch=1, why="lost")
    assert driver.say(lost, m.NodeDown(at=0.0, name="n0")) == [
        m.Start("a", 2, on("n1", 0, 1, 2, 3))
    ]


def test_a_node_that_returns_takes_jobs_again() -> None:
    driver = Driver("fifo", node("n0"))
    driver.submit("a", 4)
    driver.settle()
    assert driver.down("n0") == [m.Stop("a", 1)]
    assert driver.down("n0") == []
    assert driver.exits("a", "lost") == []
    assert driver.up(node("n0")) == [m.Start("a", 2, ALL)]
    assert driver.up(node("n0")) == []


def test_a_job_too_big_for_the_cluster_starts_when_nodes_join() -> None:
    driver = Driver("fifo", node("n0"))
    assert driver.submit("a", 8) == []
    assert driver.why("a").code == "too-big"
    assert driver.submit("b", 4) == [m.Start("b", 1, ALL)], "it holds nobody back"
    driver.settle()
    driver.up(node("n1"))
    assert driver.exits("b")[1:] == [m.Start("a", 1, (*ALL, *on("n1", 0, 1, 2, 3)))]


def test_an_oversized_gang_starts_with_what_the_cluster_can_ever_give() -> None:
    driver = Driver("fifo", node("n0"))
    assert driver.submit("a", (1, 4, 64)) == [m.Start("a", 1, ALL)]


def test_a_node_that_shrinks_sends_its_jobs_elsewhere() -> None:
    driver = Driver("fifo", node("n0"), node("n1"))
    driver.submit("a", 4)
    driver.settle()
    assert driver.up(node("n0", 2)) == [m.Stop("a", 1)]
    assert driver.does("a") == [m.Start("a", 2, on("n1", 0, 1, 2, 3))]


def test_a_node_that_grows_makes_room() -> None:
    driver = Driver("fifo", node("n0", 2))
    assert driver.submit("a", 4) == []
    assert driver.up(node("n0", 4)) == [m.Start("a", 1, ALL)]


# ------------------------------------------------------------------------------------- gangs


def gang(workers: m.Range, **fields: object) -> m.JobSpec:
    roles = (
        m.Role(name="chief", devices=1),
        m.Role(name="ps", devices=0, cpus=2.0),
        m.Role(name="worker", devices=2, count=workers),
    )
    return m.JobSpec(name="gang", roles=roles, **fields)  # type: ignore[arg-type]


def test_a_gang_starts_whole_with_a_seat_for_each_worker() -> None:
    driver = Driver("fifo", node("n0", 8, cpus=8.0))
    [start] = driver.submit_spec("g", gang(m.Range(min=2, max=2)))
    assert isinstance(start, m.Start)
    assert start.place == on("n0", 0, 1, 2, 3, 4)
    seats = sorted((role, on_node, len(devices)) for role, on_node, devices in start.seats)
    assert seats == [
        ("chief", "n0", 1), ("ps", "n0", 0), ("worker", "n0", 2), ("worker", "n0", 2),
    ]  # fmt: skip
    assert sorted(d for _, _, devices in start.seats for d in devices) == [0, 1, 2, 3, 4]


def test_a_gang_is_whole_or_absent() -> None:
    driver = Driver("fifo", node("n0", 4))
    driver.submit("a", 1)
    driver.submit_spec("g", gang(m.Range(min=2, max=2)))
    driver.settle()
    assert driver.runs() == {"a": 1}
    driver.up(node("n1", 4))
    driver.settle()
    assert driver.runs() == {"a": 1, "g": 5}


def test_a_worker_is_never_split_over_nodes() -> None:
    driver = Driver("fifo", node("n0", 1), node("n1", 1), node("n2", 1), locality_seconds=0.0)
    assert driver.submit_spec("g", gang(m.Range(min=1, max=1))) == []
    assert driver.tick(1000.0) == []


def test_a_gang_waits_for_cpus_of_a_role_without_devices() -> None:
    driver = Driver("fifo", node("n0", 4, cpus=1.0))
    assert driver.submit_spec("g", gang(m.Range(min=1, max=1))) == []
    assert driver.why("g").code == "resources"
    [start] = driver.up(node("n0", 4, cpus=2.0))
    assert isinstance(start, m.Start)


def test_an_elastic_role_gives_way_worker_by_worker() -> None:
    driver = Driver("max_min", node("n0", 8))
    [start] = driver.submit_spec("g", gang(m.Range(min=1, max=3, steps=(2,))))
    assert isinstance(start, m.Start)
    assert start.place == on("n0", 0, 1, 2, 3, 4, 5, 6)
    driver.settle()
    assert driver.submit("a", 2) == [m.Stop("g", 1)], "a gang changes its size by a new start"
    again, start_a = driver.settle()
    assert isinstance(again, m.Start)
    assert [role for role, _, _ in again.seats].count("worker") == 2
    assert start_a.id == "a"
    assert driver.runs() == {"a": 2, "g": 5}


# ----------------------------------------------------------------------------- kinds of device


def test_a_job_gets_the_kind_it_likes_best_of_those_with_room() -> None:
    driver = Driver("fifo", node("n0", 2, "old"), node("n1", 2, "new"))
    kinds = ("new", "old")
    assert driver.submit("a", 2, kinds=kinds) == [m.Start("a", 1, on("n1", 0, 1))]
    assert driver.submit("b", 2, kinds=kinds) == [m.Start("b", 1, on("n0", 0, 1))]
    assert driver.submit("c", 2, kinds=kinds) == []


def test_a_job_that_accepts_any_kind_takes_what_there_is() -> None:
    driver = Driver("fifo", node("n0", 2, "old"), node("n1", 4, "new"))
    assert driver.submit("a", 4) == [m.Start("a", 1, on("n1", 0, 1, 2, 3))]


def test_a_kind_that_is_missing_is_waited_for() -> None:
    driver = Driver("fifo", node("n0", 4, "old"))
    assert driver.submit("a", 2, kinds=("new",)) == []
    assert driver.why("a").code == "kind"
    assert driver.up(node("n1", 2, "new")) == [m.Start("a", 1, on("n1", 0, 1))]


ONE_NODE = m.Wish(mode="require", level="node")
#: Seven devices of a kind, but never six on one node; and one node with six of another.
NARROW_AND_WIDE = (node("n0", 2, "narrow"), node("n1", 6, "wide"), node("n2", 5, "narrow"))


@pytest.mark.parametrize("policy", ["fifo", "las", "max_min", "sia"])
def test_who_insists_on_one_node_is_planned_for_on_a_kind_that_has_such(policy: str) -> None:
    driver = Driver(policy, *NARROW_AND_WIDE)
    driver.submit("a", 6, topology=ONE_NODE)
    driver.settle()
    assert driver.runs() == {"a": 6}


def test_who_insists_on_one_node_wishes_no_more_than_one_of_that_kind_has() -> None:
    driver = Driver("fifo", *NARROW_AND_WIDE)
    assert driver.submit("a", (3, 4, 6), topology=ONE_NODE) == [
        m.Start("a", 1, on("n2", 0, 1, 2, 3))
    ]
    assert driver.submit("b", (3, 4, 6), topology=ONE_NODE)[0].place == on("n1", *range(6))  # type: ignore[union-attr]


def test_what_was_the_widest_node_of_its_kind_is_gone() -> None:
    driver = Driver("fifo", *NARROW_AND_WIDE, node("n3", 6, "narrow"))
    driver.submit("x", 13, kinds=("narrow",))
    driver.submit("y", 6, kinds=("wide",))
    driver.settle()
    driver.submit("a", 6, topology=ONE_NODE)
    driver.down("n3")
    driver.settle()
    driver.exits("y")
    driver.settle()
    assert driver.runs()["a"] == 6


def test_no_job_is_spread_over_two_kinds() -> None:
    driver = Driver("fifo", node("n0", 2, "old"), node("n1", 2, "new"), locality_seconds=0.0)
    assert driver.submit("a", 4) == []
    assert driver.why("a").code == "too-big"


def test_waiting_for_one_kind_holds_back_nobody_of_another() -> None:
    driver = Driver("fifo", node("n0", 2, "old"), node("n1", 2, "new"))
    driver.submit("a", 2, kinds=("old",))
    assert driver.submit("b", 2, kinds=("old",)) == []
    assert driver.submit("c", 2, kinds=("new",)) == [m.Start("c", 1, on("n1", 0, 1))]


class Upgrade(Policy, frozen=True):
    """Everybody on the pool of number 0, and from a moment on on that of number 1."""

    scope: ClassVar[Literal["queue", "pool", "cluster"]] = "cluster"
    when: float = 10.0

    def plan(self, view: View) -> Ints:
        matrix = np.zeros((view.jobs.n, len(view.pools)), np.int64)
        matrix[:, int(view.now >= self.when)] = view.jobs.wish
        return matrix


def test_a_plan_over_kinds_moves_a_running_job() -> None:
    driver = Driver(Upgrade(), node("n0", 4, "old"), node("n1", 4, "new"))
    assert driver.submit("a", 2) == [m.Start("a", 1, on("n0", 0, 1))]
    driver.settle()
    assert driver.tick(10.0) == [m.Stop("a", 1)]
    assert driver.does("a") == [m.Start("a", 2, on("n1", 0, 1))]


def test_a_plan_over_kinds_may_not_give_one_that_is_not_accepted() -> None:
    driver = Driver(Upgrade(), node("n0", 4, "old"), node("n1", 4, "new"))
    driver.submit("a", 2, kinds=("old",))
    driver.settle()
    assert driver.tick(10.0) == []
    assert driver.scheduler.state.refused == "job row 0 does not accept new"
    assert driver.runs() == {"a": 2}


def test_a_kind_on_which_a_size_cannot_run_is_not_given_at_that_size() -> None:
    book = SpeedBook()
    book.add("large", 0, "new", linear(1, 2, 4))
    book.add("large", 0, "small", Curve((1, 2, 4), (0.0, 2.0, 4.0)))
    driver = Driver("max_min", node("n0", 2, "small"), speedups=book)
    told = [m.Submitted(at=0.0, id=i, spec=job((1, 2, 4), model="large")) for i in "ab"]
    assert driver.say(*told) == [m.Start("a", 1, on("n0", 0, 1))]

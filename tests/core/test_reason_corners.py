"""Corners in which a reason or a remedy was once not true."""

from __future__ import annotations

import numpy as np
from tests.core.driver import Driver, node

from bough.core import model as m
from bough.core.policy import Ints, Policy, View

QUEUES = (
    m.Queue(name="p", limit=4),
    m.Queue(name="c1", parent="p"),
    m.Queue(name="c2", parent="p"),
)


def test_between_rounds_it_waits_for_the_round_and_nothing_is_advised() -> None:
    d = Driver("max_min", node("n0"), round_seconds=60.0)
    d.now = 10.0
    d.submit("a", 2)
    r = d.why("a")
    assert r.remedy == ""
    assert "round" in r.text


def test_a_gang_that_is_torn_apart_is_not_short_of_cpus() -> None:
    d = Driver("fifo", node("n0", 2), node("n1", 2))
    for i in range(4):
        d.submit(f"x{i}", 1)
    d.settle()
    d.exits("x0")
    d.exits("x2")
    d.submit_spec("g", m.JobSpec(name="g", roles=(m.Role(name="w", devices=2),)))
    assert d.why("g").code == "fragmentation"


def test_a_worker_wider_than_any_node_is_not_short_of_cpus() -> None:
    d = Driver("fifo", node("n0"), node("n1"))
    d.submit_spec("g", m.JobSpec(name="g", roles=(m.Role(name="w", devices=8),)))
    assert d.why("g").code in ("topology", "too-big")


def test_a_wish_for_a_rack_is_not_a_lack_of_memory() -> None:
    d = Driver("fifo", node("n0", 2), node("n1", 2))
    for i in range(4):
        d.submit(f"x{i}", 1)
    d.settle()
    d.exits("x0")
    d.exits("x2")
    d.submit("a", 2, topology=m.Wish(mode="prefer", level="node"))
    assert d.why("a").code in ("fragmentation", "topology")


def test_a_limit_above_that_siblings_have_used_up_is_a_quota() -> None:
    d = Driver("fifo", node("n0", 8), queues=QUEUES)
    d.submit("a", 2, queue="c1")
    d.submit("b", 3, queue="c2")
    d.settle()
    r = d.why("b")
    assert (r.code, r.facts["by"]) == ("quota", "p")  # though 6 are free


def test_a_rigid_size_that_would_start_is_advised_under_fifo() -> None:
    d = Driver("fifo", node("n0"))
    d.submit("o", 3)
    d.settle()
    d.submit("a", 2)
    assert d.why("a").remedy.startswith("Ask for 1 device only")


def test_an_elastic_job_that_fifo_wants_to_give_its_largest_size_says_so() -> None:
    d = Driver("fifo", node("n0", 8))
    d.submit("a", 5)
    d.settle()
    d.submit("b", (2, 4, 8))
    text = "It accepts 2 to 8 gpu devices and 3 of 8 are free, "
    assert d.why("b").text.startswith(text)  # 3 would be enough


def test_a_kind_whose_nodes_are_all_down_is_not_there() -> None:
    d = Driver("fifo", node("n0", 4, "old"), node("n1", 4, "new"))
    d.down("n1")
    d.submit("a", 1, kinds=("x",))
    assert "new" not in d.why("a").text


def test_a_job_that_starts_anew_by_itself_does_not_wait_for_others() -> None:
    d = Driver("max_min", node("n0"))
    d.submit("a", (1, 2, 4), resize_in_place=False)
    d.settle()
    d.submit("b", 2)
    assert "others" not in d.why("a").text


def test_a_timed_out_job_says_how_long_it_ran() -> None:
    d = Driver("fifo", node("n0"))
    d.submit("a", 1, max_run_seconds=90.0)
    d.settle()
    d.tick(90.0)
    ended = d.settle()[0]
    assert isinstance(ended, m.Ended)
    assert ended.reason == "it may run for 1m30s"
    assert d.why("a").facts["ran_seconds"] == 90.0


def test_a_refused_plan_is_named() -> None:
    class Bad(Policy, frozen=True):
        def plan(self, view: View) -> Ints:
            return np.full(view.jobs.n, 99)

    d = Driver(Bad(), node("n0"))
    d.submit("a", 1)
    assert "refused" in d.why("a").text


def test_devices_pending_growth_of_a_running_job() -> None:
    d = Driver("max_min", node("n0"))
    d.submit("a", (1, 2, 4))
    d.submit("b", 2)
    d.settle()
    d.now = 1e6
    d.cancel("b")
    r = d.why("a")
    assert r.code == "running"
    assert "runs on 2 devices" in r.text

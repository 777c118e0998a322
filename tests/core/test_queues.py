"""Queues: guarantees on demand, lending and taking back, limits, history and budgets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bough.core.model import INFINITY, Queue
from bough.core.queues import Binding, QueueTree

HOUR = 3600.0


def tree(*queues: Queue) -> QueueTree:
    made = QueueTree()
    for queue in queues:
        made.set(queue)
    return made


def entitle(
    queues: QueueTree,
    capacity: int,
    demand: dict[str, int],
    floor: dict[str, int] | None = None,
    now: float = 0.0,
    pool: str = "h100",
) -> dict[str, int]:
    """Entitlements by name, of the queues that ask for something."""
    wanted, locked = column(queues, demand), column(queues, floor or {})
    found = queues.entitle(now, pool, capacity, wanted, locked)
    return {name: int(found[queues.index(name)]) for name in demand}


def column(queues: QueueTree, values: dict[str, int]) -> np.ndarray:
    found = np.zeros(len(queues.names), np.int64)
    for name, value in values.items():
        found[queues.index(name)] = value
    return found


def charge(queues: QueueTree, now: float, used: dict[str, int]) -> None:
    queues.charge(now, column(queues, used))


# ---------------------------------------------------------------------------- by example


def test_equal_queues_share_equally_and_by_weight() -> None:
    queues = tree(Queue(name="a"), Queue(name="b"), Queue(name="c", weight=2))
    assert entitle(queues, 40, {"a": 99, "b": 99, "c": 99}) == {"a": 10, "b": 10, "c": 20}


def test_what_one_does_not_ask_for_the_others_get() -> None:
    queues = tree(Queue(name="a"), Queue(name="b"))
    assert entitle(queues, 40, {"a": 5, "b": 99}) == {"a": 5, "b": 35}


def test_a_guarantee_comes_first_and_the_rest_is_shared_by_weight() -> None:
    queues = tree(Queue(name="a", guarantee=20), Queue(name="b"))
    assert entitle(queues, 40, {"a": 99, "b": 99}) == {"a": 30, "b": 10}


def test_an_unused_guarantee_is_lent_and_taken_back_on_demand() -> None:
    queues = tree(Queue(name="a", guarantee=20), Queue(name="b"))
    assert entitle(queues, 24, {"a": 0, "b": 99}) == {"a": 0, "b": 24}
    assert entitle(queues, 24, {"a": 20, "b": 99}) == {"a": 20, "b": 4}


def test_locked_jobs_keep_their_devices_while_a_guarantee_is_taken_back() -> None:
    queues = tree(Queue(name="a", guarantee=20), Queue(name="b"))
    assert entitle(queues, 24, {"a": 20, "b": 99}, {"b": 10}) == {"a": 14, "b": 10}


def test_locked_jobs_of_a_sibling_do_not_eat_a_guarantee() -> None:
    queues = tree(
        Queue(name="lab", guarantee=3),
        Queue(name="x", parent="lab", guarantee=3),
        Queue(name="y", parent="lab"),
        Queue(name="shop"),
    )
    demand = {"x": 3, "y": 9, "shop": 99}
    # 3 and 2 are spoken for, and those 2 count: the first two turns of the other 3 are shop's.
    assert entitle(queues, 8, demand, {"y": 2}) == {"x": 3, "y": 3, "shop": 2}


def test_locked_jobs_do_not_get_their_queue_more_than_its_share() -> None:
    queues = tree(Queue(name="a"), Queue(name="b"))
    demand = {"a": 99, "b": 99}
    assert entitle(queues, 8, demand, {"a": 4}) == {"a": 4, "b": 4}
    assert entitle(queues, 8, demand, {"a": 2}) == {"a": 4, "b": 4}
    assert entitle(queues, 8, demand, {"a": 6}) == {"a": 6, "b": 2}


def test_guarantees_beyond_the_cluster_shrink_in_proportion() -> None:
    queues = tree(Queue(name="a", guarantee=30), Queue(name="b", guarantee=10))
    assert entitle(queues, 20, {"a": 99, "b": 99}) == {"a": 15, "b": 5}


def test_a_limit_holds_even_when_devices_stay_idle() -> None:
    queues = tree(Queue(name="a", limit=8), Queue(name="b"))
    assert entitle(queues, 40, {"a": 99, "b": 4}) == {"a": 8, "b": 4}


def test_a_limit_of_a_kind_holds_for_that_kind_only() -> None:
    queues = tree(Queue(name="a", kind_limits={"h100": 8}))
    assert entitle(queues, 40, {"a": 99}, pool="h100") == {"a": 8}
    assert entitle(queues, 40, {"a": 99}, pool="t4") == {"a": 40}


def test_a_queue_that_may_not_borrow_has_its_guarantee_and_no_more() -> None:
    queues = tree(Queue(name="a", guarantee=10, borrow=False), Queue(name="b"))
    assert entitle(queues, 40, {"a": 99, "b": 5}) == {"a": 10, "b": 5}


def test_a_paused_queue_keeps_only_what_may_not_be_taken() -> None:
    queues = tree(Queue(name="a", paused=True), Queue(name="a1", parent="a"), Queue(name="b"))
    assert entitle(queues, 40, {"a1": 99, "b": 9}, {"a1": 3}) == {"a1": 3, "b": 9}


def test_children_share_what_their_parent_has() -> None:
    queues = tree(
        Queue(name="lab", guarantee=24),
        Queue(name="vision", parent="lab", weight=2),
        Queue(name="speech", parent="lab"),
        Queue(name="shop"),
    )
    demand = {"vision": 99, "speech": 99, "shop": 99}
    assert entitle(queues, 48, demand) == {"vision": 24, "speech": 12, "shop": 12}


def test_a_limit_above_holds_for_all_below_together() -> None:
    queues = tree(
        Queue(name="lab", limit=10), Queue(name="x", parent="lab"), Queue(name="y", parent="lab")
    )
    assert entitle(queues, 48, {"x": 99, "y": 99}) == {"x": 5, "y": 5}


def test_the_guarantees_below_are_a_guarantee_against_the_parents_siblings() -> None:
    queues = tree(
        Queue(name="lab"), Queue(name="x", parent="lab", guarantee=30), Queue(name="shop")
    )
    assert entitle(queues, 32, {"x": 30, "shop": 99}) == {"x": 30, "shop": 2}


def test_jobs_of_an_inner_queue_stand_beside_its_children() -> None:
    queues = tree(Queue(name="lab"), Queue(name="x", parent="lab"))
    assert entitle(queues, 10, {"lab": 99, "x": 99}) == {"lab": 5, "x": 5}


def test_a_queue_nobody_described_is_a_child_of_the_root() -> None:
    queues = tree(Queue(name="a", weight=3))
    queues.index("new")
    assert entitle(queues, 8, {"a": 99, "new": 99}) == {"a": 6, "new": 2}


def test_a_queue_without_weight_takes_what_the_others_leave() -> None:
    queues = tree(Queue(name="a"), Queue(name="scavenger", weight=0))
    assert entitle(queues, 10, {"a": 7, "scavenger": 99}) == {"a": 7, "scavenger": 3}
    assert entitle(queues, 10, {"a": 99, "scavenger": 99}) == {"a": 10, "scavenger": 0}


def test_devices_held_in_other_pools_count_against_limit_and_guarantee() -> None:
    queues = tree(Queue(name="a", limit=10, guarantee=8), Queue(name="b"))
    demand, none = column(queues, {"a": 99, "b": 99}), column(queues, {})
    elsewhere = column(queues, {"a": 6})
    found = queues.entitle(0.0, "t4", 6, demand, none, elsewhere)
    assert found.tolist() == [0, 4, 2]


@pytest.mark.parametrize(
    ("queue", "binding"),
    [
        (Queue(name="x", parent="lab"), Binding("lab", "limit", 10)),
        (Queue(name="x", parent="lab", kind_limits={"h100": 4}), Binding("x", "kind-limit", 4)),
        (Queue(name="x", parent="lab", paused=True, limit=2), Binding("x", "paused", 0)),
        (Queue(name="x", parent="lab", borrow=False), Binding("x", "guarantee", 0)),
        (Queue(name="x", parent="lab", budget_device_hours=0), Binding("x", "budget", 0)),
    ],
)
def test_the_tightest_rule_is_named(queue: Queue, binding: Binding) -> None:
    queues = tree(Queue(name="lab", limit=10), queue)
    assert queues.binding(queues.index("x"), "h100") == binding
    assert queues.binding(queues.index("default"), "h100") is None


# -------------------------------------------------------------------------------- trivial


def test_a_tree_with_nothing_in_it_is_trivial() -> None:
    queues = QueueTree()
    assert queues.trivial
    assert queues.names == ["default"]
    assert queues.index("default") == 0


@pytest.mark.parametrize(
    "queue",
    [
        Queue(name="default", limit=3),
        Queue(name="default", kind_limits={"t4": 3}),
        Queue(name="default", budget_device_hours=3),
        Queue(name="default", paused=True),
        Queue(name="default", borrow=False, guarantee=3),
        Queue(name="other"),
    ],
)
def test_a_tree_that_restricts_anything_is_not(queue: Queue) -> None:
    assert not tree(queue).trivial


def test_a_second_queue_makes_it_a_tree() -> None:
    queues = QueueTree()
    queues.index("other")
    assert not queues.trivial


# ------------------------------------------------------------------------------- nonsense


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        ([Queue(name="")], "a queue needs a name"),
        ([Queue(name="lab"), Queue(name="x", parent="lap")], "'lap'; did you mean 'lab'"),
        ([Queue(name="x", parent="x")], "queues form a circle: x in x"),
        (
            [Queue(name="a"), Queue(name="b", parent="a"), Queue(name="a", parent="b")],
            "queues form a circle: a in b in a",
        ),
        (
            [Queue(name="a", guarantee=5), Queue(name="b", parent="a", guarantee=6)],
            "queue a: the guarantees below it are 6 devices together, more than its own 5",
        ),
        (
            [Queue(name="a", limit=5), Queue(name="b", parent="a", guarantee=6)],
            "queue a: guarantees of 6 devices do not fit its limit of 5",
        ),
        ([Queue(name="a", guarantee=6, limit=5)], "do not fit its limit of 5"),
        ([Queue(name="a", guarantee=-1)], "guarantee is -1"),
        ([Queue(name="a", limit=-1)], "limit is -1"),
        ([Queue(name="a", weight=math.nan)], "weight is nan"),
        ([Queue(name="a", weight=math.inf)], "weight must be finite"),
        ([Queue(name="a", half_life_seconds=-1)], "half_life_seconds is -1"),
        ([Queue(name="a", budget_device_hours=math.nan)], "budget_device_hours is nan"),
        ([Queue(name="a", kind_limits={"t4": -2})], "kind_limits.t4 is -2"),
    ],
)
def test_a_tree_that_makes_no_sense_is_refused_and_left_as_it_was(
    queues: list[Queue], message: str
) -> None:
    made = tree(*queues[:-1])
    before = made.state()
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        made.set(queues[-1])
    assert made.state() == before


def test_a_queue_can_be_changed_and_keeps_its_number() -> None:
    queues = tree(Queue(name="a", limit=4), Queue(name="b"))
    number = queues.index("a")
    queues.set(Queue(name="a", limit=6, weight=2))
    assert queues.index("a") == number
    assert queues.get(number).limit == 6
    assert queues.weight(number) == 2


# ------------------------------------------------------------------------ history, budgets


def test_history_halves_after_its_half_life() -> None:
    queues = tree(Queue(name="a", half_life_seconds=HOUR), Queue(name="a1", parent="a"))
    charge(queues, 0, {})
    charge(queues, 60, {"a1": 10})
    at = queues.index("a")
    used = queues.history(60)[at]
    assert used == pytest.approx(600, rel=0.02)
    assert queues.history(60 + HOUR)[at] == pytest.approx(used / 2)
    assert queues.history(60)[queues.index("a1")] == 0  # its own half-life is 0


def test_history_does_not_depend_on_how_often_it_is_charged() -> None:
    queues = [tree(Queue(name="a", half_life_seconds=HOUR)) for _ in range(2)]
    for made, steps in zip(queues, (1, 100), strict=True):
        charge(made, 0, {})
        for step in range(steps):
            charge(made, (step + 1) * 7200 / steps, {"a": 3})
    once, often = (made.history(9000)[1] for made in queues)
    assert once == pytest.approx(often)


def test_who_used_more_than_its_share_gets_less_of_what_is_left_over() -> None:
    queues = tree(*(Queue(name=n, half_life_seconds=24 * HOUR) for n in "ab"))
    assert entitle(queues, 40, {"a": 99, "b": 99}) == {"a": 20, "b": 20}
    charge(queues, 0, {})
    charge(queues, 24 * HOUR, {"a": 40})
    after = entitle(queues, 40, {"a": 99, "b": 99}, now=24 * HOUR)
    assert after["a"] < 15
    assert sum(after.values()) == 40
    later = entitle(queues, 40, {"a": 99, "b": 99}, now=20 * 24 * HOUR)
    assert later == {"a": 20, "b": 20}


def test_in_the_long_run_use_follows_the_weights() -> None:
    queues = tree(
        Queue(name="a", weight=3, half_life_seconds=HOUR),
        Queue(name="b", weight=1, half_life_seconds=HOUR),
    )
    charge(queues, 0, {})
    used = dict.fromkeys("ab", 0)
    for minute in range(600):
        # For the first two hours b is alone.
        demand = {"a": 0 if minute < 120 else 99, "b": 99}
        held = entitle(queues, 40, demand, now=minute * 60.0)
        charge(queues, (minute + 1) * 60.0, held)
        if minute >= 300:
            used = {n: used[n] + held[n] for n in "ab"}
    assert used["a"] / used["b"] == pytest.approx(3, rel=0.1)


def test_a_spent_budget_stops_the_queue_and_all_below() -> None:
    queues = tree(Queue(name="a", budget_device_hours=10), Queue(name="a1", parent="a"))
    charge(queues, 0, {})
    charge(queues, HOUR, {"a1": 4})
    assert queues.budget_left(queues.index("a")) == pytest.approx(6)
    assert queues.next_change(HOUR) == pytest.approx(HOUR + 1.5 * HOUR)
    assert entitle(queues, 9, {"a1": 99}) == {"a1": 9}
    charge(queues, 2.5 * HOUR, {"a1": 4})
    assert queues.budget_left(queues.index("a")) == 0
    assert entitle(queues, 9, {"a1": 99}, {"a1": 2}) == {"a1": 2}
    assert queues.next_change(2.5 * HOUR) == INFINITY


def test_the_moment_a_budget_runs_out_is_exact_enough_to_wake_only_once() -> None:
    queues = tree(Queue(name="a", budget_device_hours=0.1))
    charge(queues, 0.0, {})
    charge(queues, 12.3, {"a": 7})
    charge(queues, queues.next_change(12.3), {"a": 7})
    assert entitle(queues, 9, {"a": 9}) == {"a": 0}


def test_what_is_held_from_now_on_may_be_told_apart() -> None:
    queues = tree(Queue(name="a", budget_device_hours=10))
    charge(queues, 0, {"a": 1})
    held = column(queues, {"a": 20})
    assert queues.next_change(0, held) == pytest.approx(HOUR / 2)


def test_a_new_budget_starts_afresh_and_an_unchanged_one_goes_on() -> None:
    queues = tree(Queue(name="a", budget_device_hours=10))
    charge(queues, 0, {})
    charge(queues, HOUR, {"a": 4})
    queues.set(Queue(name="a", budget_device_hours=10, weight=2))
    assert queues.budget_left(1) == pytest.approx(6)
    queues.set(Queue(name="a", budget_device_hours=20))
    assert queues.budget_left(1) == pytest.approx(20)


def test_time_that_runs_backwards_costs_nothing() -> None:
    queues = tree(Queue(name="a", budget_device_hours=10))
    charge(queues, 100, {})
    charge(queues, 50, {"a": 4})
    charge(queues, 100, {"a": 4})
    assert queues.budget_left(1) == 10


def test_queues_may_count_by_the_resource_that_their_jobs_use_most() -> None:
    """The example of Ghodsi et al. (NSDI '11): twice 9 CPUs and 18 GB, and 90 devices."""
    takes = np.array([[1.0, 0.0, 0.0], [1.0, 5.0, 10.0], [1.0, 15.0, 2.5]])
    for dominant, expected in ((True, [6, 4]), (False, [5, 4])):
        queues = tree(Queue(name="a", dominant=dominant), Queue(name="b", dominant=dominant))
        demand = column(queues, {"a": 90, "b": 90})
        own = queues.entitle(0.0, "h100", 90, demand, np.zeros_like(demand), takes=takes)
        assert own.tolist() == [0, *expected]


def test_a_queue_of_queues_counts_by_what_all_their_jobs_use_most() -> None:
    below = [Queue(name=name, parent="a") for name in ("a1", "a2")]
    queues = tree(Queue(name="a", dominant=True), *below, Queue(name="b"))
    takes = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 3.0], [1.0, 5.0], [1.0, 0.0]])
    demand = column(queues, {"a1": 50, "a2": 50, "b": 100})
    own = queues.entitle(0.0, "h100", 100, demand, np.zeros_like(demand), takes=takes)
    # A device of `a` counts as 4 of `b`: 20 of its devices use 80 hundredths of the CPUs.
    assert own.tolist() == [0, 0, 10, 10, 80]

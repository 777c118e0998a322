"""What holds for every tree of queues, whatever is asked of it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.model import INFINITY, Queue
from bough.core.queues import QueueTree

NAMES = "abcdefg"


@st.composite
def trees(draw: st.DrawFn, plain: bool = False) -> QueueTree:
    made = QueueTree()
    for i, name in enumerate(NAMES[: draw(st.integers(1, len(NAMES)))]):
        fields: dict[str, Any] = {"weight": draw(st.sampled_from([0.5, 1.0, 2.0, 3.0]))}
        if not plain:
            fields["guarantee"] = draw(st.sampled_from([0, 0, 3, 10]))
            fields["limit"] = draw(st.sampled_from([None, None, 5, 20]))
            fields["borrow"] = draw(st.sampled_from([True, True, False]))
            fields["paused"] = draw(st.sampled_from([False] * 5 + [True]))
        queue = Queue(name=name, parent=draw(st.sampled_from(["", *NAMES[:i]])), **fields)
        try:
            made.set(queue)
        except ValueError:  # guarantees that do not fit
            made.set(msgspec.structs.replace(queue, guarantee=0))
    return made


@st.composite
def asked(draw: st.DrawFn, plain: bool = False) -> tuple[QueueTree, int, Any, Any]:
    made = draw(trees(plain))
    count = len(made.names)
    demand = np.array(draw(st.lists(st.integers(0, 30), min_size=count, max_size=count)))
    part = np.array(draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    floor = np.zeros_like(demand) if plain else demand * (part == 2) // 4
    capacity = draw(st.integers(int(floor.sum()), 100))
    return made, capacity, demand, floor


Asked = tuple[QueueTree, int, Any, Any]


@settings(max_examples=80, deadline=None)
@given(asked())
def test_nobody_gets_more_than_asked_and_all_together_no_more_than_there_is(case: Asked) -> None:
    queues, capacity, demand, floor = case
    found = queues.entitle(0.0, "h100", capacity, demand, floor)
    assert found.sum() <= capacity
    assert (found <= demand).all()
    assert (found >= floor).all()


@settings(max_examples=80, deadline=None)
@given(asked())
def test_no_limit_is_passed_but_by_what_may_not_be_taken(case: Asked) -> None:
    queues, capacity, demand, floor = case
    found = queues.entitle(0.0, "h100", capacity, demand, floor)
    for i, name in enumerate(queues.names):
        below = [j for j in range(len(queues.names)) if is_below(queues, j, i)]
        queue, held, locked = queues.get(i), found[below].sum(), floor[below].sum()
        if queue.limit is not None:
            assert held <= max(queue.limit, locked), name
        if queue.paused:
            assert held == locked, name


def is_below(queues: QueueTree, index: int, above: int) -> bool:
    while index != above:
        parent = queues.get(index).parent
        if not parent:
            return False
        index = queues.index(parent)
    return True


@settings(max_examples=80, deadline=None)
@given(asked())
def test_a_guarantee_is_met_on_demand(case: Asked) -> None:
    queues, _, demand, floor = case
    open_ = [not any_paused(queues, i) for i in range(len(queues.names))]
    wanted = [min(queues.get(i).guarantee, int(demand[i])) * open_[i] for i in range(len(demand))]
    leaves = [i for i in range(len(demand)) if not has_children(queues, i)]
    capacity = int(floor.sum() + sum(queues.get(i).guarantee for i in range(len(demand))))
    found = queues.entitle(0.0, "h100", capacity, demand, floor)
    for i in leaves:
        if limit_above(queues, i) >= floor.sum() + sum(wanted):
            assert found[i] >= wanted[i]


def any_paused(queues: QueueTree, index: int) -> bool:
    return any(queues.get(j).paused and is_below(queues, index, j) for j in every(queues))


def limit_above(queues: QueueTree, index: int) -> float:
    found = [queues.get(j).limit for j in every(queues) if is_below(queues, index, j)]
    no_loans = any(
        not queues.get(j).borrow and is_below(queues, index, j) and j != index
        for j in every(queues)
    )
    return 0 if no_loans else min((x for x in found if x is not None), default=INFINITY)


def has_children(queues: QueueTree, index: int) -> bool:
    return any(queues.get(j).parent == queues.names[index] for j in every(queues))


def every(queues: QueueTree) -> range:
    return range(len(queues.names))


@settings(max_examples=80, deadline=None)
@given(asked(plain=True))
def test_nothing_stays_idle_while_somebody_may_borrow(case: Asked) -> None:
    queues, capacity, demand, floor = case
    found = queues.entitle(0.0, "h100", capacity, demand, floor)
    assert found.sum() == min(capacity, demand.sum())


@settings(max_examples=80, deadline=None)
@given(asked())
def test_a_larger_cluster_takes_nothing_from_anybody(case: Asked) -> None:
    queues, capacity, demand, floor = case
    fewer = queues.entitle(0.0, "h100", capacity, demand, floor)
    more = queues.entitle(0.0, "h100", capacity + 1, demand, floor)
    assert (more >= fewer).all()


@settings(max_examples=80, deadline=None)
@given(asked(), st.integers(0, len(NAMES)))
def test_asking_for_more_never_gives_less(case: Asked, who: int) -> None:
    queues, capacity, demand, floor = case
    who %= len(demand)
    before = queues.entitle(0.0, "h100", capacity, demand, floor)
    demand[who] += 1
    assert queues.entitle(0.0, "h100", capacity, demand, floor)[who] >= before[who]


@settings(max_examples=50, deadline=None)
@given(asked(), st.lists(st.integers(0, 5), min_size=8, max_size=8))
def test_a_snapshot_entitles_to_the_same(case: Asked, used: list[int]) -> None:
    queues, capacity, demand, floor = case
    for name in queues.names:
        queues.set(
            msgspec.structs.replace(
                queues.get(queues.index(name)), half_life_seconds=500, budget_device_hours=1
            )
        )
    held = np.array(used[: len(queues.names)])
    queues.charge(0.0, held)
    queues.charge(600.0, held)
    again = QueueTree()
    again.restore(msgspec.json.decode(msgspec.json.encode(queues.state())))
    assert again.names == queues.names
    assert again.next_change(700.0) == queues.next_change(700.0)
    for pool in ("h100", "t4"):
        one = queues.entitle(700.0, pool, capacity, demand, floor)
        assert one.tolist() == again.entitle(700.0, pool, capacity, demand, floor).tolist()

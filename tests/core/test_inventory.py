"""What is free stays right through every change, and does not depend on how it came about."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.trees import BLOCKS, RACKS, counts, joined, shapes, size_of, tree, without

from bough.core.jobs import Slots
from bough.core.model import Node, Wish
from bough.core.topology import Topology

WISHES = [
    Wish(),
    Wish(mode="spread"),
    Wish(mode="require", level="node"),
    Wish(mode="prefer", level="node"),
]


class Life:
    """A tree on which jobs come, grow, shrink and go while nodes fail and return."""

    def __init__(self, shape: dict[str, Any], seed: int) -> None:
        self.topology = tree(**shape)
        self.drawn = random.Random(seed)
        self.jobs: list[Slots] = []

    def step(self) -> None:
        """One thing happens."""
        change = self.drawn.choice(
            [self.start] * 4
            + [self.grow, self.shrink, self.end, self.health, self.drain, self.node]
        )
        change()

    def pool(self) -> int:
        return self.drawn.randrange(len(self.topology.kinds))

    def start(self) -> None:
        size = self.drawn.choice([1, 1, 2, 3, 4, 5, 8, 11, 16])
        wish = self.drawn.choice(WISHES)
        pool, relaxed = self.pool(), self.drawn.random() < 0.5
        found = self.topology.find(pool, size, wish=wish, relaxed=relaxed)
        if found is None:
            assert not (relaxed and not wish.level) or self.topology.free(pool) < size
            return
        assert size_of(found) == size
        self.topology.take(found)
        self.jobs.append(found)

    def grow(self) -> None:
        if not self.jobs:
            return
        number = self.drawn.randrange(len(self.jobs))
        near, size = self.jobs[number], self.drawn.randint(1, 9)
        pool, relaxed = self.topology.pools[near[0][0]], self.drawn.random() < 0.5
        more = self.topology.find(pool, size, near=near, relaxed=relaxed)
        if more is None:
            assert not relaxed or self.topology.free(pool) < size
            return
        assert size_of(more) == size
        self.topology.take(more)
        self.jobs[number] = joined(near, more)

    def shrink(self) -> None:
        if not self.jobs:
            return
        number = self.drawn.randrange(len(self.jobs))
        held = self.jobs[number]
        size = self.drawn.randint(1, size_of(held))
        kept = self.topology.shrink(held, size)
        assert size_of(kept) == size
        assert self.topology.span(kept) <= self.topology.span(held)
        self.topology.give(without(held, kept))
        self.jobs[number] = kept

    def end(self) -> None:
        if self.jobs:
            self.topology.give(self.jobs.pop(self.drawn.randrange(len(self.jobs))))

    def health(self) -> None:
        node = self.drawn.choice(self.topology.nodes)
        device = self.drawn.randrange(node.devices)
        self.topology.health(node.name, device, self.drawn.random() < 0.6)

    def drain(self) -> None:
        self.topology.drain(self.drawn.choice(self.topology.names), self.drawn.random() < 0.4)

    def node(self) -> None:
        node = self.drawn.choice(self.topology.nodes)
        if self.drawn.random() < 0.3:
            self.topology.remove(node.name)
        else:
            self.topology.add(node)


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 10**6))
def test_counts_hold_through_everything_that_happens(shape: dict[str, Any], seed: int) -> None:
    life = Life(shape, seed)
    for _ in range(40):
        life.step()
        life.topology.check()
    for job in life.jobs:
        life.topology.give(job)
    life.topology.check()
    assert not any(life.topology.held_masks)


def rebuilt(original: Topology) -> Topology:
    """The same state by the shortest way: nodes, then what is held, then what befell them."""
    copy = Topology(original.levels, inner=dict(zip(("island", "socket"), original.inner)))  # noqa: B905
    for kind in original.kinds:
        copy.pool(kind)
    for node in original.nodes:
        copy.add(node)
    for node, held in enumerate(original.held_masks):
        if held:
            copy.retake(((node, held),))
    for index, node in enumerate(original.nodes):
        for device in range(node.devices):
            if not original.healthy_masks[index] >> device & 1:
                copy.health(node.name, device, False)
        if original.drained[index]:
            copy.drain(node.name, True)
        if not original.up[index]:
            copy.remove(node.name)
    return copy


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 10**6))
def test_answers_depend_on_the_state_and_not_on_its_history(
    shape: dict[str, Any], seed: int
) -> None:
    life = Life(shape, seed)
    for _ in range(60):
        life.step()
    topology, copy = life.topology, rebuilt(life.topology)
    copy.check()
    assert (copy.pool_free, copy.pool_usable) == (topology.pool_free, topology.pool_usable)
    for pool in range(len(topology.kinds)):
        for size in range(1, 20):
            for wish in WISHES:
                for relaxed in (False, True):
                    found = topology.find(pool, size, wish=wish, relaxed=relaxed)
                    assert found == copy.find(pool, size, wish=wish, relaxed=relaxed)
    for job in life.jobs:
        pool = topology.pools[job[0][0]]
        for size in range(1, 9):
            assert topology.find(pool, size, near=job) == copy.find(pool, size, near=job)
        assert topology.shrink(job, 1) == copy.shrink(job, 1)


def test_a_drained_node_takes_nothing_new_and_counts_until_it_is_empty() -> None:
    topology = tree([4, 4])
    topology.take(((0, 0b0011),))
    topology.drain("n0", True)
    assert (topology.free(0), topology.usable(0)) == (4, 6)
    topology.give(((0, 0b0001),))
    assert (topology.free(0), topology.usable(0)) == (4, 5)
    assert counts(topology.find(0, 1)) == {1: 1}
    topology.drain("n0", False)
    assert (topology.free(0), topology.usable(0)) == (7, 8)
    topology.check()


def test_a_node_that_is_down_has_nothing_and_forgets_what_is_given_back() -> None:
    topology = tree([4, 4])
    held = ((0, 0b0011), (1, 0b1111))
    topology.take(held)
    topology.remove("n0")
    assert (topology.free(0), topology.usable(0)) == (0, 4)
    topology.give(held)
    assert (topology.free(0), topology.usable(0)) == (4, 4)
    assert topology.add(Node(name="n0", kind="h100", devices=4)) == 0
    assert (topology.free(0), topology.usable(0)) == (8, 8)


def test_what_is_still_held_on_a_node_that_comes_back_is_not_given_twice() -> None:
    topology = tree([4])
    topology.take(((0, 0b0011),))
    topology.remove("n0")
    topology.add(topology.nodes[0])
    assert topology.find(0, 4) is None
    assert topology.find(0, 2) == ((0, 0b1100),)


def test_unhealthy_devices() -> None:
    topology = tree([4, 4])
    topology.health("n0", 2, False)
    assert (topology.free(0), topology.usable(0), topology.whole_free_nodes(0)) == (7, 7, 1)
    assert topology.find(0, 3) == ((0, 0b1011),)
    topology.take(((0, 0b1011),))
    topology.health("n0", 0, False)
    assert topology.usable(0) == 7  # held: counts until it is given back
    topology.give(((0, 0b1011),))
    assert (topology.free(0), topology.usable(0)) == (6, 6)
    topology.add(topology.nodes[0])
    assert topology.usable(0) == 6  # a change of the node says nothing of its devices …
    topology.remove("n0")
    topology.add(topology.nodes[0])
    assert topology.usable(0) == 8  # … its return does
    topology.check()


def test_a_node_that_changed_keeps_its_index() -> None:
    topology = tree([4, 4], RACKS, per_domain=1)
    topology.take(((0, 0b1),))
    assert topology.add(Node(name="n0", kind="h100", devices=8, path=("rack1",))) == 0
    topology.check()
    assert (topology.free(0), topology.usable(0)) == (11, 12)
    assert topology.span(((0, 1), (1, 1))) == 1
    assert topology.add(Node(name="n0", kind="a100", devices=8, path=("rack1",))) == 0
    topology.check()
    assert topology.kinds == ["h100", "a100"]
    assert (topology.usable(0), topology.usable(1), topology.free(1)) == (4, 8, 7)
    topology.add(Node(name="n0", kind="a100", devices=2, path=("rack1",)))
    topology.give(((0, 0b1),))
    topology.check()
    assert topology.free(1) == 2


def test_kinds_are_pools_of_their_own() -> None:
    topology = tree([4] * 4, kinds=("h100", "t4"))
    assert topology.kinds == ["h100", "t4"]
    assert counts(topology.find(0, 8)) == {0: 4, 2: 4}
    assert counts(topology.find(1, 8)) == {1: 4, 3: 4}
    assert topology.find(1, 12, relaxed=True) is None


def test_only_free_devices_are_taken_and_only_held_ones_given() -> None:
    topology = tree([4])
    topology.take(((0, 0b0011),))
    with pytest.raises(AssertionError, match="n0: 110 is not free of 1100"):
        topology.take(((0, 0b0110),))
    with pytest.raises(AssertionError, match="n0: 110 is not held of 11"):
        topology.give(((0, 0b0110),))
    with pytest.raises(AssertionError, match="held already"):
        topology.retake(((0, 0b0110),))
    topology.check()


def test_what_was_given_can_be_retaken_though_the_node_is_drained() -> None:
    topology = tree([4])
    topology.take(((0, 0b0011),), cpus=1.0)
    topology.drain("n0", True)
    topology.give(((0, 0b0011),), cpus=1.0)
    topology.retake(((0, 0b0011),), cpus=1.0)
    assert topology.usable(0) == 2
    assert topology.cpus_taken == [2000]
    topology.check()


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (Node(name="a", kind="t4", devices=0, path=("b", "r")), "devices must be 1 or more"),
        (Node(name="a", kind="t4", devices=4), "must name block, rack"),
        (Node(name="a", kind="t4", devices=4, path=("b", "r"), cpus=-1), "0 or more"),
        (Node(name="a", kind="t4", devices=4, path=("b", "r"), memory=float("nan")), "0 or more"),
    ],
)
def test_nodes_that_are_refused(node: Node, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tree([2], BLOCKS).add(node)


def test_news_of_unknown_nodes_and_devices_is_refused() -> None:
    topology = tree([4])
    for news in (lambda: topology.remove("n7"), lambda: topology.drain("n7", True)):
        with pytest.raises(ValueError, match="unknown node n7"):
            news()
    with pytest.raises(ValueError, match="n0 has no device 4"):
        topology.health("n0", 4, False)

"""Workers of a gang stay whole, parameter servers sit beside them, and spreading goes wide."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.trees import BLOCKS, RACKS, counts, crowd, leave_free, tree

from bough.core.gangs import Gang, RoleAsk
from bough.core.model import Node, Wish
from bough.core.topology import Topology

SPREAD = Wish(mode="spread")


def crew(gang: Gang | None) -> list[tuple[int, int, int]]:
    """(role, node, number of devices) of each worker."""
    assert gang is not None
    return [(role, node, mask.bit_count()) for role, node, mask in gang.workers]


def test_all_workers_on_the_tightest_node_that_holds_them() -> None:
    topology = tree([8, 8])
    leave_free(topology, ["11111111", "01111110"])
    assert crew(topology.find_gang(0, [RoleAsk(2, 3)])) == [(0, 1, 2)] * 3
    assert crew(topology.find_gang(0, [RoleAsk(4, 2)])) == [(0, 0, 4)] * 2


def test_workers_are_not_torn_apart() -> None:
    topology = tree([8, 8])
    leave_free(topology, ["11111100", "11111100"])
    gang = topology.find_gang(0, [RoleAsk(3, 4)])
    assert crew(gang) == [(0, 0, 3), (0, 0, 3), (0, 1, 3), (0, 1, 3)]
    assert topology.find_gang(0, [RoleAsk(4, 3)], relaxed=True) is None
    assert topology.find(0, 12, relaxed=True) is not None


def test_on_as_few_nodes_as_empty_ones_would_be_unless_relaxed() -> None:
    topology = tree([8, 8, 8])
    leave_free(topology, ["11110000"] * 3)
    assert topology.find_gang(0, [RoleAsk(4, 3)]) is None
    assert crew(topology.find_gang(0, [RoleAsk(4, 3)], relaxed=True)) == [
        (0, 0, 4),
        (0, 1, 4),
        (0, 2, 4),
    ]


def test_in_the_lowest_domain() -> None:
    topology = tree([4] * 8, BLOCKS)
    topology.take(((0, 0b1), (2, 0b1)))
    assert {n for _, n, _ in crew(topology.find_gang(0, [RoleAsk(4, 2)]))} == {4, 5}
    assert {n for _, n, _ in crew(topology.find_gang(0, [RoleAsk(2, 3)]))} == {0, 1}
    rack = Wish(mode="require", level="rack")
    assert topology.find_gang(0, [RoleAsk(4, 3)], wish=rack) is None
    assert topology.find_gang(0, [RoleAsk(4, 3)]) is not None


def test_parameter_servers_go_beside_most_workers() -> None:
    topology = Topology(RACKS)
    for number, cpus in enumerate([8, 16, 16, 64]):
        topology.add(
            Node(name=f"n{number}", kind="t4", devices=4, cpus=cpus, path=(f"r{number // 2}",))
        )
    workers = RoleAsk(2, 3, cpus=2)
    gang = topology.find_gang(0, [workers, RoleAsk(0, 1, cpus=2)])
    assert crew(gang) == [(0, 0, 2), (0, 0, 2), (0, 1, 2), (1, 0, 0)]
    big = topology.find_gang(0, [workers, RoleAsk(0, 1, cpus=50)])
    assert crew(big)[-1] == (1, 3, 0)
    assert {node for _, node, _ in crew(big)} == {2, 3}
    assert topology.find_gang(0, [workers, RoleAsk(0, 1, cpus=80)]) is None
    alone = topology.find_gang(0, [RoleAsk(0, 2, cpus=10)])
    assert crew(alone) == [(0, 3, 0), (0, 3, 0)]


def test_a_gang_is_taken_and_given_with_its_cpus() -> None:
    topology = Topology()
    topology.add(Node(name="n0", kind="t4", devices=4, cpus=10, memory=100))
    roles = [RoleAsk(2, 2, cpus=3, memory=20), RoleAsk(0, 1, cpus=2, memory=5)]
    gang = topology.find_gang(0, roles)
    assert gang is not None
    topology.take_gang(gang, roles)
    assert (topology.cpus_taken, topology.memory_taken) == ([8000], [45])
    assert topology.find_gang(0, [RoleAsk(0, 1, cpus=3)]) is None
    assert topology.find_gang(0, [RoleAsk(0, 1, cpus=2)]) == Gang((), ((0, 0, 0),))
    topology.give_gang(gang, roles)
    assert (topology.cpus_taken, topology.memory_taken) == ([0], [0])
    topology.check()


def test_a_gang_grows_beside_its_own() -> None:
    topology = tree([4] * 4, RACKS)
    topology.take(((2, 0b0011),))
    near = ((2, 0b0011),)
    assert crew(topology.find_gang(0, [RoleAsk(2, 1)], near=near)) == [(0, 2, 2)]
    assert crew(topology.find_gang(0, [RoleAsk(2, 3)], near=near)) == [
        (0, 2, 2),
        (0, 3, 2),
        (0, 3, 2),
    ]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 6))
def test_workers_of_one_size_against_full_search(seed: int, devices: int, workers: int) -> None:
    """Relaxed, a place is found exactly when one exists; every worker is whole and its own."""
    topology = tree([4] * 5, RACKS)
    crowd(topology, seed)
    free = [mask.bit_count() for mask in topology.free_masks]
    ask = [RoleAsk(devices, workers)]
    ways = [way for way in product(*(range(f // devices + 1) for f in free)) if sum(way) == workers]
    gang = topology.find_gang(0, ask, relaxed=True)
    assert (gang is not None) == bool(ways)
    strict = topology.find_gang(0, ask)
    nodes_at_least = -(-workers // (4 // devices))
    assert (strict is not None) == any(sum(map(bool, way)) <= nodes_at_least for way in ways)
    for found in (gang, strict):
        if found is None:
            continue
        assert [mask.bit_count() for _, _, mask in found.workers] == [devices] * workers
        masks: dict[int, int] = {}
        for _, node, mask in found.workers:
            assert not masks.get(node, 0) & mask
            masks[node] = masks.get(node, 0) | mask
        assert tuple(sorted(masks.items())) == found.slots
        assert topology.is_free(found.slots)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_mixed_roles_with_cpus_are_never_overdrawn(seed: int) -> None:
    drawn = random.Random(seed)
    topology = Topology(RACKS)
    for number in range(6):
        cpus = drawn.choice([4, 8, 16])
        topology.add(
            Node(name=f"n{number}", kind="t4", devices=4, cpus=cpus, path=(f"r{number // 3}",))
        )
    crowd(topology, seed)
    roles = [
        RoleAsk(drawn.randint(0, 3), drawn.randint(1, 3), cpus=drawn.randint(0, 4))
        for _ in range(drawn.randint(1, 3))
    ]
    gang = topology.find_gang(0, roles, relaxed=drawn.random() < 0.7)
    if gang is None:
        return
    assert len(gang.workers) == sum(role.workers for role in roles)
    topology.take_gang(gang, roles)
    topology.check()
    for node in range(6):
        assert topology.left(node)[0] >= 0


def test_negative_roles_are_refused() -> None:
    with pytest.raises(ValueError, match="nothing may be negative"):
        tree([4]).find_gang(0, [RoleAsk(-1, 2)])


# ------------------------------------------------------------------------------------ spreading


def test_spreading_takes_one_device_per_node_and_goes_round_the_domains() -> None:
    topology = tree([4] * 8, BLOCKS)
    assert counts(topology.find(0, 2, wish=SPREAD)) == {0: 1, 4: 1}
    assert counts(topology.find(0, 4, wish=SPREAD)) == {0: 1, 2: 1, 4: 1, 6: 1}
    assert counts(topology.find(0, 8, wish=SPREAD)) == dict.fromkeys(range(8), 1)
    assert counts(topology.find(0, 10, wish=SPREAD)) == {**dict.fromkeys(range(8), 1), 0: 2, 4: 2}
    assert counts(topology.find(0, 32, wish=SPREAD)) == dict.fromkeys(range(8), 4)
    assert topology.find(0, 33, wish=SPREAD) is None


def test_spreading_avoids_where_the_job_is() -> None:
    topology = tree([4] * 4, RACKS)
    topology.take(((0, 0b1),))
    near = ((0, 0b1),)
    assert counts(topology.find(0, 1, wish=SPREAD, near=near)) == {2: 1}
    assert counts(topology.find(0, 3, wish=SPREAD, near=near)) == {1: 1, 2: 1, 3: 1}


def test_workers_of_a_gang_are_spread_whole() -> None:
    topology = tree([4] * 4, RACKS)
    assert crew(topology.find_gang(0, [RoleAsk(3, 3)], wish=SPREAD)) == [
        (0, 0, 3),
        (0, 1, 3),
        (0, 2, 3),
    ]
    assert topology.find_gang(0, [RoleAsk(3, 5)], wish=SPREAD) is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 20))
def test_spreading_uses_as_many_nodes_as_possible(seed: int, size: int) -> None:
    topology = tree([4] * 8, BLOCKS)
    crowd(topology, seed)
    free = [mask.bit_count() for mask in topology.free_masks]
    found = topology.find(0, size, wish=SPREAD)
    assert (found is not None) == (sum(free) >= size)
    if found is not None:
        used = counts(found) or {}
        assert len(used) == min(size, sum(map(bool, free)))
        top = max(used.values())
        assert all(used.get(node, 0) >= min(f, top - 1) for node, f in enumerate(free))

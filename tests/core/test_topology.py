"""Where a job goes: the lowest part of the tree that holds it, tightly; against full search."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.trees import (
    BLOCKS,
    FLAT,
    RACKS,
    counts,
    crowd,
    leave_free,
    shapes,
    size_of,
    tree,
)  # fmt: skip

from bough.core.jobs import Slots
from bough.core.model import Node, Wish
from bough.core.topology import Topology

# ------------------------------------------------------------------------------------ the rules


def test_small_jobs_go_where_least_is_left() -> None:
    topology = tree([4, 4, 4])
    leave_free(topology, ["1111", "0111", "0011"])
    assert counts(topology.find(0, 1)) == {2: 1}
    assert counts(topology.find(0, 2)) == {2: 2}
    assert counts(topology.find(0, 3)) == {1: 3}
    assert counts(topology.find(0, 4)) == {0: 4}


def test_of_equals_the_lowest_numbered() -> None:
    assert counts(tree([4, 4, 4]).find(0, 2)) == {0: 2}
    assert counts(tree([4] * 8, BLOCKS).find(0, 4)) == {0: 4}


def test_a_whole_node_comes_from_the_rack_with_fewest_of_them() -> None:
    topology = tree([4] * 6, RACKS, per_domain=3)
    leave_free(topology, ["1111", "1111", "1111", "0000", "1111", "1111"])
    assert counts(topology.find(0, 4)) == {4: 4}
    assert counts(topology.find(0, 1)) == {4: 1}


def test_a_small_job_is_never_torn_apart() -> None:
    topology = tree([4, 4])
    leave_free(topology, ["0111", "0111"])
    assert topology.find(0, 4) is None
    assert counts(topology.find(0, 4, relaxed=True)) == {0: 3, 1: 1}


def test_large_jobs_take_whole_nodes_and_a_part_of_one_more() -> None:
    topology = tree([4] * 4)
    leave_free(topology, ["0111", "0011", "1111", "1111"])
    assert counts(topology.find(0, 8)) == {2: 4, 3: 4}
    assert counts(topology.find(0, 6)) == {1: 2, 2: 4}
    assert counts(topology.find(0, 10)) == {1: 2, 2: 4, 3: 4}
    assert topology.find(0, 12) is None
    assert counts(topology.find(0, 12, relaxed=True)) == {0: 3, 1: 1, 2: 4, 3: 4}
    assert topology.find(0, 14, relaxed=True) is None


def test_a_gang_goes_to_the_rack_that_is_left_with_least() -> None:
    topology = tree([2] * 9, RACKS, per_domain=3)
    leave_free(topology, ["11", "11", "11", "00", "11", "11", "11", "00", "00"])
    assert counts(topology.find(0, 4)) == {4: 2, 5: 2}
    assert counts(topology.find(0, 6)) == {0: 2, 1: 2, 2: 2}
    assert counts(topology.find(0, 8)) == {0: 2, 1: 2, 2: 2, 6: 2}


def test_above_the_rack_the_lowest_domain_counts_and_few_racks_are_touched() -> None:
    topology = tree([2] * 16, BLOCKS, per_domain=2)
    for index in (1, 3, 5, 9, 11):
        topology.take(((index, 0b11),))
    # Block 0 has nodes 0, 2; block 1 has 4, 6, 7; block 2 has 8, 10; block 3 all four.
    assert counts(topology.find(0, 4)) == {6: 2, 7: 2}
    assert counts(topology.find(0, 6)) == {4: 2, 6: 2, 7: 2}
    assert counts(topology.find(0, 8)) == {12: 2, 13: 2, 14: 2, 15: 2}


def test_relaxed_prefers_the_lowest_domain_with_enough() -> None:
    topology = tree([4] * 4, RACKS)
    leave_free(topology, ["0011", "0011", "0111", "0111"])
    assert counts(topology.find(0, 4, relaxed=True)) == {0: 2, 1: 2}
    assert counts(topology.find(0, 6, relaxed=True)) == {2: 3, 3: 3}
    assert counts(topology.find(0, 9, relaxed=True)) == {0: 2, 1: 1, 2: 3, 3: 3}


# ----------------------------------------------------------------------------- against full search


def lowest_span(topology: Topology, nodes: tuple[int, ...]) -> int:
    return topology.span(tuple((node, 1) for node in nodes)) if len(nodes) > 1 else -1


def every_strict_choice(topology: Topology, size: int, width: int) -> list[tuple[int, ...]]:
    """All sets of nodes on which whole nodes and at most one partial one make up the size."""
    free = [mask.bit_count() for mask in topology.free_masks]
    needed = -(-size // width)
    found = []
    for nodes in combinations(range(len(free)), needed):
        parts = sorted(free[node] for node in nodes)
        rest = size - width * (needed - 1)
        if parts[0] >= rest and all(part == width for part in parts[1:]):
            found.append(nodes)
    return found


@pytest.mark.parametrize("levels", [FLAT, RACKS, BLOCKS])
@pytest.mark.parametrize("seed", range(25))
def test_strict_places_are_as_low_as_full_search_finds(levels: tuple[str, ...], seed: int) -> None:
    topology = tree([4] * 8, levels)
    crowd(topology, seed)
    free = [mask.bit_count() for mask in topology.free_masks]
    for size in range(1, 33):
        found = topology.find(0, size)
        choices = every_strict_choice(topology, size, 4)
        assert (found is None) == (not choices), size
        if found is None:
            continue
        assert size_of(found) == size
        assert topology.is_free(found)
        nodes = tuple(node for node, _ in found)
        assert nodes in choices
        lowest = min(lowest_span(topology, choice) for choice in choices)
        assert lowest_span(topology, nodes) == lowest
        if size <= 4:
            assert free[nodes[0]] == min(free[choice[0]] for choice in choices)
        else:
            check_tightest_domain(topology, found, [c for c in choices if c], lowest)


def check_tightest_domain(
    topology: Topology, found: Slots, choices: list[tuple[int, ...]], span: int
) -> None:
    """No domain of that level with fewer whole free nodes could have held it."""
    level = span - len(topology.inner) - 1

    def whole_around(nodes: tuple[int, ...]) -> int:
        chain = topology.tree.chains[topology.racks[nodes[0]]]
        return sum(
            mask == 0b1111 and topology.tree.chains[topology.racks[node]][level] == chain[level]
            for node, mask in enumerate(topology.free_masks)
        )

    lowest = [c for c in choices if lowest_span(topology, c) == span]
    best = min(whole_around(choice) for choice in lowest)
    assert whole_around(tuple(node for node, _ in found)) == best


@pytest.mark.parametrize("levels", [FLAT, RACKS, BLOCKS])
@pytest.mark.parametrize("seed", range(15))
def test_relaxed_places_use_as_few_nodes_as_full_search(levels: tuple[str, ...], seed: int) -> None:
    topology = tree([4] * 8, levels)
    crowd(topology, seed)
    free = [mask.bit_count() for mask in topology.free_masks]
    for size in range(1, 33):
        found = topology.find(0, size, relaxed=True)
        assert (found is None) == (sum(free) < size)
        if found is None:
            continue
        assert size_of(found) == size
        assert topology.is_free(found)
        if len(found) == 1:
            continue
        holding = [
            nodes
            for many in range(1, 9)
            for nodes in combinations(range(8), many)
            if sum(free[node] for node in nodes) >= size
        ]
        span = topology.span(found)
        assert span == min(topology.span(tuple((n, 1) for n in nodes)) for nodes in holding)
        here = topology.tree.chains[topology.racks[found[0][0]]][span - 1]
        inside = [
            nodes
            for nodes in holding
            if {topology.tree.chains[topology.racks[n]][span - 1] for n in nodes} == {here}
        ]
        assert len(found) == min(len(nodes) for nodes in inside)


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 10**6), st.integers(1, 40))
def test_whatever_is_found_is_free_and_of_the_right_kind(
    shape: dict[str, object], seed: int, size: int
) -> None:
    topology = tree(**shape)  # type: ignore[arg-type]
    crowd(topology, seed)
    for pool in range(len(topology.kinds)):
        strict = topology.find(pool, size)
        relaxed = topology.find(pool, size, relaxed=True)
        assert (relaxed is not None) == (topology.free(pool) >= size)
        assert strict is None or relaxed is not None
        assert (topology.largest_free(pool) >= size) == (strict is not None and len(strict) == 1)
        for found in (strict, relaxed):
            if found is not None:
                assert size_of(found) == size
                assert topology.is_free(found)
                assert {topology.pools[node] for node, _ in found} == {pool}
                assert list(found) == sorted(found)
                topology.take(found)
                topology.check()
                topology.give(found)


# ---------------------------------------------------------------------------------------- wishes


def test_require_keeps_a_gang_inside_one_domain() -> None:
    topology = tree([2] * 4, RACKS)
    topology.take(((0, 0b11), (2, 0b11)))
    assert counts(topology.find(0, 4)) == {1: 2, 3: 2}
    assert topology.find(0, 4, wish=Wish(mode="require", level="rack")) is None
    assert topology.find(0, 4, wish=Wish(mode="require", level="rack"), relaxed=True) is None
    assert counts(topology.find(0, 2, wish=Wish(mode="require", level="rack"))) == {1: 2}
    assert topology.find(0, 4, wish=Wish(mode="require", level="node")) is None
    assert counts(topology.find(0, 4, wish=Wish(mode="require", level="cluster"))) == {1: 2, 3: 2}
    assert counts(topology.find(0, 4, wish=Wish(mode="prefer", level="rack"))) == {1: 2, 3: 2}


def test_wishes_for_a_level_inside_the_node() -> None:
    topology = tree([8, 8], inner={"island": 4})
    leave_free(topology, ["11001100", "11110100"])
    island = Wish(mode="require", level="island")
    assert topology.place(topology.find(0, 4) or ()) == (("n0", (0, 1, 4, 5)),)
    assert topology.place(topology.find(0, 4, wish=island) or ()) == (("n1", (0, 1, 2, 3)),)
    prefer = Wish(mode="prefer", level="island")
    assert topology.place(topology.find(0, 4, wish=prefer) or ()) == (("n1", (0, 1, 2, 3)),)
    topology.take(((1, 0b1),))
    assert topology.find(0, 4, wish=island) is None
    assert topology.place(topology.find(0, 4, wish=prefer) or ()) == (("n0", (0, 1, 4, 5)),)


def test_an_unknown_level_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"unknown level 'row'; levels are \['node', 'rack'"):
        tree([2], RACKS).find(0, 1, wish=Wish(mode="require", level="row"))
    with pytest.raises(ValueError, match="unknown level"):
        tree([2], RACKS).find(0, 1, wish=Wish(mode="spread", level="row"))


# ------------------------------------------------------------------------- CPUs, memory, widths


def limited_cpus(cpus: list[float], memory: float = 100.0) -> Topology:
    topology = Topology()
    for number, there in enumerate(cpus):
        topology.add(Node(name=f"n{number}", kind="t4", devices=4, cpus=there, memory=memory))
    return topology


def test_cpus_and_memory_are_respected_for_each_device() -> None:
    topology = limited_cpus([4, 16, 16])
    assert counts(topology.find(0, 2, cpus=2)) == {0: 2}
    assert counts(topology.find(0, 2, cpus=4)) == {1: 2}
    assert counts(topology.find(0, 8, cpus=4)) == {1: 4, 2: 4}
    assert topology.find(0, 8, cpus=5) is None
    assert counts(topology.find(0, 7, cpus=5, relaxed=True)) is None
    assert counts(topology.find(0, 6, cpus=5, relaxed=True)) == {1: 3, 2: 3}
    assert topology.find(0, 1, memory=101) is None
    assert counts(topology.find(0, 2, memory=50)) == {0: 2}
    assert topology.find(0, 3, memory=50) is None


def test_cpus_are_taken_and_given_exactly() -> None:
    topology = limited_cpus([1.0])
    for _ in range(1000):
        topology.take(((0, 0b111),), cpus=0.1)
        assert topology.find(0, 1, cpus=0.8) is None
        topology.give(((0, 0b111),), cpus=0.1)
    assert topology.find(0, 1, cpus=1.0) == ((0, 0b1),)
    assert topology.cpus_taken == [0]


def test_nodes_of_different_width() -> None:
    topology = tree([8, 4, 4])
    assert counts(topology.find(0, 4)) == {1: 4}
    assert counts(topology.find(0, 6)) == {0: 6}
    assert counts(topology.find(0, 12)) == {0: 8, 1: 4}
    assert counts(topology.find(0, 16)) == {0: 8, 1: 4, 2: 4}
    topology.take(((0, 0b11),))
    assert topology.find(0, 8) is None
    assert counts(topology.find(0, 8, relaxed=True)) == {0: 6, 1: 2}
    assert counts(topology.find(0, 14)) == {0: 6, 1: 4, 2: 4}


# --------------------------------------------------------------------------- spans and bandwidth


def test_spans() -> None:
    topology = tree([8] * 8, BLOCKS, inner={"island": 4})
    assert topology.spans == ("island", "node", "rack", "block", "cluster")
    places = [((0, 0b11),), ((0, 0b11000),), ((0, 1), (1, 1)), ((0, 1), (2, 1)), ((0, 1), (7, 1))]
    assert [topology.span(place) for place in places] == [0, 1, 2, 3, 4]
    assert tree([8, 8]).span(((0, 1), (1, 1))) == 1


def test_bandwidth_of_a_level_without_one_is_that_of_the_level_below() -> None:
    topology = Topology(RACKS, bandwidth={"node": 450.0, "cluster": 25.0}, inner={"island": 4})
    assert [topology.bandwidth(span) for span in range(4)] == [float("inf"), 450.0, 450.0, 25.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": ("rack",)}, "must end in 'node'"),
        ({"levels": ("rack", "rack", "node")}, "'rack' is named twice"),
        ({"levels": ("cluster", "node")}, "'cluster' is named twice"),
        ({"inner": {"island": 0}}, "'island' needs 1 or more"),
        ({"bandwidth": {"row": 1.0}}, "unknown level 'row'"),
        ({"bandwidth": {"node": 0.0}}, "must be positive"),
        ({"bandwidth": {"node": float("nan")}}, "must be positive"),
    ],
)
def test_trees_that_are_none(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Topology(**arguments)  # type: ignore[arg-type]


def test_places_by_name() -> None:
    topology = tree([4, 4])
    place = (("n0", (0, 3)), ("n1", (1,)))
    assert topology.slots(place) == ((0, 0b1001), (1, 0b10))
    assert topology.place(topology.slots(place)) == place
    with pytest.raises(ValueError, match="unknown node n9"):
        topology.slots((("n9", (0,)),))

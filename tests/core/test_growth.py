"""A job grows where it is and keeps what is most compact; against full search on small trees."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.trees import (
    BLOCKS,
    FLAT,
    RACKS,
    counts,
    crowd,
    joined,
    leave_free,
    shapes,
    size_of,
    tree,
)

from bough.core.jobs import Slots
from bough.core.model import Wish
from bough.core.topology import Topology

# ----------------------------------------------------------------------------------- growing


def test_a_job_grows_on_its_own_node_close_to_what_it_holds() -> None:
    topology = tree([8, 8], inner={"island": 4})
    topology.take(((0, 0b00010001),))
    assert topology.find(0, 1, near=((0, 0b0001),)) == ((0, 0b0010),)
    assert topology.find(0, 3, near=((0, 0b00010000),)) == ((0, 0b11100000),)
    assert topology.find(0, 6, near=((0, 0b0001),)) == ((0, 0b11101110),)


def test_a_job_that_fits_one_node_does_not_grow_beyond_it() -> None:
    topology = tree([4, 4])
    leave_free(topology, ["0010", "1111"])
    near = ((0, 0b0001),)
    assert topology.find(0, 2, near=near) is None
    assert counts(topology.find(0, 2, near=near, relaxed=True)) == {0: 1, 1: 1}


def test_a_gang_grows_by_whole_nodes_in_the_lowest_domain_around_it() -> None:
    topology = tree([4] * 8, BLOCKS)
    near = ((2, 0b1111),)
    topology.take(((2, 0b1111),))
    assert counts(topology.find(0, 4, near=near)) == {3: 4}
    assert counts(topology.find(0, 8, near=near)) == {0: 4, 1: 4}
    topology.take(((3, 0b1),))
    assert counts(topology.find(0, 4, near=near)) == {0: 4}
    assert counts(topology.find(0, 3, near=near)) == {3: 3}
    inside = Wish(mode="require", level="rack")
    assert topology.find(0, 4, near=near, wish=inside) is None
    assert counts(topology.find(0, 3, near=near, wish=inside)) == {3: 3}


def test_a_grown_gang_is_on_no_more_nodes_than_a_fresh_one_would_be() -> None:
    topology = tree([4] * 4)
    leave_free(topology, ["0000", "0011", "0011", "1111"])
    near = ((0, 0b0011),)
    assert counts(topology.find(0, 4, near=near)) == {3: 4}
    assert topology.find(0, 5, near=near) is None  # seven fit two nodes, but not these
    near = ((0, 0b1111),)
    assert counts(topology.find(0, 2, near=near)) == {1: 2}
    assert counts(topology.find(0, 6, near=near)) == {1: 2, 3: 4}


def test_growth_inside_one_domain_of_a_node() -> None:
    topology = tree([8], inner={"island": 4})
    topology.take(((0, 0b1),))
    island = Wish(mode="require", level="island")
    assert topology.find(0, 3, near=((0, 0b1),), wish=island) == ((0, 0b1110),)
    assert topology.find(0, 4, near=((0, 0b1),), wish=island) is None
    assert topology.find(0, 1, near=((0, 0b10001),), wish=island) is None


@pytest.mark.parametrize("levels", [FLAT, RACKS, BLOCKS])
@pytest.mark.parametrize("seed", range(20))
def test_growth_against_full_search(levels: tuple[str, ...], seed: int) -> None:
    """Strictly: own nodes if they have enough, else new ones filled but for one, lowest span."""
    topology = tree([4] * 6, levels)
    crowd(topology, seed, share=0.6)
    drawn = random.Random(seed)
    held = [node for node in range(6) if topology.held_masks[node]]
    near = tuple((n, topology.held_masks[n]) for n in sorted(drawn.sample(held, min(2, len(held)))))
    if not near:
        return
    own = [node for node, _ in near]
    free = [mask.bit_count() for mask in topology.free_masks]
    at_home = sum(free[node] for node in own)
    for size in range(1, 25):
        found = topology.find(0, size, near=near)
        relaxed = topology.find(0, size, near=near, relaxed=True)
        assert (relaxed is not None) == (sum(free) >= size)
        rest = size - at_home
        others = [node for node in range(6) if node not in own]
        most = -(-(size_of(near) + size) // 4) - len(own)
        choices = [
            nodes
            for nodes in combinations(others, max(0, -(-rest // 4)))
            if rest > 0 and fits(sorted(free[n] for n in nodes), rest) and len(nodes) <= most
        ]
        assert (found is not None) == (rest <= 0 or bool(choices))
        if found is None:
            continue
        assert topology.is_free(found)
        assert size_of(found) == size
        grown = joined(near, found)
        if rest <= 0:
            assert {node for node, _ in found} <= set(own)
        else:
            spans = [topology.span(tuple((n, 1) for n in (*own, *nodes))) for nodes in choices]
            assert topology.span(grown) == min(spans)


def fits(free: list[int], size: int) -> bool:
    """Whole nodes and a part of one more (free counts ascending, nodes of 4)."""
    return free[0] >= size - 4 * (len(free) - 1) and all(f == 4 for f in free[1:])


# --------------------------------------------------------------------------------- shrinking


def test_what_is_kept_is_most_compact() -> None:
    topology = tree([4] * 8, BLOCKS)
    place: Slots = ((0, 0b1111), (1, 0b0011), (2, 0b1111), (4, 0b1000))
    assert topology.shrink(place, 11) is place
    assert counts(topology.shrink(place, 10)) == {0: 4, 1: 2, 2: 4}
    assert counts(topology.shrink(place, 8)) == {0: 4, 2: 4}
    assert counts(topology.shrink(place, 6)) == {0: 4, 1: 2}  # one rack, not two nodes of two
    assert counts(topology.shrink(place, 4)) == {0: 4}
    assert counts(topology.shrink(place, 2)) == {1: 2}  # leaves whole nodes behind
    assert counts(topology.shrink(place, 1)) == {4: 1}


def test_what_is_kept_is_aligned() -> None:
    topology = tree([8])
    assert topology.shrink(((0, 0b11110011),), 4) == ((0, 0b11110000),)
    assert topology.shrink(((0, 0b11110011),), 2) == ((0, 0b00000011),)
    assert topology.shrink(((0, 0b11111111),), 2) == ((0, 0b00000011),)


def nodes_and_span(topology: Topology, held: dict[int, int]) -> tuple[int, int]:
    return topology.span(tuple((n, 1) for n in held)) if len(held) > 1 else 0, len(held)


@settings(max_examples=80, deadline=None)
@given(shapes, st.integers(0, 10**6))
def test_shrinking_against_full_search(shape: dict[str, object], seed: int) -> None:
    """No part of a place has a lower span, or within that domain fewer nodes."""
    topology = tree(**shape)  # type: ignore[arg-type]
    drawn = random.Random(seed)
    chosen = sorted(drawn.sample(range(len(topology.nodes)), drawn.randint(1, 3)))
    place = tuple(
        (node, drawn.randint(1, (1 << topology.nodes[node].devices) - 1)) for node in chosen
    )
    for size in range(1, size_of(place)):
        kept = topology.shrink(place, size)
        assert size_of(kept) == size
        assert all(mask & ~dict(place)[node] == 0 for node, mask in kept)
        ways = [
            {node: n for node, n in zip(chosen, parts, strict=True) if n}
            for parts in product(*(range(mask.bit_count() + 1) for _, mask in place))
            if sum(parts) == size
        ]
        best = min(nodes_and_span(topology, way)[0] for way in ways)
        assert nodes_and_span(topology, counts(kept) or {})[0] == best
        fewest = min(len(way) for way in ways if nodes_and_span(topology, way)[0] == best)
        assert len(kept) == fewest

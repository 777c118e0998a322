"""Devices of one node are chosen in aligned blocks, so that neighbours stay together."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.core.blocks import Blocks, cut, numbers

EIGHT = Blocks(8)
ISLANDS = Blocks(8, (4,))
SIXES = Blocks(12, (6,))


def bits(text: str) -> int:
    """ "1100" is devices 0 and 1."""
    return sum(1 << i for i, bit in enumerate(text) if bit == "1")


@pytest.mark.parametrize(
    ("free", "size", "chosen"),
    [
        ("11111111", 1, "1"),
        ("11111111", 2, "11"),
        ("11111111", 3, "111"),
        ("11111111", 4, "1111"),
        ("01111111", 4, "00001111"),  # an aligned block, not the first four
        ("01111111", 2, "0011"),
        ("01111111", 1, "01"),  # the one whose neighbour is taken already
        ("11110110", 1, "000001"),  # … and whose block of four is emptier
        ("11110011", 2, "00000011"),  # the block of four stays whole
        ("11111110", 3, "0000111"),  # three fill the block that has just three
        ("01010101", 2, "0101"),  # no aligned pair: inside one block of four
        ("11100111", 4, "111001"),  # no block of four: the fullest, and the odd one of the other
        ("10000001", 2, "10000001"),
    ],
)
def test_choice(free: str, size: int, chosen: str) -> None:
    assert EIGHT.pick(bits(free), size) == bits(chosen)


def test_islands_that_are_no_power_of_two() -> None:
    assert SIXES.pick(bits("111111111111"), 6) == bits("111111")
    assert SIXES.pick(bits("111101111110"), 5) == bits("111101")  # not across the middle


def test_a_choice_lies_in_the_smallest_part_that_can_hold_it() -> None:
    """Exhaustive over all masks of eight devices: no other subset has a smaller aligned block."""

    def around(mask: int) -> int:
        return min(size for size in (1, 2, 4, 8) for p in cut(8, size) if mask & ~p == 0)

    for free in range(1, 256):
        there = numbers(free)
        for size in range(1, len(there) + 1):
            chosen = EIGHT.pick(free, size)
            assert chosen & ~free == 0
            assert chosen.bit_count() == size
            best = min(around(sum(1 << i for i in subset)) for subset in combinations(there, size))
            assert around(chosen) == best, (bin(free), size, bin(chosen))


def test_whole_blocks_survive_as_far_as_possible() -> None:
    """Exhaustive for one device: the largest aligned free block left is as large as can be."""

    def largest(mask: int) -> int:
        return max(
            (size for size in (1, 2, 4, 8) for p in cut(8, size) if mask & p == p), default=0
        )

    for free in range(1, 256):
        chosen = EIGHT.pick(free, 1)
        assert largest(free & ~chosen) == max(largest(free & ~(1 << i)) for i in numbers(free))


@given(st.integers(1, 255), st.integers(0, 255), st.data())
def test_growth_takes_free_devices_close_to_those_held(
    free: int, held: int, data: st.DataObject
) -> None:
    free &= ~held
    if not free:
        return
    size = data.draw(st.integers(1, free.bit_count()))
    added = EIGHT.grow(free, held, size)
    assert added & ~free == 0
    assert added.bit_count() == size
    for part_size in (1, 2, 4, 8):
        for part in cut(8, part_size):
            if held and held & ~part == 0 and (free & part).bit_count() >= size:
                assert added & ~part == 0, "a smaller part around what is held has enough"
                return


@pytest.mark.parametrize(
    ("free", "held", "size", "added"),
    [
        ("01111111", "1", 1, "01"),
        ("00111111", "11", 2, "0011"),
        ("01111111", "1", 3, "0111"),
        ("00001111", "1111", 4, "00001111"),
        ("01101111", "10010000", 2, "0110"),  # complete the pairs begun
    ],
)
def test_growth(free: str, held: str, size: int, added: str) -> None:
    assert EIGHT.grow(bits(free), bits(held), size) == bits(added)


def test_levels_inside_a_node() -> None:
    assert ISLANDS.level(bits("1")) == 0
    assert ISLANDS.level(bits("00001001")) == 0
    assert ISLANDS.level(bits("0001100")) == 1
    assert Blocks(12, (3, 6)).level(bits("000100000001")) == 2
    assert Blocks(12, (3, 6)).level(bits("000000100001")) == 1
    assert ISLANDS.within(bits("11100111"), 3, 0) == bits("111")
    assert ISLANDS.within(bits("11000011"), 3, 0) == 0
    assert ISLANDS.around(bits("000001"), 0) == bits("00001111")


def test_wide_nodes_and_full_memory() -> None:
    wide = Blocks(256)
    free = (1 << 256) - 1
    for _ in range(64):
        chosen = wide.pick(free, 4)
        assert chosen in cut(256, 4)
        free &= ~chosen
    assert free == 0

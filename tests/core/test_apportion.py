"""Whole devices are divided as if handed out one after another to whoever is furthest behind."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.apportion import apportion


@st.composite
def claims(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    count = draw(st.integers(1, 6))
    base = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    room = draw(st.lists(st.integers(0, 12), min_size=count, max_size=count))
    weight = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 8]), min_size=count, max_size=count))
    return base, [b + r for b, r in zip(base, room, strict=True)], weight


def one_by_one(
    devices: int,
    base: list[int],
    bound: list[int],
    weight: list[int],
    ahead: list[int] | None = None,
) -> list[int]:
    """The definition, in exact fractions."""
    got = list(base)
    base = [b - a for b, a in zip(base, ahead or [0] * len(base), strict=True)]
    for _ in range(devices):
        behind = [
            (w == 0, Fraction(2 * (g - b) + 1, 2 * w or 2), i)
            for i, (g, b, u, w) in enumerate(zip(got, base, bound, weight, strict=True))
            if g < u
        ]
        if not behind:
            break
        got[min(behind)[2]] += 1
    return got


@settings(max_examples=100, deadline=None)
@given(claims(), st.integers(0, 60))
def test_it_is_what_handing_out_one_by_one_gives(
    claim: tuple[list[int], list[int], list[int]], devices: int
) -> None:
    assert apportion(devices, *claim) == one_by_one(devices, *claim)


@settings(max_examples=100, deadline=None)
@given(claims(), st.integers(0, 60), st.data())
def test_what_counts_of_the_base_is_waited_out(
    claim: tuple[list[int], list[int], list[int]], devices: int, data: st.DataObject
) -> None:
    ahead = [data.draw(st.integers(0, b)) for b in claim[0]]
    assert apportion(devices, *claim, ahead) == one_by_one(devices, *claim, ahead)


@settings(max_examples=100, deadline=None)
@given(claims(), st.integers(0, 60))
def test_one_device_more_takes_none_from_anybody(
    claim: tuple[list[int], list[int], list[int]], devices: int
) -> None:
    fewer, more = apportion(devices, *claim), apportion(devices + 1, *claim)
    assert all(a <= b for a, b in zip(fewer, more, strict=True))


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 200_000),
    st.lists(st.tuples(st.integers(0, 10_000), st.floats(1e-6, 1e6)), min_size=1, max_size=40),
)
def test_everything_is_handed_out_that_somebody_can_take(
    devices: int, claimants: list[tuple[int, float]]
) -> None:
    bound, weight = [b for b, _ in claimants], [w for _, w in claimants]
    got = apportion(devices, [0] * len(bound), bound, weight)
    assert sum(got) == min(devices, sum(bound))
    assert all(g <= b for g, b in zip(got, bound, strict=True))


def test_nobody_to_give_to() -> None:
    assert apportion(5, [], [], []) == []


def test_nothing_to_give() -> None:
    assert apportion(-1, [2, 3], [5, 5], [1, 1]) == [2, 3]

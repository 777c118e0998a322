"""Gandiva: turns on too few devices, growth on idle ones."""

from __future__ import annotations

import pytest

from bough.core.model import INFINITY
from bough.core.policy import Plan, View
from bough.policies.gandiva import Gandiva
from bough.testing.views import Row, carried_out, granted, make_view


def rigid(*sizes: int) -> list[Row]:
    return [Row(sizes=(size,), speed=(1.0,)) for size in sizes]


def slices(view: View, count: int, policy: Gandiva | None = None) -> list[list[int]]:
    """What is granted in so many slices, one after another."""
    policy, found = policy or Gandiva(), []
    for _ in range(count):
        sizes = granted(policy, view)
        found.append(sizes.tolist())
        view = carried_out(view, sizes, after_seconds=60.0)
    return found


def test_jobs_take_turns() -> None:
    assert slices(make_view(4, rigid(2, 2, 2), now=60.0), 4) == [
        [2, 2, 0], [2, 0, 2], [0, 2, 2], [2, 2, 0],
    ]  # fmt: skip


def test_everybody_gets_an_equal_share_of_time() -> None:
    found = slices(make_view(3, rigid(1, 1, 1, 1, 1), now=60.0), 50)
    assert [sum(sizes) for sizes in zip(*found, strict=True)] == [30] * 5


def test_a_large_gang_gets_its_turn_among_small_ones() -> None:
    found = slices(make_view(4, rigid(1, 1, 1, 1, 4), now=60.0), 4)
    assert [sizes[4] for sizes in found] == [0, 4, 0, 4]


def test_who_began_in_this_slice_keeps_its_devices() -> None:
    began = Row(sizes=(4,), size=4, since=130.0)
    waits = Row(sizes=(4,), submitted=10.0)
    assert granted(Gandiva(), make_view(4, [began, waits], now=170.0)).tolist() == [4, 0]
    assert granted(Gandiva(), make_view(4, [began, waits], now=180.0)).tolist() == [0, 4]


def test_who_had_its_slice_makes_room_for_who_comes() -> None:
    served = Row(sizes=(4,), size=4, since=10.0)
    comes = Row(sizes=(4,), submitted=150.0, since=150.0)
    assert granted(Gandiva(), make_view(4, [served, comes], now=150.0)).tolist() == [0, 4]


def test_idle_devices_are_grown_onto_and_given_back() -> None:
    row = Row(sizes=(1, 2, 4))
    assert granted(Gandiva(), make_view(8, [row, row])).tolist() == [4, 4]
    grown = Row(sizes=(1, 2, 4), size=4)
    assert granted(Gandiva(), make_view(8, [grown, grown, row, row])).tolist() == [2, 2, 2, 2]


def test_wakes_for_the_next_slice_only_if_somebody_waits() -> None:
    def wake_at(*rows: Row) -> float:
        plan = Gandiva().plan(make_view(4, rows, now=70.0))
        assert isinstance(plan, Plan)
        return plan.wake_at

    assert wake_at(*rigid(2, 2, 2)) == 120.0
    assert wake_at(*rigid(2, 2)) == INFINITY


def test_a_body_that_wakes_late_loses_nothing() -> None:
    """A job started a little after the slice began has still had its slice at the next."""
    rows = [Row(sizes=(4,), size=4, since=60.4), Row(sizes=(4,), submitted=0.0, since=60.3)]
    assert granted(Gandiva(), make_view(4, rows, now=120.2)).tolist() == [0, 4]


def test_slices_are_positive() -> None:
    with pytest.raises(ValueError, match="slice_seconds must be positive"):
        Gandiva(slice_seconds=-1.0)

"""DRAGON: what both generations promise, and that the defects of the released ones are not here."""

from __future__ import annotations

import pytest
from tests.sim.replays import found, job, replay

from bough.core.model import INFINITY, Range, Role, Wish
from bough.core.policy import View
from bough.policies import find
from bough.policies.dragon import Dragon
from bough.testing.views import Row, as_plan, granted, make_view

FIRST, SECOND = Dragon(generation=1), Dragon()


def runs(size: int, *, since: float = 0.0, most: int = 4) -> Row:
    sizes = tuple(range(1, most + 1))
    return Row(sizes=sizes, speed=tuple(map(float, sizes)), size=size, since=since)


def waits(*sizes: int, since: float = 0.0) -> Row:
    return Row(sizes=sizes, speed=tuple(map(float, sizes)), since=since, submitted=since)


class TestStarts:
    def test_with_all_or_else_with_the_least(self) -> None:
        rows = [waits(2, 3, 6), waits(1, 2)]
        assert granted(SECOND, make_view(8, rows)).tolist() == [6, 2]
        assert granted(SECOND, make_view(5, rows)).tolist() == [2, 2]
        assert granted(SECOND, make_view(1, rows)).tolist() == [0, 1]

    def test_who_does_not_fit_is_passed_over(self) -> None:
        rows = [waits(4), waits(2)]
        for policy in (FIRST, SECOND):
            assert granted(policy, make_view(3, rows)).tolist() == [0, 2]


class TestMakesRoom:
    def test_only_for_who_has_waited_long_enough(self) -> None:
        for policy, patience in ((FIRST, 120.0), (SECOND, 30.0)):
            rows = [runs(4), waits(2, since=0.0)]
            before = make_view(4, rows, now=patience - 1)
            assert granted(policy, before).tolist() == [4, 0]
            assert as_plan(policy.plan(before)).wake_at == pytest.approx(patience)
            assert granted(policy, make_view(4, rows, now=patience)).tolist() == [2, 2]

    def test_in_the_order_of_starts_and_no_more_than_needed(self) -> None:
        rows = [runs(3, since=5.0), runs(3, since=2.0), waits(3, since=0.0)]
        assert granted(SECOND, make_view(6, rows, now=40.0)).tolist() == [2, 1, 3]

    def test_for_the_smallest_or_for_the_head_of_the_line(self) -> None:
        rows = [runs(4), waits(3, since=0.0), waits(1, since=1.0)]
        view = make_view(4, rows, now=200.0)
        assert granted(FIRST, view).tolist() == [3, 0, 1]
        assert granted(SECOND, view).tolist() == [1, 3, 0]

    def test_a_head_that_starves_holds_back_the_others(self) -> None:
        """In the second generation; what ends goes to it and not past it."""
        rows = [runs(4, most=4), waits(6, since=0.0), waits(1, since=170.0)]
        view = make_view(5, rows, now=180.0)
        assert granted(SECOND, view).tolist() == [4, 0, 0]
        assert granted(FIRST, view).tolist() == [4, 0, 1]

    def test_nobody_falls_below_the_least(self) -> None:
        rows = [Row(sizes=(3, 4), size=4), waits(2, since=0.0)]
        assert granted(SECOND, make_view(4, rows, now=1e3)).tolist() == [4, 0]


class TestGrows:
    def test_after_a_while_without_changes(self) -> None:
        for policy in (FIRST, SECOND):
            rows = [runs(2, since=100.0)]
            view = make_view(4, rows, now=159.0)
            assert granted(policy, view).tolist() == [2]
            assert as_plan(policy.plan(view)).wake_at == pytest.approx(160.0)
            assert granted(policy, make_view(4, rows, now=160.0)).tolist() == [4]

    def test_in_turn_or_one_after_another(self) -> None:
        rows = [runs(1), runs(1)]
        view = make_view(5, rows, now=100.0)
        assert granted(FIRST, view).tolist() == [3, 2]
        assert granted(SECOND, view).tolist() == [4, 1]

    def test_not_beyond_what_makes_a_job_faster(self) -> None:
        row = Row(sizes=(1, 2, 4), speed=(1.0, 2.0, 2.0), size=1)
        assert granted(SECOND, make_view(4, [row], now=100.0)).tolist() == [2]


class TestDefectsThatAreNotRepeated:
    def test_just_enough_to_spare_is_enough(self) -> None:
        """Generation 1 compares with >, so that one device more than needed must be to spare."""
        rows = [runs(3), waits(2, since=0.0)]
        assert granted(FIRST, make_view(3, rows, now=120.0)).tolist() == [1, 2]

    def test_who_was_made_room_for_starts_at_once(self) -> None:
        """Generation 1 starts it a pass later, when somebody else may take the room."""
        rows = [runs(4), waits(3, since=0.0), waits(3, since=119.0)]
        assert granted(FIRST, make_view(4, rows, now=120.0)).tolist() == [1, 3, 0]

    def test_room_in_pieces_is_no_room(self) -> None:
        """Generation 1 sums idle devices over nodes, and shrinks jobs for who cannot be placed."""
        rows = [
            job("a", 0.0, 1e4, 2, least=1, most=2),
            job("b", 1.0, 1e4, 2, least=1, most=2),
            job("whole", 2.0, 50.0, 2, topology=Wish(mode="require", level="node")),
        ]
        record = replay(rows, "2x2xv100", "dragon(generation=1)")
        ended = found(record)
        # a and b share no node; neither is asked for a device that would help nobody.
        assert [size for _, size in ended["a"].sizes] == [2, 0]
        assert [size for _, size in ended["b"].sizes] == [2, 0]

    def test_a_head_that_cannot_be_helped_does_not_end_growth(self) -> None:
        """Generation 2 counts every vain attempt as an action, so that nothing grows any more."""
        rows = [runs(1, since=0.0, most=2), waits(6, since=0.0)]
        assert granted(SECOND, make_view(5, rows, now=90.0)).tolist() == [2, 0]

    def test_who_cannot_grow_once_is_looked_at_again(self) -> None:
        """Generation 2 moves past a job for which a node had no room, for good."""
        first = Row(sizes=(1, 4), speed=(1.0, 4.0), size=1)
        assert granted(SECOND, make_view(4, [first, runs(1, most=2)], now=90.0)).tolist() == [1, 2]
        for policy in (FIRST, SECOND):
            assert granted(policy, make_view(6, [first, runs(1)], now=90.0))[0] in (1, 4)
            assert granted(policy, make_view(6, [first, runs(1)], now=90.0)).sum() >= 5

    def test_parameter_servers_are_part_of_the_gang(self) -> None:
        """Generation 2 makes room for the workers alone; then the whole may not start after all."""
        ps = Role(name="ps", count=Range(), devices=1)
        worker = Role(name="worker", count=Range(min=1, max=4), devices=1)
        rows = [
            job("runs", 0.0, 1000.0, 3, least=1, most=3, steps=(2,)),
            job("gang", 1.0, 50.0, 2, roles=(ps, worker)),
        ]
        ended = found(replay(rows, "3xv100", "dragon"))
        assert ended["runs"].sizes[1] == (pytest.approx(31.0), 1)
        assert ended["gang"].sizes[0] == (pytest.approx(31.0), 2)

    def test_a_place_in_part_is_held_by_nobody(self) -> None:
        """A gang that does not fit whole keeps no devices from others."""
        rows = [waits(4, since=0.0), waits(3, since=0.0)]
        assert granted(FIRST, make_view(3, rows, now=200.0)).tolist() == [0, 3]

    def test_devices_that_were_lost_are_made_up_for(self) -> None:
        view = make_view(3, [runs(2), runs(2, since=1.0)])
        assert granted(SECOND, view).sum() <= 3


def test_a_short_story() -> None:
    """Two fill the cluster; the third waits its 30 s; when the first ends, after 60 s they grow."""
    rows = [
        job("a", 0.0, 100.0, 2, least=1, most=2),
        job("b", 0.0, 400.0, 2, least=1, most=2),
        job("c", 10.0, 400.0, 2, least=1, most=2),
    ]
    ended = found(replay(rows, "4xv100", "dragon"))
    assert ended["c"].begin == pytest.approx(40.0)
    assert [size for _, size in ended["a"].sizes] == [2, 1, 0]
    # b and c had 2 and 1; a ends at 160 and c grows when nothing was changed for 60 s.
    assert ended["a"].end == pytest.approx(160.0, abs=1e-3)
    assert ended["c"].sizes[1] == (pytest.approx(160.0, abs=1e-3), 2)


@pytest.mark.parametrize("knobs", ["wait_seconds=-1", "idle_seconds=-5", "generation=3"])
def test_knobs_are_checked(knobs: str) -> None:
    with pytest.raises(ValueError, match=r"wait_seconds|generation"):
        find(f"dragon:{knobs}")


def test_nothing_to_wait_for() -> None:
    view: View = make_view(4, [runs(4)], now=500.0)
    assert as_plan(SECOND.plan(view)).wake_at == INFINITY

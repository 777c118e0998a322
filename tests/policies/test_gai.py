"""GAI, our reconstruction: classes and dimensions, degradation, least loss, the short board."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from tests.sim.replays import found, job, replay

from bough.core.cluster import parse_short
from bough.core.links import reach
from bough.core.model import INFINITY
from bough.core.policy import Links
from bough.core.speedup import Curve
from bough.core.yielding import yielding
from bough.policies import find
from bough.policies.gai import Gai
from bough.sim.engine import Engine, simulate
from bough.sim.options import Options, Tools
from bough.sim.trace import Trace
from bough.testing.views import Row, as_plan, granted, make_view

UP_TO_8 = (1, 2, 4, 8)


class TestPriority:
    def test_classes_go_before_everything_else(self) -> None:
        old = Row(sizes=(4,), submitted=0.0, weight=100.0, deadline=1e5, left=1e5)
        high = Row(sizes=(4,), submitted=9e4, priority=1)
        assert granted(Gai(), make_view(4, [old, high], now=9e4)).tolist() == [0, 4]

    def test_dimensions_are_worth_seconds_of_waiting(self) -> None:
        """Twice the weight is worth an hour of waiting, and no more."""
        heavy = Row(sizes=(4,), submitted=5000.0, weight=2.0)
        for waited, wanted in ((1390.0, [4, 0]), (1410.0, [0, 4])):
            other = Row(sizes=(4,), submitted=waited)
            rows = [other, heavy]
            assert granted(Gai(), make_view(4, rows, now=6000.0)).tolist() == wanted

    def test_a_deadline_without_slack_is_urgent(self) -> None:
        now, due = 5000.0, 9000.0
        tight = Row(sizes=(4,), speed=(1.0,), submitted=1000.0, deadline=due, left=4000.0)
        loose = replace(tight, left=0.0)
        plain = Row(sizes=(4,), submitted=0.0)
        for urgent, wanted in ((tight, [0, 4]), (loose, [4, 0])):
            view = make_view(4, [plain, urgent], now=now)
            policy = Gai(deadline_seconds=1500.0)
            assert granted(policy, view).tolist() == wanted

    def test_nobody_of_the_same_class_is_pushed_aside(self) -> None:
        runs = Row(sizes=(4,), size=4, submitted=8e3, since=8e3)
        waits = Row(sizes=(4,), submitted=0.0, weight=50.0)
        assert granted(Gai(), make_view(4, [runs, waits], now=9e3)).tolist() == [4, 0]


class TestDegrades:
    def test_before_it_waits(self) -> None:
        rows = [Row(sizes=(3,), size=3), Row(sizes=UP_TO_8)]
        assert granted(Gai(), make_view(8, rows)).tolist() == [3, 4]

    def test_and_goes_up_again_after_a_while(self) -> None:
        low = Row(sizes=UP_TO_8, size=2, since=100.0)
        before = make_view(8, [low], now=399.0)
        assert granted(Gai(), before).tolist() == [2]
        assert as_plan(Gai().plan(before)).wake_at == 400.0
        assert granted(Gai(), make_view(8, [low], now=400.0)).tolist() == [8]


class TestPreempts:
    def test_shrinking_costs_less_than_stopping(self) -> None:
        rows = [Row(sizes=(4,), size=4), Row(sizes=UP_TO_8, size=4), Row(sizes=(3,), priority=1)]
        assert granted(Gai(), make_view(8, rows)).tolist() == [4, 1, 3]

    def test_only_what_surely_suffices(self) -> None:
        """Stopping the lower one would not make room for the higher: it is left alone."""
        rows = [
            Row(sizes=(4,), size=4, priority=2),
            Row(sizes=(2,), size=2),
            Row(sizes=(4,), priority=1),
        ]
        assert granted(Gai(), make_view(6, rows)).tolist() == [4, 2, 0]

    def test_the_best_size_for_a_higher_class(self) -> None:
        rows = [Row(sizes=UP_TO_8, size=8), Row(sizes=UP_TO_8, priority=1)]
        assert granted(Gai(), make_view(8, rows)).tolist() == [0, 8]

    def test_the_least_loss_of_all_ways(self) -> None:
        """Stopping the 2 loses 120 s of devices, shrinking the 8 by half 40, the other 4s 240."""
        rows = [Row(sizes=(2,), size=2), Row(sizes=(4,), size=4), Row(sizes=(4, 8), size=8)]
        view = make_view(14, rows)
        held = np.array([2, 4, 8])
        every = np.arange(3)
        assert list(yielding(view, every, held, 2, (60.0, 5.0))) == [(2, 4)]
        assert list(yielding(view, every, held, 5, (60.0, 5.0))) == [(0, 0), (2, 4)]
        assert list(yielding(view, every, held, 20, (60.0, 5.0))) == []


LINKS = Links(("node", "rack", "cluster"), np.array([8e9, 1e9, 1e8]), np.array([4, 8, 16]),
              np.array([1e9, 0.0]), np.array([4.0, 4.0]))  # fmt: skip


class TestShortBoard:
    def test_how_far_a_gang_may_be_spread(self) -> None:
        """1 GB in each step that takes 4 s on one device: 2 devices compute 2 s and send 1 GB.

        That is 1/8 s within a node, 1 s within a rack, 10 s beyond. 8 compute 1/2 s and send for
        1.75 s over a rack.
        """
        sizes = np.array([UP_TO_8, UP_TO_8])
        far = reach(LINKS, sizes, 1.0)
        assert far.tolist() == [[2, 1, 0, 0], [2, 2, 2, 2]]
        assert reach(LINKS, np.array([[1, 2, 4, 8], [1, 2, 4, 8]]), 20.0)[0].tolist() == [
            2,
            2,
            2,
            1,
        ]

    def test_sizes_behind_slow_links_are_ruled_out(self) -> None:
        """8 would have to be spread over a rack; a node has 4. Who sends nothing is free."""
        rows = [Row(sizes=UP_TO_8), Row(sizes=UP_TO_8)]
        view = replace(make_view(16, rows), links=LINKS)
        plan = as_plan(Gai().plan(view))
        assert plan.sizes.tolist() == [4, 8]
        assert plan.within is not None
        assert plan.within.tolist() == [0, -1]

    def test_the_least_is_never_ruled_out(self) -> None:
        view = replace(make_view(16, [Row(sizes=(8,)), Row()]), links=LINKS)
        plan = as_plan(Gai().plan(view))
        assert plan.sizes.tolist() == [8, 1]
        assert plan.within is not None
        assert plan.within.tolist()[0] == -1

    @pytest.mark.parametrize(("slow", "nodes"), [(1e6, 1), (1e12, 2)])
    def test_a_gang_is_kept_off_slow_links(self, slow: float, nodes: int) -> None:
        """Two nodes of 4 with 2 idle each: over a fast link it starts at once, else it waits."""
        cluster = parse_short("2x4xv100")
        bandwidth = {"node": 1e11, "cluster": slow}
        cluster = msgspec.structs.replace(cluster, bandwidth=bandwidth)
        own = Curve(sizes=(1, 2, 4), speed=(1.0, 2.0, 4.0))
        rows = [
            job("a", 0.0, 1000.0, 2), job("fills", 0.0, 10.0, 2), job("b", 1.0, 1000.0, 2),
            job("gang", 20.0, 50.0, 4, model="vgg16", batch=64, curve=own),
        ]  # fmt: skip
        options = Options(locality_seconds=0.0)
        engine = Engine(Trace(name="by hand", jobs=tuple(rows)), cluster, Gai(), options, Tools())
        begin = found(engine.run())["gang"].begin
        assert (begin == 20.0) == (nodes == 2)
        assert begin >= 1000.0 or nodes == 2


def test_a_higher_class_lives_shorter() -> None:
    """The aim of the paper: on a full cluster the life of high classes is what they run."""
    rows = [job(f"low{i}", float(i), 500.0, 4) for i in range(10)]
    rows += [job(f"high{i}", 1000.0 * i + 50.0, 100.0, 4, priority=1) for i in range(4)]
    ended = found(replay(sorted(rows, key=lambda row: row.submit), "8xv100", "gai"))
    assert [ended[f"high{i}"].end - ended[f"high{i}"].submit for i in range(4)] == [100.0] * 4
    assert {one.state for one in ended.values()} == {"done"}


def test_without_bandwidths_nothing_is_held_back() -> None:
    """A tree of which nothing is told."""
    rows = [job("a", 0.0, 10.0, 8, model="vgg16", batch=64)]
    record = simulate(Trace(name="by hand", jobs=tuple(rows)), parse_short("2x4xv100"), Gai())
    assert record.jobs[0].begin == 0.0


@pytest.mark.parametrize("knobs", ["board=0", "promote_seconds=0", "restart_seconds=-1"])
def test_knobs_are_checked(knobs: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        find(f"gai:{knobs}")


def test_nothing_to_wait_for() -> None:
    assert as_plan(Gai().plan(make_view(8, [Row(sizes=UP_TO_8, size=8)]))).wake_at == INFINITY


def test_among_very_many_the_cheapest_still_yield() -> None:
    """Two hundred that would have to stop, and one that can shrink."""
    rows = [Row(sizes=(4,), size=4)] * 200 + [Row(sizes=(4, 8), size=8)]
    view, held = make_view(808, rows), np.array([4] * 200 + [8])
    assert list(yielding(view, np.arange(201), held, 4, (60.0, 5.0))) == [(200, 4)]
    freed = yielding(view, np.arange(201), held, 300, (60.0, 5.0))
    assert sum(int(held[row]) - kept for row, kept in freed) >= 300

"""Lucid: trials for newcomers, turns by what is expected, nothing preempted without need."""

from __future__ import annotations

import pytest
from tests.sim.replays import found, job, replay

from bough.policies import find
from bough.policies.lucid import Lucid, expected
from bough.testing.views import Row, as_plan, granted, make_view

HALF = Lucid(trial_share=0.5)


def tried(size: int, guess: float, *, runs: bool = False, ran: float = 500.0) -> Row:
    held = size if runs else 0
    return Row(sizes=(size,), size=held, speed=(float(size),), guess=guess, ran=ran)


class TestTrials:
    def test_newcomers_are_tried_first_the_smallest_first(self) -> None:
        """2 of 4 devices are for trials; the rest goes to who waits for its turn."""
        rows = [tried(2, 100.0), Row(sizes=(2,)), Row(sizes=(1,)), Row(sizes=(1,))]
        assert granted(HALF, make_view(4, rows)).tolist() == [2, 0, 1, 1]

    def test_large_jobs_are_not_tried(self) -> None:
        rows = [Row(sizes=(4,), guess=1e6), tried(4, 10.0)]
        assert granted(Lucid(trial_devices=2, trial_share=1.0), make_view(4, rows)).tolist() == [
            0, 4,
        ]  # fmt: skip

    def test_who_outlives_its_trial_makes_room_for_the_next(self) -> None:
        """But not before, and only if somebody is to be tried."""
        for now, wanted in ((150.0, [1, 0]), (200.0, [0, 1])):
            trial = Row(size=1, since=0.0)
            view = make_view(1, [trial, Row(submitted=1.0)], now=now)
            assert granted(Lucid(trial_share=1.0), view).tolist() == wanted
        alone = make_view(1, [Row(size=1), tried(1, 1.0)], now=200.0)
        assert granted(Lucid(trial_share=1.0), alone).tolist() == [1, 0]

    def test_wakes_when_a_trial_ends(self) -> None:
        view = make_view(1, [Row(size=1, since=30.0), Row()], now=40.0)
        assert as_plan(Lucid().plan(view)).wake_at == 230.0

    def test_idle_devices_are_used_for_either(self) -> None:
        assert granted(Lucid(trial_share=0.0), make_view(4, [Row(), Row()])).tolist() == [1, 1]
        assert granted(HALF, make_view(4, [tried(2, 1.0), tried(2, 1.0)])).tolist() == [2, 2]


class TestTurns:
    def test_the_least_device_time_expected_goes_next(self) -> None:
        rows = [tried(2, 1e5), tried(2, 1e3), tried(2, 1e4)]
        assert granted(Lucid(), make_view(2, rows)).tolist() == [0, 2, 0]

    def test_what_runs_goes_on(self) -> None:
        rows = [tried(2, 1e9, runs=True), tried(2, 1.0)]
        assert granted(Lucid(), make_view(2, rows)).tolist() == [2, 0]

    def test_estimates_are_not_looked_at(self) -> None:
        rows = [Row(left=1.0, guess=900.0), Row(left=9e9, guess=30.0)]
        assert expected(make_view(1, rows)).tolist() == [900.0, 30.0]


def test_short_ones_need_not_wait_for_long_ones() -> None:
    """Ten jobs of a minute among jobs of hours: under Lucid they end in their trials."""
    long = [job(f"long{i}", float(i), 20_000.0, 1) for i in range(8)]
    short = [job(f"short{i}", 100.0 + i, 60.0, 1) for i in range(10)]
    ended = found(replay([*long, *short], "4xv100", "lucid(trial_share=0.25)"))
    by_qssf = found(replay([*long, *short], "4xv100", "qssf"))
    assert max(ended[f"short{i}"].end for i in range(10)) == 1603.0
    assert min(by_qssf[f"short{i}"].end for i in range(10)) > 20_000.0


@pytest.mark.parametrize("knobs", ["trial_seconds=-1", "trial_share=2"])
def test_knobs_are_checked(knobs: str) -> None:
    with pytest.raises(ValueError, match="trial_"):
        find(f"lucid:{knobs}")

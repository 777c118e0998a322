"""Shockwave: rounds of a window shared out, against all ways to do it; fair, and no stragglers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.replays import job, replay

from bough.core.window import Window, share_window
from bough.policies import find
from bough.policies.shockwave import Shockwave, slowdowns
from bough.testing.views import Row, granted, make_view


def window(rounds: int, devices: int, *jobs: tuple[int, float, float]) -> Window:
    """Of each job: devices, rounds it still needs, rounds it takes in all."""
    size, need, total = (np.array(column, float) for column in zip(*jobs, strict=True))
    return Window(
        rounds, devices, size.astype(np.int64), 1.0 - need / total, need, 1.0 / total,
        np.ones(len(jobs)),
    )  # fmt: skip


class TestWindow:
    def test_worked_example(self) -> None:
        """Without a price of the end, the one whose progress grows fastest has its rounds first.

        Both start from nothing on one device: a round is a half of the first's work and a tenth
        of the other's, and up to a fifth of it progress is worth far more than beyond.
        """
        counts = share_window(window(3, 1, (1, 2.0, 2.0), (1, 10.0, 10.0)), np.zeros(2, int), 0.0)
        assert counts.tolist() == [1, 2]

    def test_the_longest_is_not_left_behind(self) -> None:
        jobs = [(1, 2.0, 2.0), (1, 10.0, 10.0)]
        assert share_window(window(3, 1, *jobs), np.zeros(2, int), 1e6).tolist() == [0, 3]

    def test_what_must_be_is_taken_first(self) -> None:
        jobs = [(1, 2.0, 2.0), (1, 10.0, 10.0)]
        assert share_window(window(3, 1, *jobs), np.array([2, 0]), 1e6).tolist() == [2, 1]

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(
            st.tuples(st.sampled_from([1, 2, 4]), st.integers(1, 6), st.integers(0, 6)),
            min_size=1, max_size=4,
        ),
        st.integers(1, 3),
        st.sampled_from([0.0, 0.05, 1.0, 50.0]),
    )  # fmt: skip
    def test_close_to_the_best_of_all(
        self, asked: list[tuple[int, int, int]], rounds: int, behind: float
    ) -> None:
        """No further from it than what the last round that did not fit would have added."""
        made = window(rounds, 4, *((g, float(n), float(n + d)) for g, n, d in asked))
        least = np.zeros(len(asked), np.int64)
        worth = made.worth()

        def total(counts: tuple[int, ...]) -> float:
            after = max((n - c for (_, n, _), c in zip(asked, counts, strict=True)), default=0)
            gained = sum(float(worth[i, c]) for i, c in enumerate(counts))
            return gained - behind * max(after, 0)

        room = rounds * 4
        every = itertools.product(*(range(min(rounds, n) + 1) for _, n, _ in asked))
        fitting = [c for c in every if sum(a[0] * x for a, x in zip(asked, c, strict=True)) <= room]
        found = tuple(share_window(made, least, behind).tolist())
        assert found in fitting
        slack = float(np.diff(worth, axis=1).max(initial=0.0)) + behind
        assert total(found) >= max(map(total, fitting)) - slack - 1e-9

    def test_gangs_of_one_size_are_shared_exactly(self) -> None:
        asked = [(2, 3.0, 3.0), (2, 2.0, 8.0), (2, 4.0, 5.0)]
        made = window(3, 4, *asked)
        counts, worth = made.share(np.zeros(3, np.int64))
        every = [
            sum(float(made.worth()[i, c]) for i, c in enumerate(counts))
            for counts in itertools.product(range(4), range(3), range(4))
            if sum(counts) <= 6
        ]
        assert worth == pytest.approx(max(every))
        assert counts.sum() == 6


class TestShockwave:
    def test_the_longest_runs_throughout(self) -> None:
        """Ten short ones share the other device; the long one would otherwise end last by far."""
        rows = [Row(left=240.0)] * 10 + [Row(left=1e5)]
        for now in (0.0, 120.0, 240.0):
            assert granted(Shockwave(), make_view(2, rows, now=now))[10] == 1

    def test_who_ends_too_late_counts_most(self) -> None:
        """Of two alike, the one that came long ago and got nothing goes first."""
        rows = [Row(left=6000.0, submitted=0.0), Row(left=6000.0, submitted=6000.0)]
        assert granted(Shockwave(), make_view(1, rows, now=6000.0)).tolist() == [1, 0]

    def test_rounds_are_kept(self) -> None:
        rows = [Row(left=6000.0, submitted=6000.0, size=1, since=6000.0)]
        rows = [*rows, Row(left=10.0, submitted=0.0)]
        assert granted(Shockwave(), make_view(1, rows, now=6060.0)).tolist() == [1, 0]

    def test_slowdown_is_the_crowd_since_one_came(self) -> None:
        """Alone for 100 s, one of four on one device for 300 s."""
        rows = [Row(submitted=0.0)] + [Row(submitted=100.0)] * 3
        view = make_view(1, rows, now=400.0)
        found = slowdowns(view, view.now - view.jobs.submitted)
        assert found.tolist() == pytest.approx([(100 + 4 * 300) / 400, 4.0, 4.0, 4.0])

    def test_equal_jobs_end_about_equally_late(self) -> None:
        rows = [job(f"{i}", 0.0, 6000.0, 4) for i in range(3)]
        ends = sorted(one.end for one in replay(rows, policy="shockwave(round_seconds=60)").jobs)
        assert ends[0] >= 16_000.0
        assert ends[-1] == 18_000.0

    def test_ends_earlier_and_fairer_than_least_service_first(self) -> None:
        """One long job among many short ones, the weakness of plain fairness."""
        rows = [job("long", 0.0, 20_000.0, 1)]
        rows += [job(f"{i}", 10.0 * i, 1000.0, 1) for i in range(60)]
        by = {
            policy: max(one.end for one in replay(rows, policy=policy).jobs)
            for policy in ("shockwave", "las(limits=[100])")
        }
        assert by["shockwave"] < 21_000.0 < by["las(limits=[100])"]

    @pytest.mark.parametrize(
        "knobs", ["round_seconds=0", "window_rounds=0", "makespan_weight=-1", "latest=0"]
    )
    def test_knobs_are_checked(self, knobs: str) -> None:
        with pytest.raises(ValueError, match=r"round_seconds|window_rounds|makespan_weight"):
            find(f"shockwave:{knobs}")


def test_large_ratios_do_not_overflow() -> None:
    rows = [Row(left=1e-3, submitted=0.0), Row(left=1e6, submitted=0.0)]
    assert math.isfinite(granted(Shockwave(power=100.0), make_view(1, rows, now=1e9)).sum())

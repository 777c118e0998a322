"""Backfilling: who may slip in front of the first that waits, and who may not."""

from __future__ import annotations

from bough.core.model import INFINITY
from bough.policies.backfill import Backfill
from bough.testing.views import Row, granted, make_view


def job(size: int, left: float = INFINITY, running: bool = False, max_run: float = INFINITY) -> Row:
    """A job at one unit of work a second."""
    held = size if running else 0
    return Row(sizes=(size,), speed=(1.0,), size=held, left=left, max_run=max_run)


def planned(*rows: Row, devices: int = 8, policy: Backfill | None = None) -> list[int]:
    return granted(policy or Backfill(), make_view(devices, rows)).tolist()


def test_who_ends_before_the_head_starts_slips_in() -> None:
    assert planned(job(6, 100.0, running=True), job(8), job(2, 100.0)) == [6, 0, 2]


def test_who_would_delay_the_head_does_not() -> None:
    assert planned(job(6, 100.0, running=True), job(8), job(2, 101.0)) == [6, 0, 0]


def test_what_the_head_leaves_over_may_be_held_for_longer() -> None:
    assert planned(job(6, 100.0, running=True), job(7), job(1, 1e9), job(1, 1e9)) == [6, 0, 1, 0]


def test_the_head_starts_when_enough_have_ended() -> None:
    running = [job(3, 100.0, running=True), job(3, 200.0, running=True)]
    assert planned(*running, job(5), job(2, 150.0)) == [3, 3, 0, 0]
    assert planned(*running, job(6), job(2, 150.0)) == [3, 3, 0, 2]


def test_all_that_end_at_once_count() -> None:
    running = [job(3, 100.0, running=True), job(3, 100.0, running=True)]
    assert planned(*running, job(5), job(2, 1e9)) == [3, 3, 0, 2]


def test_unknown_run_times_fill_only_what_the_head_leaves_over() -> None:
    assert planned(job(6, 100.0, running=True), job(8), job(2)) == [6, 0, 0]
    assert planned(job(6, 100.0, running=True), job(6), job(2)) == [6, 0, 2]


def test_nobody_passes_a_head_whose_start_is_unknown() -> None:
    assert planned(job(6, running=True), job(8), job(1, 1.0)) == [6, 0, 0]


def test_the_longest_run_time_is_an_estimate() -> None:
    assert planned(job(6, running=True, max_run=100.0), job(8), job(2, max_run=99.0)) == [6, 0, 2]


def test_an_estimate_can_be_assumed() -> None:
    policy = Backfill(unknown_seconds=3600.0)
    rows = (job(6, running=True), job(8), job(2, 3000.0), job(1, 4000.0))
    assert planned(*rows, policy=policy) == [6, 0, 2, 0]


def test_an_estimate_that_was_passed_says_nothing() -> None:
    rows = [job(6, 100.0, running=True), job(8), job(2, 1.0)]
    before = make_view(8, rows, now=50.0)
    assert granted(Backfill(), before).tolist() == [6, 0, 2]
    assert Backfill().plan(before).wake_at == 101.0
    assert granted(Backfill(), make_view(8, rows, now=102.0)).tolist() == [6, 0, 0]


def test_several_slip_in_until_it_is_full() -> None:
    line = [job(8), job(3, 50.0), job(2, 90.0), job(1, 10.0), job(1, 10.0)]
    assert planned(job(4, 100.0, running=True), *line) == [4, 0, 3, 0, 1, 0]

"""Decisions at rounds only, and policies that ask to be woken: no round is taken in vain."""

from __future__ import annotations

import math

import pytest
from tests.sim.replays import found, job, replay

from bough.core import model as m
from bough.policies import builtin


def test_in_rounds_jobs_start_at_their_multiples_only() -> None:
    jobs = [job("a", 5, 100, 4), job("b", 31, 50, 4)]
    ran = found(replay(jobs, round_seconds=60))
    # The first ends, truly, at 160 s; the second starts with the next round.
    assert [(one.begin, one.end) for one in ran.values()] == [(60, 160), (180, 230)]
    # Until a round is there its absence is the cause, and then that others have the devices.
    assert [one.waits for one in ran.values()] == [{"round": 55}, {"round": 49, "busy": 100}]


def test_in_rounds_what_no_plan_would_end_is_not_waiting_for_a_round() -> None:
    jobs = [job("a", 5, 100), job("b", 5, 100, after=(m.After(job="a"),)), job("c", 30, 100)]
    ran = found(replay(jobs, round_seconds=60))
    assert ran["b"].waits == {"dependency": 155, "round": 20}


@pytest.mark.parametrize("begin", [0.0, 1.7e9])
@pytest.mark.parametrize("every", [0.1, 0.3, 0.7, 1 / 3, 7.3, 3600.0])
def test_rounds_may_be_of_any_length(every: float, begin: float) -> None:
    jobs = [job("a", begin + 0.05, 100), job("b", begin + 1.234, 100, 4)]
    record = replay(jobs, round_seconds=every)
    a, b = record.jobs
    assert 0 <= a.begin - a.submit < every + 1e-3
    assert 0 <= b.begin - a.end < every + 1e-3
    assert record.events < 50


#: Knobs of policies that weigh anew from time to time who has what not all can have.
TURNS = ("round_seconds", "interval_seconds", "slice_seconds", "lease_seconds")


def period(policy: str) -> float:
    """How often the policy wants to be asked though nothing happened."""
    chosen = builtin()[policy]()
    return min(getattr(chosen, knob, math.inf) for knob in TURNS)


@pytest.mark.parametrize("policy", sorted(builtin()))
def test_rounds_in_which_nothing_can_change_are_not_taken(policy: str) -> None:
    jobs = [job("long", 0, 2e5), job("other", 10, 1e5, 4, least=2, most=4)]
    record = replay(jobs, policy=policy, round_seconds=60)
    assert all(one.state == "done" for one in record.jobs)
    # A round that changes something takes another: who leaves must have left.
    assert record.events < 100 + 2 * record.ended / period(policy)


@pytest.mark.parametrize("policy", sorted(builtin()))
def test_whoever_has_all_it_can_use_is_not_asked_about_again(policy: str) -> None:
    record = replay([job("long", 0, 1e6)], policy=policy, round_seconds=60)
    assert record.jobs[0].state == "done"
    assert record.events < 20

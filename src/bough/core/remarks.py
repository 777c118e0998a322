"""What a plan says besides sizes: why some wait, clocks, ranks, how far apart devices may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bough.core.jobs import Jobs
from bough.core.policy import Floats, Ints, Plan
from bough.core.reason import NUMBER, POLICY
from bough.core.state import State

if TYPE_CHECKING:
    from bough.core.planning import Draft


class BadPlan(ValueError):
    """The policy broke its contract."""


def note(state: State, result: Draft, plan: Plan, rows: Ints | None, jobs: Jobs) -> None:
    """All of it, if it is sound; `rows` are those of the table that the plan is about."""
    if plan.reasons:
        note_reasons(result, plan, rows, jobs)
    if plan.places:
        note_places(result, plan, rows, jobs)
    if plan.clocks is not None:
        note_clocks(result, plan.clocks, rows, jobs)
    if plan.rank is not None:
        note_ranks(state, result, plan.rank, rows, jobs)
    if plan.within is not None:
        note_reach(state, plan.within, rows, jobs)


def note_reasons(result: Draft, plan: Plan, rows: Ints | None, jobs: Jobs) -> None:
    """What the policy says of jobs that it lets wait."""
    for row, code in plan.reasons.items():
        if not 0 <= row < jobs.n:
            raise BadPlan(f"a reason for row {row} of {jobs.n} jobs")
        result.causes[row if rows is None else int(rows[row])] = NUMBER.get(code, POLICY)


def note_places(result: Draft, plan: Plan, rows: Ints | None, jobs: Jobs) -> None:
    """Where the policy would have jobs go."""
    for row, place in plan.places.items():
        if not 0 <= row < jobs.n:
            raise BadPlan(f"a place for row {row} of {jobs.n} jobs")
        result.places[row if rows is None else int(rows[row])] = tuple(sorted(place))


def note_clocks(result: Draft, clocks: Floats, rows: Ints | None, jobs: Jobs) -> None:
    """The clocks that the policy gives to these rows."""
    if len(clocks) != jobs.n:
        raise BadPlan(f"{len(clocks)} clocks for {jobs.n} jobs")
    if not ((clocks > 0) & (clocks <= 1)).all():
        raise BadPlan("a clock that is not above 0 and at most 1")
    for i, clock in enumerate(clocks.tolist()):
        row = i if rows is None else int(rows[i])
        result.clocks.pop(row, None)
        if clock != 1.0:
            result.clocks[row] = clock


def note_ranks(state: State, result: Draft, rank: Ints, rows: Ints | None, jobs: Jobs) -> None:
    """Whose places the policy lets others take."""
    if len(rank) != jobs.n:
        raise BadPlan(f"{len(rank)} ranks for {jobs.n} jobs")
    if result.ranks is None:
        result.ranks = state.table.priority.copy()
    result.ranks[slice(None) if rows is None else rows] = rank


def note_reach(state: State, within: Ints, rows: Ints | None, jobs: Jobs) -> None:
    """How far apart the policy lets the devices of each job be."""
    spans = state.topology.spans
    if len(within) != jobs.n:
        raise BadPlan(f"{len(within)} levels for {jobs.n} jobs")
    if len(within) and not -1 <= int(within.min()) <= int(within.max()) < len(spans):
        raise BadPlan(f"a level that is not among the {len(spans)} of the tree")
    every = np.arange(jobs.n) if rows is None else rows
    for row, level in zip(every.tolist(), within.tolist(), strict=True):
        state.table.items[row].stay_within("" if level < 0 else spans[level])

"""Keeps promises when beliefs are only nearly right: margins that give way, and a little ahead."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from bough.core.alone import Alone, alone, asks_of, together
from bough.core.filling import RULES, Share, fill, promised_rows, rush
from bough.core.policy import Floats, Ints, View
from bough.core.promises import Kept, devices_for, promises
from bough.core.share import fill_in_order, in_order

#: What is tried of a margin that cannot be had as a whole.
PARTS: Final = (0.5, 0.25, 0.0)


def kept_with(view: View, margin: Floats) -> Kept:
    """The plan that keeps all promises with as much of the margins as all of them can have.

    A margin that others need to be in time is none: it is cut until no more are late than would
    be without it. Those that are late all the same take what the others leave over.
    """
    rows = promised_rows(view)
    plans = alone(view.classes, asks_of(view, rows, margin[rows]), view.now, RULES)
    if plans is not None and together(plans, devices_for(view, rows)):
        return Kept(rows, plans.now(view.now), plans)
    tried = _tried(view, margin)
    if tried.late and margin.any():
        least = _tried(view, 0.0 * margin).late
        for part in PARTS:
            if tried.late == least:
                break
            tried = _tried(view, part * margin)
    return Kept(rows, np.array([share.now for share in tried.shares], np.int64), tried.shares)


class _Tried(NamedTuple):
    """A plan, and how many are late by it."""

    shares: list[Share]
    late: int


def _tried(view: View, margin: Floats) -> _Tried:
    profile, needs, _ = promises(view, margin)
    shares = fill(profile, needs)
    full = [
        rush(profile, need.levels, need.left) if share is None else share
        for need, share in zip(needs, shares, strict=True)
    ]
    return _Tried(full, shares.count(None))


def needed_now(view: View, plan: Kept, ahead_seconds: Floats) -> Ints:
    """Devices each row must have now: what it holds and may not lose, or was promised.

    Who needs more within `ahead_seconds` (of each row with a promise) has it now if it is there.
    """
    jobs = view.jobs
    needed: Ints = jobs.lo * (jobs.must != 0)
    some = plan.rows[plan.now > 0]
    needed[some] = np.clip(plan.now[plan.now > 0], jobs.lo[some], jobs.hi[some])
    free = view.devices - int(needed.sum())
    if free < 0:
        urgent = in_order(view, jobs.guaranteed == 0, jobs.deadline)
        return fill_in_order(view, urgent, needed)
    when, soon = _soon(plan, view.now + ahead_seconds)
    for at in np.argsort(when, kind="stable").tolist():
        row, size = int(plan.rows[at]), int(soon[at])
        more = size - int(needed[row])
        if 0 < more <= free and jobs.lo[row] <= size <= jobs.hi[row]:
            needed[row] = size
            free -= more
    return needed


def _soon(plan: Kept, until: Floats) -> tuple[Floats, Ints]:
    """When each row needs more than now, and the most it needs until then."""
    if isinstance(plan.plans, Alone):
        rises = plan.plans.rises
        return rises, np.where(rises <= until, plan.plans.high, plan.now)
    when = [s.next_above(now) for s, now in zip(plan.plans, plan.now.tolist(), strict=True)]
    soon = [
        max(devices for begin, devices in share.steps if begin <= limit)
        for share, limit in zip(plan.plans, until.tolist(), strict=True)
    ]
    return np.array(when, np.float64), np.array(soon, np.int64)

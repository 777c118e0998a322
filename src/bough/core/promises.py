"""What was promised, and whether one promise more can be kept: deadlines as policies admit them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bough.core.alone import Alone, alone, asks_of, together
from bough.core.filling import (
    RULES,
    SLACK_SECONDS,
    Need,
    Rules,
    Share,
    earliest_deadline,
    every_level,
    fill,
    fits,
    needs_of,
    placed,
    promised_rows,
    rush,
    soonest_end,
    useful_levels,
)
from bough.core.model import INFINITY
from bough.core.policy import ACCEPTED, Floats, Ints, Verdict, View
from bough.core.profile import Profile
from bough.core.units import format_duration


class Promises(NamedTuple):
    """What is free from now on, what was promised of it, and to which rows."""

    profile: Profile
    #: The most urgent first, and the row of each.
    needs: list[Need]
    rows: Ints


class Kept(NamedTuple):
    """What keeps all promises that can be kept."""

    #: Rows with a promise, the most urgent first, and what each must have now.
    rows: Ints
    now: Ints
    #: What is planned for each from now on.
    plans: Alone | list[Share]

    def wake_at(self, now: float, granted: Ints) -> float:
        """When the first row needs more than it is granted."""
        if isinstance(self.plans, Alone):
            return self.plans.wake_at(now, granted[self.rows])
        sizes = granted[self.rows].tolist()
        return min(
            (share.next_above(size) for share, size in zip(self.plans, sizes, strict=True)),
            default=INFINITY,
        )


def promises(view: View, margin: float | Floats = 0.0) -> Promises:
    """All that was promised; `margin` is the part of the speeds (of each row) not counted on.

    Jobs that may not be parked hold what they hold: those without a promise until they end.
    """
    jobs, profile = view.jobs, Profile(view.now, view.devices)
    rows = promised_rows(view)
    margins = np.broadcast_to(margin, jobs.n)
    held = unpromised(view, rows)
    if len(held):
        left = jobs.left() / (1.0 - margins)
        for row in held.tolist():
            rate = float(jobs.rate[row])
            seconds = float(left[row]) / rate if rate > 0 else INFINITY
            profile.take(view.now, view.now + seconds, int(jobs.lo[row]))
    return Promises(profile, needs_of(view, rows, margins[rows]), rows)


def unpromised(view: View, rows: Ints) -> Ints:
    """Rows that may not be parked though they were promised nothing."""
    if view.jobs.flat or not np.count_nonzero(view.jobs.must):
        return rows[:0]
    held = view.jobs.must != 0
    held[rows] = False
    found: Ints = held.nonzero()[0]
    return found


def kept(view: View, rules: Rules = RULES, margin: float | Floats = 0.0) -> Kept:
    """What is planned for all promises; those that will be late take what the others leave over."""
    rows = promised_rows(view)
    margins = np.broadcast_to(margin, view.jobs.n)
    plans = alone(view.classes, asks_of(view, rows, margins[rows]), view.now, rules)
    if plans is not None and together(plans, devices_for(view, rows)):
        return Kept(rows, plans.now(view.now), plans)
    profile, needs, rows = promises(view, margin)
    shares = in_time_first(profile, needs, rules)
    return Kept(rows, np.array([share.now for share in shares], np.int64), shares)


def devices_for(view: View, rows: Ints) -> int:
    """Devices that those with a promise can count on at any time."""
    return view.devices - int(view.jobs.lo[unpromised(view, rows)].sum())


def in_time_first(profile: Profile, needs: list[Need], rules: Rules = RULES) -> list[Share]:
    """The plan of each; those that will be late take what those that are in time leave over."""
    shares = fill(profile, needs, rules)
    return [
        rush(profile, need.levels, need.left) if share is None else share
        for need, share in zip(needs, shares, strict=True)
    ]


# ------------------------------------------------------------------ one more


def judged(
    view: View, rules: Rules = RULES, margin: float = 0.0, margins: Floats | None = None
) -> Verdict:
    """Whether the view's newcomer can be promised its deadline beside what was promised before.

    `margin` is the part of the newcomer's speed that is not counted on; of the rows' speeds it is
    `margins`, or the same.
    """
    asks = view.newcomer
    if asks is None or asks.deadline == INFINITY:
        return ACCEPTED
    if asks.left == INFINITY:
        return no_estimate()
    rows, left = promised_rows(view), asks.left / (1.0 - margin)
    others = np.full(view.jobs.n, margin) if margins is None else margins
    quick = _Quick(view, rows, others[rows], rules)
    if quick.fits(asks.cls, left, asks.deadline):
        return ACCEPTED
    newcomer = Need(useful_levels(view.classes)[asks.cls], left, asks.deadline)
    soonest = soonest_end(view.now, newcomer, rules)
    if soonest > asks.deadline and quick.fits(asks.cls, left, soonest):
        return refusal(view.now, asks.deadline, soonest, len(rows))
    profile, needs, _ = promises(view, others)
    if fits(profile.copy(), placed(needs, newcomer), rules):
        return ACCEPTED
    # Who is too late without it is no reason to refuse it.
    shares = fill(profile.copy(), needs, rules)
    needs = [need for need, share in zip(needs, shares, strict=True) if share is not None]
    if len(needs) < len(shares) and fits(profile.copy(), placed(needs, newcomer), rules):
        return ACCEPTED
    earliest = earliest_deadline(profile, needs, newcomer, rules)
    return refusal(view.now, asks.deadline, earliest, len(needs))


def judged_in_turn(view: View, greedy: bool = False) -> Verdict:
    """The same if each, in order of deadline, has all it can use: earliest deadline first.

    With `greedy`, sizes count as of use that slow a job down.
    """
    asks = view.newcomer
    if asks is None or asks.deadline == INFINITY:
        return ACCEPTED
    if asks.left == INFINITY:
        return no_estimate()
    profile, needs, rows = promises(view)
    levels = every_level(view.classes) if greedy else useful_levels(view.classes)
    if greedy:
        cls = view.jobs.cls[rows].tolist()
        needs = [need._replace(levels=levels[c]) for need, c in zip(needs, cls, strict=True)]
    newcomer = Need(levels[asks.cls], asks.left, asks.deadline)
    before = [rush(profile, need.levels, need.left).end for need in needs]
    behind = rush(profile, newcomer.levels, newcomer.left).end
    among = placed(needs, newcomer)
    again, place = promises(view).profile, among.index(newcomer)
    after = [rush(again, need.levels, need.left).end for need in among]
    in_time = after.pop(place) <= asks.deadline + SLACK_SECONDS
    broken = any(
        end > need.deadline + SLACK_SECONDS >= once
        for need, end, once in zip(needs, after, before, strict=True)
    )
    if in_time and not broken:
        return ACCEPTED
    last = needs[-1].deadline if needs else behind
    return refusal(view.now, asks.deadline, max(behind, last), len(needs))


def no_estimate() -> Verdict:
    """A promise cannot be judged without knowing the work."""
    return Verdict(
        accepted=False,
        code="no-estimate",
        text="A guarantee needs an estimate of its run time, and it has none.",
        remedy="Say how long it runs (estimate), or ask for best effort",
    )


class _Quick:
    """Finds out at once that a newcomer fits, where nobody stands in another's way."""

    def __init__(self, view: View, rows: Ints, margins: Floats, rules: Rules) -> None:
        self.view, self.rules = view, rules
        self.devices = devices_for(view, rows)
        self.others = asks_of(view, rows, margins)

    def fits(self, cls: int, left: float, deadline: float) -> bool:
        """Whether that is so; if not, it may fit all the same."""
        most = int(self.view.classes.sizes[cls, -1])
        asks = self.others.and_one(cls, most, left, deadline)
        plans = alone(self.view.classes, asks, self.view.now, self.rules)
        return plans is not None and together(plans, self.devices)


def refusal(now: float, asked: float, earliest: float, others: int) -> Verdict:
    """Why a deadline is not promised, and which one would be."""
    facts: dict[str, int | float | str] = {
        "deadline_in_seconds": asked - now, "promised_jobs": others,
    }  # fmt: skip
    beside = f" beside {others} promised before" if others else ""
    text = f"Its deadline in {format_duration(max(asked - now, 0.0))} cannot be kept{beside}."
    if earliest == INFINITY:
        return Verdict(accepted=False, code="deadline", text=text, facts=facts)
    seconds = float(math.ceil(earliest - now))
    facts["earliest_in_seconds"] = seconds
    remedy = f"Give it {format_duration(seconds)} or more, or ask for best effort"
    return Verdict(accepted=False, code="deadline", text=text, facts=facts, remedy=remedy)

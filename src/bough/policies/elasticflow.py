"""ElasticFlow: a deadline is promised only if it can be kept, with as few devices as keep it."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from bough.core.filling import (
    Need,
    Rules,
    Share,
    earliest_deadline,
    fill,
    fits,
    needs_of,
    placed,
    promised_rows,
    rush,
    useful_levels,
)
from bough.core.leftovers import grow, start_more
from bough.core.model import INFINITY, JobSpec
from bough.core.policy import ACCEPTED, Ints, Plan, Policy, Verdict, View
from bough.core.profile import Profile
from bough.core.share import fill_in_order, in_order
from bough.core.units import format_duration


class ElasticFlow(Policy, frozen=True):
    """A deadline is promised only if it can be kept; what is left goes where it costs least.

    Citation: Gu et al., "ElasticFlow: an elastic serverless training platform for distributed
    deep learning", ASPLOS '23, sections 3 and 4, algorithms 1 and 2.
    Faithful: a guaranteed job is admitted if progressive filling backward from the deadlines
    finds enough for it and for all admitted before; each has its minimum satisfactory share now;
    what is left goes, size by size, to whoever's device time grows least by it, jobs with nothing
    first; best-effort jobs come after all guaranteed ones and are never refused.
    Ours: plans reach exactly to the deadline and are made anew from the work that is left; what a
    job cannot use below its quota is not promised to others (`whole`), so that an admitted deadline
    stays possible whatever comes; a guaranteed job that is too late (a device was lost, a speed
    was wrong) takes what it can after those that are in time; device time is compared as if the
    new size were kept to the end. A job that has a guarantee must say how long it runs.
    """

    scope = "pool"

    #: Refuse a guaranteed job whose deadline cannot be kept; if not, all are taken on.
    admission: bool = True
    #: Part of the believed speeds not counted on when promises are made and kept.
    margin: float = 0.0
    #: Planned changes of size are put at multiples of this; 0: at any moment.
    slot_seconds: float = 0.0
    #: Who gets what is left: whose device time grows least by it, or most (as the released code
    #: sorts).
    growth: Literal["least", "most"] = "least"
    #: Let jobs have whole quotas of what is free; if not, others may plan with the remainder, and
    #: more is admitted than can always be kept.
    whole: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise ValueError(f"margin {self.margin} must be 0 or more and less than 1")
        if not 0 <= self.slot_seconds < INFINITY:
            raise ValueError(f"slot_seconds {self.slot_seconds} must be 0 or more, and finite")

    # ------------------------------------------------------------------ admission

    def admit(self, view: View, job: JobSpec) -> Verdict:
        asks = view.newcomer
        if not self.admission or asks is None or job.service != "guaranteed":
            return ACCEPTED
        if asks.deadline == INFINITY:
            return ACCEPTED
        if asks.left == INFINITY:
            return Verdict(
                accepted=False,
                code="no-estimate",
                text="A guarantee needs an estimate of its run time, and it has none.",
                remedy="Say how long it runs (estimate), or ask for best effort",
            )
        levels = useful_levels(view.classes)[asks.cls]
        newcomer = Need(levels, asks.left / (1.0 - self.margin), asks.deadline)
        profile, needs, _ = self._ahead(view)
        rules = self._rules()
        if fits(profile.copy(), placed(needs, newcomer), rules):
            return ACCEPTED
        # Who is too late without it is no reason to refuse it.
        shares = fill(profile.copy(), needs, rules)
        needs = [need for need, share in zip(needs, shares, strict=True) if share is not None]
        if len(needs) < len(shares) and fits(profile.copy(), placed(needs, newcomer), rules):
            return ACCEPTED
        earliest = earliest_deadline(profile, needs, newcomer, rules)
        return refusal(view.now, asks.deadline, earliest, len(needs))

    def _ahead(self, view: View) -> tuple[Profile, list[Need], Ints]:
        """What is free from now on, what was promised, and the rows of it.

        Jobs that may not be parked hold what they hold: those without a promise until they end.
        """
        jobs, profile = view.jobs, Profile(view.now, view.devices)
        rows = promised_rows(view)
        needs = needs_of(view, rows, self.margin)
        if not jobs.flat and np.count_nonzero(jobs.must):
            promised = set(rows.tolist())
            left = jobs.left() / (1.0 - self.margin)
            for row in jobs.must.nonzero()[0].tolist():
                if row not in promised:
                    rate = float(jobs.rate[row])
                    seconds = float(left[row]) / rate if rate > 0 else INFINITY
                    profile.take(view.now, view.now + seconds, int(jobs.lo[row]))
        return profile, needs, rows

    def _rules(self) -> Rules:
        return Rules(self.whole, self.slot_seconds)

    # ------------------------------------------------------------------ allocation

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        profile, needs, rows = self._ahead(view)
        planned = in_time_first(profile, needs, self._rules())
        granted = (jobs.lo * (jobs.must != 0)).tolist()
        lo, hi, order = jobs.lo.tolist(), jobs.hi.tolist(), rows.tolist()
        for row, share in zip(order, planned, strict=True):
            if share.now:
                granted[row] = min(max(share.now, lo[row]), hi[row])
        free = view.devices - sum(granted)
        if free < 0:
            urgent = in_order(view, jobs.guaranteed == 0, jobs.deadline)
            granted = fill_in_order(view, urgent, np.array(granted)).tolist()
            free = view.devices - sum(granted)
        others = in_order(view, jobs.guaranteed == 0).tolist()
        free = start_more(view, granted, free, order)
        free = start_more(view, granted, free, others)
        grow(view, granted, free, most_first=self.growth == "most")
        wake_at = min(
            (share.next_above(granted[row]) for row, share in zip(order, planned, strict=True)),
            default=INFINITY,
        )
        return Plan(np.array(granted, np.int64), wake_at=wake_at)


def in_time_first(profile: Profile, needs: list[Need], rules: Rules) -> list[Share]:
    """The plan of each; those that will be late take what those that are in time leave over."""
    shares = fill(profile, needs, rules)
    return [
        rush(profile, need.levels, need.left) if share is None else share
        for need, share in zip(needs, shares, strict=True)
    ]


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

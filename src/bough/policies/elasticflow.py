"""ElasticFlow: a deadline is promised only if it can be kept, with as few devices as keep it."""

from __future__ import annotations

from typing import Literal

from bough.core.elastic import promised_first
from bough.core.filling import Rules
from bough.core.model import INFINITY, JobSpec
from bough.core.policy import ACCEPTED, Plan, Policy, Verdict, View
from bough.core.promises import judged


class ElasticFlow(Policy, frozen=True):
    """A deadline is promised only if it can be kept; what is left goes where it costs least.

    Citation: Gu et al., "ElasticFlow: an elastic serverless training platform for distributed
    deep learning", ASPLOS '23, sections 3 and 4, algorithms 1 and 2.
    Faithful: a guaranteed job is admitted if progressive filling backward from the deadlines
    finds enough for it and for all admitted before; each has its minimum satisfactory share now;
    what is left goes, size by size, to whoever's device time grows least by it, jobs with nothing
    first; best-effort jobs come after all guaranteed ones and are never refused; smaller jobs
    move aside where a size finds no place (section 4.3), so that powers of two always fit. Filling
    refuses few sets that some plan could keep: 4 of 90 small ones, against an exact search.
    Ours: plans reach exactly to the deadline and are made anew from the work that is left; what a
    job cannot use below its quota is not promised to others (`whole`), so that an admitted deadline
    stays possible whatever comes; a guaranteed job that is too late (a device was lost, a speed
    was wrong) takes what it can after those that are in time; device time is compared as if the
    new size were kept to the end. A job that has a guarantee must say how long it runs. Jobs that
    come together are judged one by one, where the released code takes all or none.
    """

    scope = "pool"
    content_with = "peak"
    moves = True

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

    def admit(self, view: View, job: JobSpec) -> Verdict:
        if not self.admission or job.service != "guaranteed":
            return ACCEPTED
        return judged(view, self._rules(), self.margin)

    def _rules(self) -> Rules:
        return Rules(self.whole, self.slot_seconds)

    def plan(self, view: View) -> Plan:
        most_first = self.growth == "most"
        sizes, wake_at = promised_first(view, self._rules(), self.margin, most_first)
        return Plan(sizes, wake_at=wake_at)

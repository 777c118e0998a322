"""What is told of what is to come, as records: intervals, outlooks, quotes.

Nothing here needs numpy, so that a client that only sends and prints records stays quick.
"""

from __future__ import annotations

from typing import Literal

from bough.core.model import Frozen, JobSpec
from bough.core.reason import Reason

Verdict = Literal["accept", "accept-if", "reject"]


class Interval(Frozen, frozen=True):
    """In one version of ten it is less than p10, in half of them less than p50, and so on."""

    #: None: so many versions do not come to it within the horizon.
    p10: float | None = None
    p50: float | None = None  #: The same.
    p90: float | None = None  #: The same.


class Outlook(Frozen, frozen=True):
    """What is to be expected of one job."""

    begins: Interval  #: When it has devices.
    ends: Interval  #: When it is over.
    device_hours: Interval  #: It will use from now on.
    done: float  #: Part of the versions in which its work is done.
    in_time: float | None = None  #: Part of them in which its deadline is kept, if it has one.
    parks: float = 0.0  #: How often it is parked on the way, on average.
    energy_kwh: Interval | None = None  #: By the power model; None: nobody asked.
    carbon_kg: Interval | None = None  #: CO2; None: what power emits is not known.
    cost: Interval | None = None  #: None: nothing has a price.


class Delay(Frozen, frozen=True):
    """A job that is there already would end so much later."""

    job: str  #: Its number.
    seconds: float  #: So much later.
    late: bool = False  #: And so after its deadline.


class Alternative(Frozen, frozen=True):
    """A change of the job, and what would come of it."""

    change: str  #: In words, as an advice.
    spec: JobSpec  #: The job after the change.
    accepted: bool  #: It would be accepted.
    outlook: Outlook  #: What is to be expected of it then.
    later_seconds: float = 0.0  #: After now it should be submitted.
    delays: tuple[Delay, ...] = ()  #: Jobs that are there and would end later for it.


class Quote(Frozen, frozen=True):
    """The answer to a job that is not submitted yet."""

    verdict: Verdict  #: `accept-if`: with one of the alternatives that are accepted.
    reason: Reason  #: Why, in a sentence with its numbers.
    at: float  #: When it was made: moments in it are of the same clock.
    outlook: Outlook  #: What is to be expected of the job as it is.
    #: Nine times out of ten it is done by then, and with that as its deadline it is accepted;
    #: None: no such moment was found within the horizon.
    earliest_deadline: float | None = None
    alternatives: tuple[Alternative, ...] = ()  #: Changes that are better in something.
    #: Of the jobs that are there, those that would end later for it, the most delayed first.
    delays: tuple[Delay, ...] = ()
    versions: int = 0  #: Of what is to come, that were looked at.

"""What may be submitted in the time to come: what was submitted before, come again.

The past is cut into days, and each day to come is like one of them, chosen for each version by
itself, late ones more often than early ones: half of them from the last quarter. So the rush hours
and the mix of jobs stay as they were, and how much comes follows the trend. A past shorter than two
days is repeated as a whole, from a moment that differs from version to version.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from bough.core.chance import mixed
from bough.core.model import JobSpec

DAY_SECONDS: Final = 86_400.0
#: A past shorter than this says nothing on what is to come.
PAST_MIN_SECONDS: Final = 600.0


class Arrival(NamedTuple):
    """A job that was submitted, or may be."""

    at: float
    spec: JobSpec
    #: Work it turned out to be, in the scheduler's unit; None: as believed of such jobs.
    work: float | None = None


class Past:
    """All that was submitted in a stretch of time."""

    def __init__(self, begin: float, end: float, arrivals: Sequence[Arrival]) -> None:
        self.begin, self.end = begin, end
        self.arrivals = sorted(arrivals, key=lambda arrival: arrival.at)
        self._times = [arrival.at for arrival in self.arrivals]

    def to_come(self, version: int, now: float) -> Iterator[Arrival]:
        """What is submitted after now in this version, without end."""
        span = self.end - self.begin
        if span < PAST_MIN_SECONDS or not self.arrivals:
            return
        latest = max(math.ceil((now - self.end) / DAY_SECONDS), 1)
        oldest = math.floor((now - self.begin) / DAY_SECONDS)
        day, number = now, 0
        while True:
            draw = mixed(version * 1_000_003 + number)
            if oldest - latest < 1:
                begin, length = self.begin + draw / 2**64 * span, span
                yield from self._between(begin, self.end, day - begin)
                yield from self._between(self.begin, begin, day + span - begin)
            else:
                part = ((draw >> 11) / 2**53) ** 2
                back = latest + int(part * (oldest - latest + 1))
                begin, length = now - back * DAY_SECONDS, DAY_SECONDS
                yield from self._between(begin, begin + length, day - begin)
            day, number = day + length, number + 1

    def _between(self, begin: float, end: float, later: float) -> Iterator[Arrival]:
        """What came between two moments, so much later."""
        first, last = bisect_left(self._times, begin), bisect_left(self._times, end)
        for arrival in self.arrivals[first:last]:
            yield Arrival(arrival.at + later, postponed(arrival.spec, later), arrival.work)


#: Nothing is known, and so nobody is expected.
NOBODY: Final = Past(0.0, 0.0, ())


def postponed(spec: JobSpec, later: float) -> JobSpec:
    """The same job, so much later, without what ties it to others."""
    deadline = None if spec.deadline is None else spec.deadline + later
    if not spec.after and deadline == spec.deadline:
        return spec
    return msgspec.structs.replace(spec, after=(), deadline=deadline)

"""Numbers that hold until the next step: carbon intensity and price over time, and their integrals.

A series begins at its first step and, unless it is a single value, begins anew when it is over: a
year of hourly values serves a trace of any length.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate

import msgspec

from bough.core.model import INFINITY


class Series(msgspec.Struct, frozen=True):
    """Value i holds for the i-th step of so many seconds after `start`."""

    values: tuple[float, ...]
    step_seconds: float = 3600.0
    start: float = 0.0
    #: The integral from the start to the begin of each step, and to the end; made of the values.
    sums: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("a series needs at least one value")
        for i, value in enumerate(self.values):
            if not math.isfinite(value):
                raise ValueError(f"value {i} is {value}: it must be finite")
        if not 0 < self.step_seconds < math.inf:
            raise ValueError("step_seconds must be positive and finite")
        if not math.isfinite(self.start):
            raise ValueError("start must be finite")
        parts = (value * self.step_seconds for value in self.values)
        msgspec.structs.force_setattr(self, "sums", tuple(accumulate(parts, initial=0.0)))

    def at(self, moment: float) -> float:
        """The value that holds at that moment."""
        if len(self.values) == 1:
            return self.values[0]
        return self.values[self._step(moment) % len(self.values)]

    def next_change(self, moment: float) -> float:
        """When the step of that moment is over; inf for a single value."""
        if len(self.values) == 1:
            return INFINITY
        return self.start + (self._step(moment) + 1) * self.step_seconds

    def integral(self, begin: float, end: float) -> float:
        """Value times seconds between two moments."""
        if len(self.values) == 1:
            return self.values[0] * (end - begin)
        first, last = self._step(begin), self._step(end)
        if first == last:
            return self.at(begin) * (end - begin)
        return self._up_to(end, last) - self._up_to(begin, first)

    def reached(self, moment: float, amount: float) -> float:
        """The first moment by which the integral from here is `amount`; inf: never.

        For series that are nowhere negative.
        """
        if amount <= 0:
            return moment
        if len(self.values) == 1:
            return moment + amount / self.values[0] if self.values[0] > 0 else INFINITY
        whole = self.sums[-1]
        if whole <= 0:
            return INFINITY
        rounds, rest = divmod(self._up_to(moment, self._step(moment)) + amount, whole)
        if rest <= 0:
            rounds, rest = rounds - 1, whole
        step = bisect_left(self.sums, rest) - 1
        seconds = (rest - self.sums[step]) / self.values[step]
        begin = self.start + (rounds * len(self.values) + step) * self.step_seconds
        return max(begin + seconds, moment)

    def _step(self, moment: float) -> int:
        """The number of the step, counted on and on."""
        step = math.floor((moment - self.start) / self.step_seconds)
        # A moment that is the begin of a step may be rounded to just before it.
        return step + 1 if self.start + (step + 1) * self.step_seconds <= moment else step

    def _up_to(self, moment: float, step: int) -> float:
        """The integral from `start`, negative before it."""
        rounds, within = divmod(step, len(self.values))
        since = moment - (self.start + step * self.step_seconds)
        return rounds * self.sums[-1] + self.sums[within] + self.values[within] * since


def constant(value: float) -> Series:
    """A series of one value."""
    return Series((value,))

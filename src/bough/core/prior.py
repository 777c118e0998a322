"""What to believe of a job nobody has measured: an estimate that learns from jobs that ended.

Three facts are learnt: how long jobs run, by model and by user, and how well models scale (the
exponent of a power law). Every mean is drawn towards the one above it by PULL imagined jobs, so
that one odd job does not decide. Durations are averaged as logarithms: they spread over orders
of magnitude, and the estimate is therefore a median.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Final

import msgspec

#: As many imagined jobs stand behind the mean that a new mean starts from.
PULL: Final = 3.0
#: Before anything was learnt: an hour, give or take a factor of e squared; and a usual exponent.
FIRST_SECONDS: Final = 3600.0
FIRST_SPREAD: Final = 2.0
FIRST_EXPONENT: Final = 0.8
EXPONENT_SPREAD: Final = 0.2


class Mean(msgspec.Struct):
    """A running mean with its sum of squared differences (Welford)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        before = value - self.mean
        self.mean += before / self.count
        self.squares += before * (value - self.mean)

    def fade(self, count: int) -> None:
        """Weigh what was seen as if it had been only so many values."""
        if count < self.count:
            self.squares *= count / self.count
            self.count = count

    def drawn(self, towards: float, pull: float = PULL) -> float:
        """The mean after `pull` imagined values of `towards`."""
        return (self.count * self.mean + pull * towards) / (self.count + pull)

    def spread(self, first: float, pull: float = PULL) -> float:
        """The standard deviation after `pull` imagined values that deviate by `first`."""
        return math.sqrt((self.squares + pull * first * first) / (self.count + pull))


class Prior:
    """Learns from jobs that ended; guesses for those that come."""

    def __init__(self) -> None:
        #: By (model, user); "" stands for all of them.
        self.seconds: dict[tuple[str, str], Mean] = {}
        self.exponents: dict[str, Mean] = {}

    def observe(self, model: str, user: str, seconds: float, exponent: float | None = None) -> None:
        """A job took so long (in any unit the caller keeps to), and scaled so well."""
        if not 0 < seconds < math.inf:
            raise ValueError(f"seconds is {seconds}: it must be positive and finite")
        for key in {("", ""), (model, ""), ("", user), (model, user)}:
            self.seconds.setdefault(key, Mean()).add(math.log(seconds))
        if exponent is not None:
            self.observe_exponent(model, exponent)

    def observe_exponent(self, model: str, exponent: float) -> None:
        """A model was seen to scale as devices ** exponent."""
        if not math.isfinite(exponent):
            raise ValueError(f"exponent is {exponent}: it must be finite")
        for key in {"", model}:
            self.exponents.setdefault(key, Mean()).add(exponent)

    def expect_seconds(self, model: str, user: str) -> float:
        """The median duration to expect."""
        overall = self._seconds("", "").drawn(math.log(FIRST_SECONDS))
        of_user = self._seconds("", user).drawn(overall)
        of_model = self._seconds(model, "").drawn(of_user)
        return math.exp(self._seconds(model, user).drawn(of_model))

    def spread(self, model: str, user: str) -> float:
        """How far off: the duration lies within a factor of e**spread two times out of three."""
        overall = self._seconds("", "").spread(FIRST_SPREAD)
        of_user = self._seconds("", user).spread(overall)
        of_model = self._seconds(model, "").spread(of_user)
        return self._seconds(model, user).spread(of_model)

    def exponent(self, model: str) -> float:
        """The exponent to expect, between 0 (no use of more devices) and 1 (perfect)."""
        overall = self._exponent("").drawn(FIRST_EXPONENT)
        return min(max(self._exponent(model).drawn(overall), 0.0), 1.0)

    def exponent_spread(self, model: str) -> float:
        """The standard deviation to expect of it."""
        overall = self._exponent("").spread(EXPONENT_SPREAD)
        return self._exponent(model).spread(overall)

    def _seconds(self, model: str, user: str) -> Mean:
        return self.seconds.get((model, user), Mean())

    def _exponent(self, model: str) -> Mean:
        return self.exponents.get(model, Mean())

    def state(self) -> dict[str, list[tuple[str, str, Mean]]]:
        """Everything learnt, as plain data."""
        return {
            "seconds": [(model, user, copy(mean)) for (model, user), mean in self.seconds.items()],
            "exponents": [(model, "", copy(mean)) for model, mean in self.exponents.items()],
        }

    def restore(self, state: object) -> None:
        """Know what `state()` knew, also after a way through JSON or MessagePack."""
        known = msgspec.convert(state, dict[str, list[tuple[str, str, Mean]]])
        self.seconds = {(model, user): mean for model, user, mean in known["seconds"]}
        self.exponents = {model: mean for model, _, mean in known["exponents"]}

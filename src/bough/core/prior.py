"""What to believe of a job nobody has measured: an estimate that learns from jobs that ended.

Five facts are learnt: how long jobs run, by model and by user, how far off users' estimates are,
how well models scale (the exponent of a power law), how device-seconds are distributed among jobs,
and how wrong beliefs were when a job was first measured. Every mean is drawn towards the one above
it by PULL imagined jobs, so that one odd job does not decide. Durations are averaged as logarithms:
they spread over orders of magnitude, and the estimate is therefore a median.
"""

from __future__ import annotations

import math
from collections import deque
from copy import copy
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

#: As many imagined jobs stand behind the mean that a new mean starts from.
PULL: Final = 3.0
#: Before anything was learnt: an hour, give or take a factor of e squared; and a usual exponent.
FIRST_SECONDS: Final = 3600.0
FIRST_SPREAD: Final = 2.0
FIRST_EXPONENT: Final = 0.8
EXPONENT_SPREAD: Final = 0.2
#: How far off an estimate is thought to be before any was seen to be right or wrong.
ESTIMATE_SPREAD: Final = 0.1
#: So many jobs stand for the distribution.
HISTORY_MAX: Final = 512


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


class Learnt(msgspec.Struct, omit_defaults=True):
    """All a prior knows, as plain data."""

    seconds: list[tuple[str, str, Mean]]
    exponents: list[tuple[str, str, Mean]]
    used: list[float] = []
    estimates: list[tuple[str, Mean]] = []
    surprises: Mean = msgspec.field(default_factory=Mean)


class Prior:
    """Learns from jobs that ended; guesses for those that come."""

    def __init__(self) -> None:
        #: By (model, user); "" stands for all of them.
        self.seconds: dict[tuple[str, str], Mean] = {}
        self.exponents: dict[str, Mean] = {}
        #: Logarithms of true work / what was estimated, by user.
        self.estimates: dict[str, Mean] = {}
        #: Device-seconds that the last jobs used, and the same sorted when somebody asked.
        self.used: deque[float] = deque(maxlen=HISTORY_MAX)
        self._sorted: npt.NDArray[np.float64] | None = None
        #: Squares of how far off, as logarithms, beliefs were of jobs that were measured first.
        self.surprises = Mean()

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

    def observe_estimate(self, user: str, ratio: float) -> None:
        """A job took so many times as long as by its user's estimate and its believed speed."""
        if 0 < ratio < math.inf:
            seen = math.log(ratio)
            for key in ("", user) if user else ("",):
                known = self.estimates.get(key)
                if known is None:
                    known = self.estimates[key] = Mean()
                known.add(seen)

    def estimate_error(self, user: str, first: float = ESTIMATE_SPREAD) -> tuple[float, float]:
        """Mean and standard deviation of the logarithm of true work / this user's estimate.

        `first` is the deviation that is thought likely before any was seen.
        """
        overall, own = (self.estimates.get(key, Mean()) for key in ("", user))
        among = overall.spread(first)
        # The mean is not known exactly either.
        unsure = math.sqrt(1.0 + 1.0 / (own.count + PULL))
        spread = own.spread(among) * (unsure if self.estimates else 1.0)
        return own.drawn(overall.drawn(0.0)), spread

    def observe_surprise(self, ratio: float) -> None:
        """A job that was measured for the first time was so many times as fast as believed."""
        if self.surprises.count >= HISTORY_MAX:
            self.surprises.fade(HISTORY_MAX - 1)
        self.surprises.add(math.log(ratio) ** 2 if 0 < ratio < math.inf else 0.0)

    def doubt(self) -> float:
        """How far off beliefs were of late, as a relative error; 0 as long as nothing was seen."""
        return math.sqrt(self.surprises.mean)

    def keep(self, device_seconds: float) -> None:
        """A job that ended used so much in all."""
        self.used.append(device_seconds)
        self._sorted = None

    def history(self) -> npt.NDArray[np.float64]:
        """What the last jobs used, ascending."""
        if self._sorted is None:
            self._sorted = np.sort(np.array(self.used, np.float64))
            self._sorted.flags.writeable = False
        return self._sorted

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

    def state(self) -> Learnt:
        """Everything learnt, as plain data."""
        return Learnt(
            [(model, user, copy(mean)) for (model, user), mean in self.seconds.items()],
            [(model, "", copy(mean)) for model, mean in self.exponents.items()],
            list(self.used),
            [(user, copy(mean)) for user, mean in self.estimates.items()],
            copy(self.surprises),
        )

    def restore(self, state: object) -> None:
        """Know what `state()` knew, also after a way through JSON or MessagePack."""
        known = state if isinstance(state, Learnt) else msgspec.convert(state, Learnt)
        self.seconds = {(model, user): copy(mean) for model, user, mean in known.seconds}
        self.exponents = {model: copy(mean) for model, _, mean in known.exponents}
        self.used = deque(known.used, HISTORY_MAX)
        self.estimates = {user: copy(mean) for user, mean in known.estimates}
        self.surprises = copy(known.surprises)
        self._sorted = None

"""Speeds from samples: the power law, Optimus' forms, and a fit that learns while a job runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from bough.core.prior import Mean
from bough.core.speedup import Curve

Floats = npt.NDArray[np.float64]

#: Standard deviation of one rate's logarithm before any was seen twice.
NOISE: Final = 0.1
#: How far a speed may lie from the fitted form although it was measured without noise.
MISFIT: Final = 0.05
#: As many samples are remembered: older ones fade, because jobs change while they run.
MEMORY: Final = 20
#: Once there are a few samples, one further off than this many standard deviations is drawn in.
FEW: Final = 3
OUTLIER: Final = 3.0


# ------------------------------------------------------------------------------- power law


class PowerLaw(msgspec.Struct, frozen=True):
    """rate = first * devices ** exponent."""

    #: Rate of one device.
    first: float
    exponent: float
    #: Root mean square of the relative residuals.
    error: float = 0.0

    def rate(self, devices: int) -> float:
        """Rate on so many devices."""
        return self.first * math.pow(devices, self.exponent)

    def curve(self, sizes: Sequence[int]) -> Curve:
        """Relative to one device."""
        speed = tuple(math.pow(n, self.exponent) for n in sizes)
        return Curve(tuple(sizes), speed, "fitted", self.error)


def fit_power_law(sizes: Sequence[int], rates: Sequence[float]) -> PowerLaw:
    """Least squares of the logarithms; needs two different sizes."""
    check_samples(sizes, rates)
    if len(set(sizes)) < 2:
        raise ValueError("sizes: a power law needs samples of two different sizes")
    x, y = np.log(np.array(sizes, float)), np.log(np.array(rates, float))
    exponent = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    level = float(y.mean() - exponent * x.mean())
    return PowerLaw(math.exp(level), exponent, relative_error(level + exponent * x, y))


def check_samples(sizes: Sequence[int], rates: Sequence[float]) -> None:
    """ValueError for samples that cannot have been measured."""
    if len(sizes) != len(rates):
        raise ValueError(f"rates has {len(rates)} values for {len(sizes)} sizes")
    if not len(sizes):
        raise ValueError("sizes is empty: nothing to fit")
    for i, size in enumerate(sizes):
        if size < 1:
            raise ValueError(f"sizes[{i}] is {size}: it must be at least 1")
    for i, rate in enumerate(rates):
        if not 0 < rate < math.inf:
            raise ValueError(f"rates[{i}] is {rate}: it must be positive and finite")


def relative_error(fitted: Floats, measured: Floats) -> float:
    """Root mean square of differences of logarithms, as a fraction."""
    return math.expm1(math.sqrt(float(np.square(fitted - measured).mean())))


# --------------------------------------------------------------------------------- Optimus


class Optimus(msgspec.Struct, frozen=True):
    """Speed with w workers and p parameter servers (Peng et al., EuroSys '18).

    sync:  1 / (a * batch / w + b + c * w / p + d * w + e * p)
    async: w / (a + b * w / p + c * w + d * p)
    """

    mode: Literal["sync", "async"]
    #: a, b, c …: none negative.
    coefficients: tuple[float, ...]
    #: Global batch; only counts for sync.
    batch: float = 1.0
    error: float = 0.0

    def rate(self, workers: int, servers: int) -> float:
        """Steps per second."""
        terms = optimus_terms(self.mode, workers, servers, self.batch)
        seconds = sum(c * t for c, t in zip(self.coefficients, terms, strict=True))
        steps = workers if self.mode == "async" else 1
        return steps / seconds if seconds > 0 else 0.0

    def curve(self, sizes: Sequence[int], servers: int = 0) -> Curve:
        """By number of workers, relative to one; 0 servers means as many as workers."""
        first = self.rate(1, servers or 1)
        speed = tuple(self.rate(n, servers or n) / first for n in sizes)
        return Curve(tuple(sizes), speed, "fitted", self.error)


def optimus_terms(mode: str, workers: int, servers: int, batch: float) -> tuple[float, ...]:
    """What the coefficients are multiplied with."""
    if mode == "async":
        return 1.0, workers / servers, float(workers), float(servers)
    return batch / workers, 1.0, workers / servers, float(workers), float(servers)


def fit_optimus(
    samples: Sequence[tuple[int, int, float]],
    mode: Literal["sync", "async"] = "sync",
    batch: float = 1.0,
) -> Optimus:
    """Non-negative least squares over (workers, servers, rate), of relative errors."""
    needed = 4 if mode == "async" else 5
    if len(samples) < needed:
        raise ValueError(f"samples: {mode} needs at least {needed}, there are {len(samples)}")
    check_samples([w for w, _, _ in samples], [r for _, _, r in samples])
    check_samples([p for _, p, _ in samples], [r for _, _, r in samples])
    terms = np.array([optimus_terms(mode, w, p, batch) for w, p, _ in samples])
    seconds = np.array([(w if mode == "async" else 1) / r for w, _, r in samples])
    scale = terms.max(axis=0)
    found = nnls(terms / scale / seconds[:, None], np.ones(len(samples))) / scale
    error = relative_error(np.log(np.maximum(terms @ found, 1e-300)), np.log(seconds))
    return Optimus(mode, tuple(found.tolist()), batch, error)


def nnls(matrix: Floats, target: Floats) -> Floats:
    """The x >= 0 with the smallest |matrix @ x - target| (Lawson and Hanson's active set)."""
    width = matrix.shape[1]
    x, free = np.zeros(width), np.zeros(width, bool)
    tolerance = 1e-10 * max(1.0, float(np.abs(matrix.T @ target).max()))
    for _ in range(10 * width):
        gain = matrix.T @ (target - matrix @ x)
        if free.all() or gain[~free].max() <= tolerance:
            break
        free[int(np.where(free, -np.inf, gain).argmax())] = True
        while True:
            trial = np.zeros(width)
            trial[free] = np.linalg.lstsq(matrix[:, free], target, rcond=None)[0]
            negative = free & (trial <= 0)
            if not negative.any():
                break
            # Go towards the trial until the first coefficient reaches 0, and hold it there.
            step = (x[negative] / (x[negative] - trial[negative] + 1e-300)).min()
            x = x + step * (trial - x)
            free &= x > 1e-14 * max(1.0, float(np.abs(x).max()))
            x[~free] = 0.0
        x = trial
    return x


# --------------------------------------------------------------------- while the job runs


class OnlineState(msgspec.Struct):
    """What has been measured: logarithms of rates relative to the base curve, by size."""

    sizes: dict[int, Mean] = {}


class OnlineFit:
    """Corrects a believed curve by the rates at which a job is seen to run.

    The logarithm of measured / believed is level + tilt * log(devices) + what remains at each
    size. Level and tilt start from 0 with the base curve's own error as their standard deviation
    (Bayesian linear regression), so that one sample moves the level and several sizes the tilt.
    """

    def __init__(self, base: Curve, *, unit_known: bool = True) -> None:
        """With `unit_known`, rates are in the unit of the base curve; else only ratios count."""
        self.base = base
        self.unit_known = unit_known
        self.seen: dict[int, Mean] = {}

    def add(self, size: int, rate: float) -> None:
        """The job ran at this rate on so many devices."""
        check_samples([size], [rate])
        believed = self.base.at(size)
        if believed <= 0:
            return  # the base says that it cannot run there: nothing to correct
        value = math.log(rate / believed)
        mean = self.seen.setdefault(size, Mean())
        if mean.count >= FEW:
            reach = OUTLIER * mean.spread(NOISE, 1.0)
            value = min(max(value, mean.mean - reach), mean.mean + reach)
        if mean.count >= MEMORY:
            mean.fade(MEMORY - 1)
        mean.add(value)

    def samples(self) -> int:
        """How many count now."""
        return sum(mean.count for mean in self.seen.values())

    def curve(self, sizes: Iterable[int] = ()) -> Curve:
        """The corrected curve at the base's sizes, those measured, and these."""
        if not self.seen:
            return self.base
        (level, tilt), spread = self._line()
        measured = sorted(self.seen)
        logs = np.log(measured)
        rest, trust = self._rest(level, tilt)
        every = tuple(sorted({*self.base.sizes, *measured, *sizes}))
        x = np.log(every)
        correction = level + tilt * x + np.interp(x, logs, rest)
        known = np.interp(x, logs, trust) * np.isin(every, measured)
        variance = spread[0, 0] + 2 * x * spread[0, 1] + x * x * spread[1, 1] + MISFIT**2
        error = math.expm1(math.sqrt(float((variance * (1 - known)).mean())))
        speed = tuple((self.base.over(every) * np.exp(correction)).tolist())
        return Curve(every, speed, "fitted", error, self.base.span_factor)

    def tilt(self) -> float:
        """How much better (or worse) it scales than believed, as an exponent."""
        return self._line()[0][1] if self.seen else 0.0

    def _line(self) -> tuple[tuple[float, float], Floats]:
        """Level and tilt, and their covariance."""
        doubt = max(self.base.error, MISFIT)
        first = doubt if self.unit_known else 1e3
        precision = np.diag([1 / first**2, 1 / doubt**2])
        pull = np.zeros(2)
        for size, mean in self.seen.items():
            row = np.array([1.0, math.log(size)])
            weight = 1 / (self._noise(mean) + MISFIT**2)
            precision += weight * np.outer(row, row)
            pull += weight * mean.mean * row
        covariance = np.linalg.inv(precision)
        level, tilt = (covariance @ pull).tolist()
        return (level, tilt), covariance

    def _rest(self, level: float, tilt: float) -> tuple[list[float], list[float]]:
        """What the line leaves at each measured size, and how far that is to be trusted."""
        rest, trust = [], []
        for size, mean in sorted(self.seen.items()):
            share = MISFIT**2 / (MISFIT**2 + self._noise(mean))
            rest.append(share * (mean.mean - level - tilt * math.log(size)))
            trust.append(share)
        return rest, trust

    @staticmethod
    def _noise(mean: Mean) -> float:
        """Variance of the mean of a size's samples."""
        return mean.spread(NOISE, 1.0) ** 2 / mean.count

    def state(self) -> OnlineState:
        """What was measured, as plain data."""
        return OnlineState({size: copy(mean) for size, mean in self.seen.items()})

    def restore(self, state: object) -> None:
        """Know what `state()` knew, also after a way through JSON or MessagePack."""
        self.seen = msgspec.convert(state, OnlineState, strict=False, from_attributes=True).sizes

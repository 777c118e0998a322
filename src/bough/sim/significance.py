"""Whether one policy is better than another, or luck: paired comparisons over equal instances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from bough.core.policy import Floats

#: 97.5 % points of Student's distribution by degrees of freedom from 1; beyond, nearly normal.
STUDENT: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
NORMAL: Final = 1.960
#: With so many pairs at most, all signs are tried; with more, so many are drawn.
EXACT_PAIRS: Final = 12
DRAWS: Final = 10_000
#: Differences this small (relatively) are rounding.
ROUNDING: Final = 1e-9


class Interval(NamedTuple):
    """A mean and where it lies 19 times out of 20; infinitely wide for a single value."""

    mean: float
    half: float


class Verdict(NamedTuple):
    """One policy against another over the same instances."""

    #: Of the first over the second: their ratio (geometric mean) or, of shares, their difference.
    effect: float
    low: float
    high: float
    #: How likely so great a difference would be if there was none (sign-flip test, two-sided).
    p: float
    pairs: int


def interval(values: Sequence[float]) -> Interval:
    """By Student's distribution."""
    count = len(values)
    mean = float(np.mean(values))
    if count < 2:
        return Interval(mean, math.inf)
    critical = STUDENT[count - 2] if count - 2 < len(STUDENT) else NORMAL
    return Interval(mean, critical * float(np.std(values, ddof=1)) / math.sqrt(count))


def compared(ours: Sequence[float], theirs: Sequence[float], *, by_ratio: bool) -> Verdict:
    """Pair by pair: instances differ more than policies do, and so are no reason to doubt."""
    a, b = np.array(ours, float), np.array(theirs, float)
    by_ratio = by_ratio and bool((a > 0).all() and (b > 0).all())
    apart = np.log(a / b) if by_ratio else a - b
    apart = np.where(np.abs(apart) <= ROUNDING * (1.0 if by_ratio else np.abs(b)), 0.0, apart)
    mean, half = interval(apart.tolist())
    shown = math.exp if by_ratio else float
    low, high = (shown(mean - half), shown(mean + half)) if half < math.inf else (-half, half)
    if by_ratio and low == -math.inf:
        low = 0.0
    return Verdict(shown(mean), low, high, sign_flip(apart), len(apart))


def sign_flip(apart: Floats) -> float:
    """If there was no difference, each pair's sign would be a toss of a coin."""
    count = len(apart)
    if not count or not apart.any():
        return 1.0
    seen = abs(float(apart.sum()))
    if count <= EXACT_PAIRS:
        signs = np.array(list(product((-1.0, 1.0), repeat=count)))
        return float((np.abs(signs @ apart) >= seen * (1 - ROUNDING)).mean())
    chance = np.random.default_rng(0)
    signs = chance.choice((-1.0, 1.0), size=(DRAWS, count))
    as_great = int((np.abs(signs @ apart) >= seen * (1 - ROUNDING)).sum())
    return (as_great + 1) / (DRAWS + 1)


def holm(values: Sequence[float]) -> list[float]:
    """The same probabilities made larger, because among many comparisons some look striking."""
    found, most = [0.0] * len(values), 0.0
    for rank, index in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        most = max(most, min(1.0, values[index] * (len(values) - rank)))
        found[index] = most
    return found

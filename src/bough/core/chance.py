"""What may be otherwise than believed, in a given number of versions, without drawing lots.

A version is one way the world may be. In each of them every job has luck of its own, a number
between 0 and 1 that follows from the job's name and the number of the version alone: asked
again, the answer is the same, so two forecasts differ by what was changed and not by chance.
The lucks of one job are spread evenly over the versions (a Latin hypercube).
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final
from zlib import crc32

NORMAL: Final = NormalDist()
#: Who has done no more than this part of it has not begun.
TINY: Final = 1e-12
_MASK: Final = (1 << 64) - 1


def luck(name: str, version: int, versions: int) -> float:
    """How lucky it is in this version: as many versions are so lucky as chance would have it."""
    return _lucks(name, versions)[version]


@lru_cache(maxsize=20_000)
def _lucks(name: str, versions: int) -> tuple[float, ...]:
    seed = crc32(name.encode())
    order = sorted(range(versions), key=lambda version: mixed(seed * versions + version))
    return tuple((place + 0.5) / versions for place in order)


def deviation(luck: float) -> float:
    """The standard normal deviation that is exceeded in the share `1 - luck` of all cases."""
    return NORMAL.inv_cdf(luck)


def factor(spread: float, luck: float) -> float:
    """A log-normal factor with the median 1 and that standard deviation of its logarithm."""
    return math.exp(spread * deviation(luck)) if spread else 1.0


def outlived(median: float, spread: float, done: float, luck: float) -> float:
    """A log-normal amount, of which it is known that it is more than what is done."""
    if done <= TINY * median or spread <= 0.0:
        return max(median * factor(spread, luck), done)
    past = NORMAL.cdf(math.log(done / median) / spread)
    luck = past + (1.0 - past) * luck
    if luck >= 1.0:  # it outlived all that was thought possible
        return done * math.exp(spread)
    return max(median * factor(spread, luck), done)


def mixed(number: int) -> int:
    """All bits of a whole number stirred (splitmix64)."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)

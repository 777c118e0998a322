"""Lots for searches that need some: not drawn, but numbers that follow from a seed alone.

The core draws nothing. Asked again with the same seed, a search meets the same lots in the same
order, on every machine and with every version of numpy.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bough.core.policy import Floats, Ints

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Lots:
    """An endless row of numbers, spread evenly (splitmix64 of a seed and a count)."""

    def __init__(self, seed: int) -> None:
        self._seed = np.uint64(seed & 0xFFFFFFFF) << np.uint64(32)
        self._count = 0

    def parts(self, shape: tuple[int, ...]) -> Floats:
        """Numbers from 0 up to 1, which is not among them."""
        many = int(np.prod(shape))
        number = np.arange(self._count, self._count + many, dtype=np.uint64) + self._seed
        self._count += many
        number = (number + np.uint64(1)) * _STEP
        number = (number ^ (number >> np.uint64(30))) * _FIRST
        number = (number ^ (number >> np.uint64(27))) * _SECOND
        number ^= number >> np.uint64(31)
        found: Floats = (number >> np.uint64(11)).astype(np.float64).reshape(shape)
        return found * 2.0**-53

    def below(self, end: int, shape: tuple[int, ...]) -> Ints:
        """Whole numbers from 0 up to `end`, which is not among them."""
        found: Ints = (self.parts(shape) * end).astype(np.int64)
        return found

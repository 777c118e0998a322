"""The time that events carry: it never goes back, whatever is done to the clock of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """The wall clock at the start, and from there on what has passed since, sleep included.

    Whoever sets the machine's clock changes it for the next daemon only, and not into the past:
    a journal's times never fall.
    """

    def __init__(
        self,
        not_before: float = 0.0,
        *,
        wall: Callable[[], float] = time.time,
        passed: Callable[[], float] | None = None,
    ) -> None:
        self._passed = passed or since_boot
        self._offset = max(wall(), not_before) - self._passed()

    def __call__(self) -> float:
        return self._offset + self._passed()


def since_boot() -> float:
    """Seconds the machine has been there, while it slept too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)

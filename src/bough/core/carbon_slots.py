"""One job over cleaner and dirtier hours: how many devices in each, so that it ends in time.

The slots with most work for each gram are filled first, device by device. For curves that bend
downwards only (each device adds less speed for each watt than the one before it) no other plan does
as much work with less carbon.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

#: What is done but for this part of it is done: sums are rounded.
ROUNDING = 1e-9
#: A slot without any emissions is better than all others, and by how much does not matter.
CLEAN = 1e-9


class Level(NamedTuple):
    """A size a job may have, its speed there, and what that draws."""

    size: int
    speed: float
    watts: float


class Slot(NamedTuple):
    """A stretch of time and the carbon intensity in it."""

    seconds: float
    intensity: float


def spread_over(levels: Sequence[Level], left: float, slots: Sequence[Slot]) -> list[int] | None:
    """How many devices the job has in each slot; None: even with all of them it is not done.

    Levels are ascending. A slot's first entry is the least size, each next is one level more; the
    entry with most work for each gram comes next, of equals the earliest.
    """
    chosen = [-1] * len(slots)
    entries = [_entry(levels, slots[i], i, 0) for i in range(len(slots))]
    heapq.heapify(entries)
    rest = left * (1.0 - ROUNDING)
    while rest > 0:
        if not entries:
            return None
        _, i, k, work = heapq.heappop(entries)
        chosen[i] = k
        rest -= work
        if k + 1 < len(levels):
            heapq.heappush(entries, _entry(levels, slots[i], i, k + 1))
    return [levels[k].size if k >= 0 else 0 for k in chosen]


def _entry(levels: Sequence[Level], slot: Slot, i: int, k: int) -> tuple[float, int, int, float]:
    """What a level adds in a slot: (its worth, for a heap), where, which, and the work."""
    below = levels[k - 1] if k else Level(0, 0.0, 0.0)
    more, watts = levels[k].speed - below.speed, levels[k].watts - below.watts
    worth = more / (max(watts, CLEAN) * max(slot.intensity, CLEAN))
    return -worth, i, k, more * slot.seconds

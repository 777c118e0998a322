"""Whole devices divided by weight among claimants with upper bounds.

Devices are handed out one after another, each to whoever is furthest behind: the claimant with the
smallest (extra + 1/2) / weight, where extra is what it got beyond its base (Webster's method) and
that part of its base which counts (`ahead`). So one device more never takes one from anybody, and
everything is handed out that somebody can take. Ties go to the first. Bisection skips most of the
single steps.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def apportion(
    devices: int,
    base: Sequence[int],
    bound: Sequence[int],
    weight: Sequence[float],
    ahead: Sequence[int] | None = None,
) -> list[int]:
    """Raise everybody from base towards bound, in proportion to weight, until devices are gone.

    What is returned includes the base; `devices` may be added to it. Claimants without weight
    share evenly what the others leave.
    """
    got, ahead = list(base), ahead or [0] * len(base)
    devices = _raise(devices, got, bound, weight, ahead)
    if devices > 0 and min(weight, default=1) <= 0:
        _raise(devices, got, bound, [float(w <= 0) for w in weight], ahead)
    return got


def _raise(
    devices: int,
    got: list[int],
    bound: Sequence[int],
    weight: Sequence[float],
    ahead: Sequence[int],
) -> int:
    """Hand out among those with weight; returns what is left."""
    rooms = [
        (i, w, bound[i] - got[i], ahead[i])
        for i, w in enumerate(weight)
        if w > 0 and bound[i] > got[i]
    ]
    room = sum(r for _, _, r, _ in rooms)
    if room <= devices:
        for i, _, _, _ in rooms:
            got[i] = bound[i]
        return devices - room
    if devices <= 0:
        return devices
    level = _level(devices, rooms)
    turns = []
    for i, w, r, before in rooms:
        extra = min(r, max(int(level * w + 0.5) - before, 0))
        got[i] += extra
        devices -= extra
        if extra < r:
            turns.append(((before + extra + 0.5) / w, i, before + extra, w))
    heapq.heapify(turns)
    while devices > 0:
        _, i, extra, w = turns[0]
        got[i] += 1
        devices -= 1
        if got[i] < bound[i]:
            heapq.heapreplace(turns, ((extra + 1.5) / w, i, extra + 1, w))
        else:
            heapq.heappop(turns)
    return 0


def _level(devices: int, rooms: Sequence[tuple[int, float, int, int]]) -> float:
    """A level up to which everybody can be served and few devices are left."""
    most = devices + max(before for *_, before in rooms) + 1.0
    low, high = 0.0, most / min(w for _, w, _, _ in rooms)
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return low
        left = devices - sum(min(r, max(int(middle * w + 0.5) - b, 0)) for _, w, r, b in rooms)
        if left < 0:
            high = middle
        elif left <= len(rooms):
            return middle
        else:
            low = middle

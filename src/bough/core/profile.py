"""How many devices are free from now on: what has been promised of the future, and what has not."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Profile:
    """Free devices over time: `free[k]` of them from `times[k]` to `times[k + 1]`.

    `times[0]` is now; the last segment never ends. Plain lists, because a plan of the future has
    few segments and is changed piece by piece.
    """

    __slots__ = ("free", "times")

    def __init__(self, now: float, devices: int) -> None:
        self.times = [now]
        self.free = [devices]

    def copy(self) -> Profile:
        """An equal one that changes apart."""
        made = Profile.__new__(Profile)
        made.times, made.free = self.times.copy(), self.free.copy()
        return made

    def at(self, moment: float) -> int:
        """Devices free at a moment, which must not lie in the past."""
        return self.free[bisect_right(self.times, moment) - 1]

    def cut(self, moment: float) -> int:
        """The segment that begins at this moment, made by dividing another if there is none.

        What is past is now, and what is endless begins behind the last segment.
        """
        times = self.times
        index = bisect_left(times, moment)
        if index == 0 or (index < len(times) and times[index] == moment):
            return index
        if moment == float("inf"):
            return len(times)
        times.insert(index, moment)
        self.free.insert(index, self.free[index - 1])
        return index

    def take(self, begin: float, end: float, devices: int) -> None:
        """So many devices are in use between two moments (fewer than none: they are given back)."""
        first, free = self.cut(begin), self.free
        for k in range(first, self.cut(end)):
            free[k] -= devices

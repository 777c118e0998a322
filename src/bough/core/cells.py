"""Cells: blocks of devices, halved when a smaller one is asked for (buddy allocation)."""

from __future__ import annotations

from collections.abc import Iterable


def power_above(size: int) -> int:
    """The least power of two that is no less."""
    return 1 << (size - 1).bit_length()


class Cells:
    """Free cells by size: powers of two up to the largest, of which larger asks take several.

    Cells are counted and have no place. What is taken out and put back merges by itself, as the
    books are opened anew from what is owned whenever they are needed.
    """

    __slots__ = ("free", "top")

    def __init__(self, owned: Iterable[int], top: int) -> None:
        #: Size of the largest cell, and free cells of each size.
        self.top = top
        self.free: dict[int, int] = {}
        for cell in owned:
            size, whole = min(cell, top), -(-cell // top)
            self.free[size] = self.free.get(size, 0) + whole

    def take(self, size: int) -> bool:
        """Take what so many devices need, if it is there: the smallest cell, halved as needed."""
        if size >= self.top:
            return self._take_whole(-(-size // self.top))
        need = power_above(size)
        cell = min((c for c, count in self.free.items() if count and c >= need), default=0)
        if not cell:
            return False
        self.free[cell] -= 1
        while cell > need:
            cell //= 2
            self.free[cell] = self.free.get(cell, 0) + 1
        return True

    def _take_whole(self, count: int) -> bool:
        have = self.free.get(self.top, 0)
        if have < count:
            return False
        self.free[self.top] = have - count
        return True


def cells_of(devices: int, top: int) -> list[int]:
    """The fewest cells that so many devices make up."""
    whole, rest = divmod(devices, top)
    powers = [1 << bit for bit in range(rest.bit_length()) if rest >> bit & 1]
    return [top] * whole + powers[::-1]

"""Which devices of one node to hand out: aligned blocks, so that neighbours stay together.

A node's devices are numbered so that neighbours are close (pairs, islands, sockets). Parts of a
node are aligned blocks of 1, 2, 4 … devices and the node's own inner domains; a choice takes the
smallest part that holds it, and among those the fullest, so that larger parts stay whole (the
buddy rule). Every choice is a function of the bit masks alone, and is remembered.
"""

from __future__ import annotations

from functools import lru_cache

#: Choices remembered before the memory is emptied (a wide node has many masks).
REMEMBERED = 1 << 16


class Blocks:
    """The parts of a node with `width` devices; `inner` are its domains' sizes, ascending."""

    __slots__ = ("chosen", "grown", "inner", "parts", "width")

    def __init__(self, width: int, inner: tuple[int, ...] = ()) -> None:
        self.width = width
        self.inner = inner
        powers = {1 << i for i in range((width - 1).bit_length())}
        sizes = sorted({s for s in powers | set(inner) if s < width} | {width})
        #: For each size of part, ascending: the masks of its parts.
        self.parts: list[list[int]] = [cut(width, size) for size in sizes]
        #: Remembered answers of `pick`: size -> free mask -> chosen mask.
        self.chosen: list[dict[int, int]] = [{} for _ in range(width + 1)]
        self.grown: dict[tuple[int, int, int], int] = {}

    def pick(self, free: int, size: int) -> int:
        """Choose `size` of the free devices (there must be as many)."""
        known = self.chosen[size]
        found = known.get(free)
        if found is None:
            if len(known) * self.width >= REMEMBERED:
                known.clear()
            found = known[free] = self._pick(free, size)
        return found

    def _pick(self, free: int, size: int) -> int:
        if size == 0 or free.bit_count() == size:
            return free if size else 0
        at, part = self._smallest(free, size)
        inside = free & part
        if inside.bit_count() == size:
            return inside
        # No smaller part holds them all: empty the fullest of those, then choose the rest.
        fullest = max(self.parts[at - 1], key=lambda p: ((inside & p).bit_count(), -p))
        taken = inside & fullest
        return taken | self.pick(inside ^ taken, size - taken.bit_count())

    def _smallest(self, free: int, size: int) -> tuple[int, int]:
        """The smallest part with `size` free devices; the one with least to spare, then lowest."""
        for at, parts in enumerate(self.parts):
            fits = [p for p in parts if (free & p).bit_count() >= size]
            if fits:
                return at, min(fits, key=lambda p: (self._spare(free, p, at), p))
        raise AssertionError(f"{size} devices are not free in {free:b}")

    def _spare(self, free: int, part: int, at: int) -> list[int]:
        """Free devices in this part and in the larger parts around it, from small to large."""
        around = [p for parts in self.parts[at + 1 :] for p in parts if p & part == part]
        return [(free & p).bit_count() for p in (part, *around)]

    def grow(self, free: int, held: int, size: int) -> int:
        """Choose `size` of the free devices, as close as possible to those held."""
        if not held:
            return self.pick(free, size)
        key = (free, held, size)
        found = self.grown.get(key)
        if found is None:
            if len(self.grown) >= REMEMBERED:
                self.grown.clear()
            found = self.grown[key] = self._grow(free, held, size)
        return found

    def _grow(self, free: int, held: int, size: int) -> int:
        at, part = next(
            (at, part)
            for at, parts in enumerate(self.parts)
            for part in parts
            if held & ~part == 0 and (free & part).bit_count() >= size
        )
        left = free & part
        if left.bit_count() == size:
            return left
        taken = 0
        if at:  # complete the parts it has devices in, the fullest first
            begun = [p for p in self.parts[at - 1] if p & held & part]
            for p in sorted(begun, key=lambda p: (-(p & held).bit_count(), p)):
                there = left & p
                if there.bit_count() > size:
                    return taken | self.grow(there, held & p, size)
                taken |= there
                left ^= there
                size -= there.bit_count()
        return taken | self.pick(left, size)

    def level(self, mask: int) -> int:
        """The lowest inner level (0 …) that holds all of the mask; len(inner) is the node."""
        low = (mask & -mask).bit_length() - 1
        high = mask.bit_length() - 1
        for level, size in enumerate(self.inner):
            if low // size == high // size:
                return level
        return len(self.inner)

    def around(self, mask: int, level: int) -> int:
        """All devices of the domain of inner `level` that holds a mask."""
        size = self.inner[level]
        low = (mask & -mask).bit_length() - 1
        return ((1 << size) - 1) << (low - low % size) & ((1 << self.width) - 1)

    def within(self, free: int, size: int, level: int) -> int:
        """The fullest domain of inner `level` with `size` devices free, as the free mask in it."""
        parts = cut(self.width, min(self.inner[level], self.width))
        fits = [p & free for p in parts if (p & free).bit_count() >= size]
        return min(fits, key=lambda m: (m.bit_count(), m), default=0)


def cut(width: int, size: int) -> list[int]:
    """Masks of the parts of `size` devices that `width` devices are cut into."""
    whole = (1 << width) - 1
    block = (1 << size) - 1
    return [(block << low) & whole for low in range(0, width, size)]


@lru_cache(maxsize=4096)
def numbers(mask: int) -> tuple[int, ...]:
    """The device numbers of a mask, ascending."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)

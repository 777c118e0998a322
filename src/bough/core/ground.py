"""What a policy sees that says where jobs go: the nodes of a kind, what is free, who is on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

from bough.core.jobs import Slots
from bough.core.terms import Terms

#: More ways than this to choose devices of one node are not all looked at.
WAYS_MAX = 256


@dataclass(slots=True)
class Site:
    """One node."""

    #: Its number in the tree, which is what places are made of.
    index: int
    #: Devices in all, and those that may be had now, as bits.
    width: int
    free: int
    terms: Terms
    #: Domains above it, from the top.
    path: tuple[str, ...] = ()
    pool: int = 0
    #: Devices that each row of the view holds there: row -> bits; -1: all others.
    held: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Ground:
    """All nodes of one kind that take jobs; of all kinds where a policy looks at all at once."""

    sites: list[Site]
    #: Devices of the domains within a node, the innermost first; empty: a node is all one.
    inner: tuple[int, ...] = ()
    #: What each row of the view holds.
    places: list[Slots] = field(default_factory=list)
    #: Devices of each row that keep its state (of chiefs and parameter servers); 0: none is named;
    #: -1: those need no device.
    keep: list[int] = field(default_factory=list)
    #: Bytes that each row takes along when it moves.
    state_bytes: list[float] = field(default_factory=list)

    def domain(self, site: Site) -> int:
        """Devices of the innermost domain on a node."""
        return min(self.inner[0], site.width) if self.inner else site.width


def take(site: Site, row: int, mask: int) -> None:
    """Note that a row is to have these devices."""
    assert site.free & mask == mask
    site.free &= ~mask
    site.held[row] = site.held.get(row, 0) | mask


def parts(site: Site, size: int) -> list[int]:
    """The masks of the domains of so many devices on a node."""
    whole = (1 << size) - 1
    return [(whole << at) & ((1 << site.width) - 1) for at in range(0, site.width, size)]


def ways(site: Site, count: int, domain: int) -> list[int]:
    """Ways to have so many free devices of a node: all, or those that fill domains in turn."""
    bits = [1 << at for at in range(site.width) if site.free >> at & 1]
    if count > len(bits):
        return []
    found = 1
    for at in range(count):
        found = found * (len(bits) - at) // (at + 1)
    if found <= WAYS_MAX:
        return [sum(chosen) for chosen in combinations(bits, count)]
    fullest = sorted(parts(site, domain), key=lambda p: (-(site.free & p).bit_count(), p))
    ordered = [bit for part in fullest for bit in bits if bit & part]
    return [sum(ordered[:count])]

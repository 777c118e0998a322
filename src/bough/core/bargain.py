"""What work is expected to cost on reserved and on spot devices, evictions included."""

from __future__ import annotations

from typing import NamedTuple

from bough.core.ground import Ground, Site, take, ways
from bough.core.jobs import Slots

HOUR_SECONDS = 3600.0


class Offer(NamedTuple):
    """So many devices: what a unit of work is expected to cost with them, and how fast it is."""

    size: int
    cost: float
    speed: float
    chosen: tuple[tuple[Site, int], ...] = ()


class Risk(NamedTuple):
    """Seconds lost by an eviction: until a job runs again, and of work that has to be done anew."""

    restart_seconds: float
    anew_seconds: float


def expected(chosen: tuple[tuple[Site, int], ...], size: int, speed: float, risk: Risk) -> Offer:
    """Of these devices at this speed.

    Any spot node that goes stops the job; with a device on a reserved node its state is kept, and
    nothing has to be done anew. Time grows by what evictions take of it.
    """
    price = sum(site.terms.price * mask.bit_count() for site, mask in chosen)
    rate = sum(site.terms.evictions_per_hour for site, _ in chosen) / HOUR_SECONDS
    sure = any(site.terms.tier == "reserved" for site, _ in chosen)
    lost = risk.restart_seconds + (0.0 if sure else risk.anew_seconds)
    slower = 1.0 + rate * lost
    return Offer(size, price / HOUR_SECONDS * slower / speed, speed / slower, chosen)


def pick(sites: list[Site], count: int, domain: int) -> tuple[tuple[Site, int], ...] | None:
    """So many free devices of these nodes: on the tightest that has all, else on the roomiest."""
    if not count:
        return ()
    fits = [site for site in sites if site.free.bit_count() >= count]
    if fits:
        best = min(fits, key=lambda s: (s.terms.price, s.terms.evictions_per_hour,
                                        s.free.bit_count(), s.index))  # fmt: skip
        return ((best, ways(best, count, domain)[0]),)
    found, left = [], count
    for site in sorted(sites, key=lambda s: (-s.free.bit_count(), s.index)):
        part = min(left, site.free.bit_count())
        if part:
            found.append((site, ways(site, part, domain)[0]))
            left -= part
    return None if left else tuple(found)


def offers(ground: Ground, size: int, keep: int, speed: float, risk: Risk) -> list[Offer]:
    """Ways to have so many devices: all reserved; what keeps the state reserved and the others
    spot; as much spot as there is; all spot. Where `keep` devices are named, they are reserved.
    Whose state needs no device (keep below 0) has nothing to do anew in its `risk`."""
    sure = [site for site in ground.sites if site.terms.tier == "reserved"]
    spot = [site for site in ground.sites if site.terms.tier == "spot"]
    domain = min(ground.inner, default=max((s.width for s in ground.sites), default=1))
    cheap = sum(site.free.bit_count() for site in spot)
    counts = {size, max(keep, 1), max(size - cheap, keep), keep}
    keep, found = max(keep, 0), []
    for reserved in sorted(count for count in counts if keep <= count <= size):
        own, other = pick(sure, reserved, domain), pick(spot, size - reserved, domain)
        if own is not None and other is not None:
            found.append(expected((*own, *other), size, speed, risk))
    return found


def take_all(row: int, chosen: tuple[tuple[Site, int], ...]) -> Slots:
    """Note that a row is to have these devices; as places are written."""
    for site, mask in chosen:
        take(site, row, mask)
    return tuple(sorted((site.index, mask) for site, mask in chosen))

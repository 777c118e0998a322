"""What a set of devices is worth to a job and to the cluster: near each other, alone, no fragments.

The three costs of Amaral et al. (SC '17), each between 0 and 1, and the utility made of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Final, NamedTuple

from bough.core.ground import Ground, Site, parts, ways
from bough.core.jobs import Slots

#: A cost is no less than this, so that none of them makes the others meaningless.
COST_MIN: Final = 0.01
#: Between two devices of one innermost domain, of one node, and of different nodes. The first two
#: are the paper's (a socket, two sockets), the last is ours.
NEAR, ACROSS, APART = 1.0, 20.0, 40.0
#: Nodes that are alike are looked at once; of those that differ, so many.
SITES_MAX: Final = 64


class Costs(NamedTuple):
    """What speaks against a set of devices; 0 is best, 1 is worst."""

    communication: float
    interference: float
    fragmentation: float

    def utility(self, weights: tuple[float, float, float]) -> float:
        """1 at best: what the system has of it."""
        return scaled(list(self), list(weights))

    def for_job(self, weights: tuple[float, float, float]) -> float:
        """The same without fragmentation, whose weight the other two share."""
        more = weights[2] / 2
        return scaled(list(self[:2]), [weights[0] + more, weights[1] + more])


def scaled(costs: list[float], weights: list[float]) -> float:
    """One over the sum of costs, each to the power of its weight, over what is best."""

    def total(of: list[float]) -> float:
        pairs = zip(of, weights, strict=True)
        return math.fsum(max(cost, COST_MIN) ** weight for cost, weight in pairs)

    return total([COST_MIN] * len(costs)) / total(costs)


def candidates(ground: Ground, count: int) -> Iterator[tuple[tuple[Site, int], ...]]:
    """Sets of so many free devices: on one node all ways, else whole nodes, fullest first.

    Nodes with the same devices free and the same neighbours are one node to choose.
    """
    seen: set[tuple[int, int, tuple[tuple[int, int], ...]]] = set()
    for site in ground.sites:
        alike = (site.width, site.free, tuple(sorted(site.held.items())))
        if alike in seen or len(seen) >= SITES_MAX:
            continue
        seen.add(alike)
        for mask in ways(site, count, ground.domain(site)):
            yield ((site, mask),)
    roomiest = sorted(ground.sites, key=lambda s: (-s.free.bit_count(), s.index))
    if not roomiest or roomiest[0].free.bit_count() >= count:
        return
    left, found = count, []
    for site in roomiest:
        part = min(left, site.free.bit_count())
        if part:
            found.append((site, ways(site, part, ground.domain(site))[0]))
            left -= part
    if not left:
        yield tuple(found)


def costs(ground: Ground, chosen: tuple[tuple[Site, int], ...], loss: float) -> Costs:
    """Of devices that are free now; neighbours make each other slower by `loss` at most."""
    return Costs(
        _communication(ground, chosen),
        _interference(ground, chosen, loss),
        _fragmentation(ground, chosen),
    )


def _communication(ground: Ground, chosen: tuple[tuple[Site, int], ...]) -> float:
    """Distances of all pairs, over what is best and worst for so many devices."""
    groups = [
        (site.index, (mask & part).bit_count())
        for site, mask in chosen
        for part in parts(site, ground.domain(site))
        if mask & part
    ]
    count = sum(n for _, n in groups)
    total = sum(NEAR * n * (n - 1) / 2 for _, n in groups)
    for (node, n), (other, m) in combinations(groups, 2):
        total += n * m * (ACROSS if node == other else APART)
    pairs = count * (count - 1) / 2
    best = _best_distance(ground, count)
    worst = pairs * (APART if len(ground.sites) > 1 else ACROSS)
    return max(total - best, 0.0) / (worst - best) if worst > best else 0.0


def _best_distance(ground: Ground, count: int) -> float:
    """Distances of all pairs in the best place that an empty cluster would have."""
    widest = max((site.width for site in ground.sites), default=1)
    domain = max((ground.domain(site) for site in ground.sites), default=1)
    nodes = [widest] * (count // widest) + [count % widest] * (count % widest > 0)
    total, placed = 0.0, 0
    for own in nodes:
        near = [domain] * (own // domain) + [own % domain] * (own % domain > 0)
        within = sum(NEAR * n * (n - 1) / 2 for n in near)
        pairs = own * (own - 1) / 2
        total += within + ACROSS * (pairs - sum(n * (n - 1) / 2 for n in near))
        total += APART * placed * own
        placed += own
    return total


def _interference(ground: Ground, chosen: tuple[tuple[Site, int], ...], loss: float) -> float:
    """One less the mean, over it and its neighbours, of time alone over time beside each other."""
    shares: dict[int, list[float]] = {}
    for site, mask in chosen:
        for part in parts(site, ground.domain(site)):
            if not mask & part:
                continue
            own = (mask & part).bit_count()
            size = part.bit_count()
            others = {row: (held & part).bit_count() for row, held in site.held.items()}
            shares.setdefault(-2, []).append(sum(others.values()) / size)
            for row, held in others.items():
                if held:
                    shares.setdefault(row, []).append(own / size)
    ratios = [1.0 - loss * sum(of) / len(of) for of in shares.values()]
    return 1.0 - sum(ratios) / len(ratios)


def _fragmentation(ground: Ground, chosen: tuple[tuple[Site, int], ...]) -> float:
    """The mean share of the domains it is on that stays free beside it."""
    left = [
        (site.free & ~mask & part).bit_count() / part.bit_count()
        for site, mask in chosen
        for part in parts(site, ground.domain(site))
        if mask & part
    ]
    return sum(left) / len(left)


def as_slots(chosen: tuple[tuple[Site, int], ...]) -> Slots:
    """As places are written."""
    return tuple(sorted((site.index, mask) for site, mask in chosen))

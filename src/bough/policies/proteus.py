"""Proteus: jobs run where work is expected to cost least, on reserved nodes and on spot ones."""

from __future__ import annotations

import numpy as np

from bough.core.bargain import Offer, Risk, expected, offers, take_all
from bough.core.ground import Ground
from bough.core.jobs import Slots
from bough.core.model import INFINITY
from bough.core.policy import Ints, Plan, Policy, View
from bough.core.share import in_order


class Proteus(Policy, frozen=True):
    """Spot devices where they are cheaper, evictions included; a job's state on reserved ones.

    Citation: Harlap et al., "Proteus: agile ML elasticity through tiered reliability in dynamic
    resource markets", EuroSys '17.
    Faithful: two tiers of nodes; what keeps a job's state (parameter servers, the chief) is on
    reserved ones, and none of the others need be there when spot nodes are many; the choice is by
    expected cost for each unit of work, with the chance of evictions, the work they undo and
    the time they take.
    Ours (its equations were not available): nodes carry tier, price and eviction rate; a node that
    is evicted stops the job, which goes on elsewhere; a job takes the fastest choice of those that
    cost at most `thrift` of its wished size on reserved devices, or the cheapest; sizes are those
    it allows. Jobs are served in order of submission, then grow; none is stopped or moved.
    """

    places = True

    #: What a unit of work may cost, of what it costs at the wished size on reserved devices.
    thrift: float = 0.5
    #: Seconds from an eviction until a job runs again.
    restart_seconds: float = 60.0
    #: How often a job saves its work; half of that is expected to be lost where nothing keeps it.
    checkpoint_seconds: float = 1800.0

    def __post_init__(self) -> None:
        if not self.thrift > 0:
            raise ValueError("thrift must be positive")
        if not (0 <= self.restart_seconds < INFINITY and 0 <= self.checkpoint_seconds < INFINITY):
            raise ValueError("restart_seconds and checkpoint_seconds must be 0 or more, and finite")

    def plan(self, view: View) -> Plan:
        jobs, ground = view.jobs, view.ground
        order = in_order(view, jobs.size == 0)
        sizes = np.where(jobs.size > 0, np.clip(jobs.size, jobs.lo, jobs.hi), 0)
        if ground is None:
            return Plan(self._blind(view, order, sizes))
        places: dict[int, Slots] = {}
        free = view.devices - int(sizes.sum())
        for grows in (False, True):
            for row in order[(sizes[order] > 0) == grows].tolist():
                if row not in places:
                    offer = self._best(view, ground, row, int(sizes[row]), free)
                    if offer is not None:
                        places[row] = merged(ground.places[row], take_all(row, offer.chosen))
                        free -= offer.size - int(sizes[row])
                        sizes[row] = offer.size
        return Plan(sizes, places=places)

    def _best(self, view: View, ground: Ground, row: int, held: int, free: int) -> Offer | None:
        """What a job should have now; a running one: to what it should grow, if at all."""
        jobs, keep = view.jobs, ground.keep[row]
        risk = Risk(self.restart_seconds, self.checkpoint_seconds / 2 if keep >= 0 else 0.0)
        steps = view.classes.sizes[jobs.cls[row]]
        speed = dict(zip(steps.tolist(), view.classes.speed[jobs.cls[row]].tolist(), strict=True))
        wish = int(max(jobs.min[row], jobs.wish[row]))
        bound = self.thrift * _reserved_price(ground) * wish / speed[wish]
        least, most = max(jobs.lo[row], held + 1), min(jobs.hi[row], held + free)
        sizes = [size for size in speed if least <= size <= most]
        found = [
            self._whole(ground, row, offer, speed[size], risk)
            for size in sizes
            for offer in offers(
                ground, size - held, min(keep, 0) if held else keep, speed[size], risk
            )
        ]
        good = [offer for offer in found if offer.cost <= bound * (1 + 1e-9)]
        if good:
            return max(good, key=lambda o: (o.speed, -o.cost))
        return None if held else min(found, key=lambda o: (o.cost, -o.speed), default=None)

    def _whole(self, ground: Ground, row: int, more: Offer, speed: float, risk: Risk) -> Offer:
        """The offer with what the job holds already."""
        sites = {site.index: site for site in ground.sites}
        own = [(sites[i], mask) for i, mask in ground.places[row] if i in sites]
        masks = {site.index: mask for site, mask in more.chosen}
        joint = [(site, mask | masks.pop(site.index, 0)) for site, mask in own]
        joint += [(sites[i], mask) for i, mask in masks.items()]
        size = sum(mask.bit_count() for _, mask in joint)
        return expected(tuple(joint), size, speed, risk)._replace(chosen=more.chosen)

    def _blind(self, view: View, order: Ints, sizes: Ints) -> Ints:
        """Where nothing is known of nodes: leasts in order."""
        free = view.devices - int(sizes.sum())
        for row in order.tolist():
            least = int(view.jobs.lo[row])
            if not sizes[row] and least <= free:
                sizes[row], free = least, free - least
        return sizes


def merged(held: Slots, more: Slots) -> Slots:
    """All devices of both."""
    masks = dict(held)
    for index, mask in more:
        masks[index] = masks.get(index, 0) | mask
    return tuple(sorted(masks.items()))


def _reserved_price(ground: Ground) -> float:
    """Money for each second of a reserved device; without any, of the dearest there is."""
    prices = [s.terms.price for s in ground.sites if s.terms.tier == "reserved"]
    prices = prices or [s.terms.price for s in ground.sites]
    return max(prices, default=0.0) / 3600.0

"""Topology-aware: jobs go where devices are near each other, alone, and leave no fragments."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from bough.core.ground import take
from bough.core.jobs import Slots
from bough.core.policy import Plan, Policy, View
from bough.core.share import in_order, wished
from bough.core.utility import as_slots, candidates, costs

#: How much communication, interference and fragmentation weigh.
WEIGHTS: Final = {
    "neutral": (1 / 3, 1 / 3, 1 / 3),
    "locality": (0.8, 0.1, 0.1),
    "interference": (0.1, 0.8, 0.1),
    "spread": (0.1, 0.1, 0.8),
}


class TopologyAware(Policy, frozen=True):
    """First come, first served, to the devices of greatest utility; who had too little waits.

    Citation: Amaral et al., "Topology-aware GPU scheduling for learning workloads in cloud
    environments", SC '17, and its released code.
    Faithful: the utility of a set of devices from communication (distances of all pairs over the
    best and the worst for so many), interference (time alone over time beside others, of the job
    and of its neighbours) and fragmentation (what stays free of the domains it is on), each to the
    power of its weight; within a node all sets are looked at; a job whose own utility would be
    below `least_utility` is postponed, and served first as devices become free.
    Ours: jobs that need more than a node has take the roomiest nodes (in place of the recursive
    bipartition of both graphs); neighbours slow each other by `loss` times the share of the domain
    that the other holds (in place of measured pairs); the distance between nodes. Jobs that run
    are never moved. The released code's limit of three devices, and that one helper looks at
    the first machine only, are not repeated.
    """

    places = True

    #: What counts most: "neutral", "locality", "interference" or "spread".
    weights: Literal["neutral", "locality", "interference", "spread"] = "neutral"
    #: A job waits rather than have less; the paper's jobs draw it from 0.30 to 0.52.
    least_utility: float = 0.4
    #: The part of its speed that a job loses whose whole domain others hold.
    loss: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.least_utility <= 1:
            raise ValueError("least_utility must be within 0..1")
        if not 0 <= self.loss < 1:
            raise ValueError("loss must be 0 or more and less than 1")

    def plan(self, view: View) -> Plan:
        jobs, ground = view.jobs, view.ground
        order, wish = in_order(view, jobs.size == 0), wished(jobs, keep=True)
        sizes, free = np.zeros(jobs.n, np.int64), view.devices
        places: dict[int, Slots] = {}
        postponed: dict[int, str] = {}
        for row in order.tolist():
            size = int(wish[row])
            if size > free:
                continue
            if not jobs.size[row] and ground is not None:
                found = self._best(view, row, size)
                if found is None:
                    postponed[row] = "policy"
                    continue
                places[row] = found
            sizes[row], free = size, free - size
        return Plan(sizes, places=places, reasons=postponed)

    def _best(self, view: View, row: int, size: int) -> Slots | None:
        """The free devices of greatest utility, which are taken; None: better wait."""
        ground, weights = view.ground, WEIGHTS[self.weights]
        assert ground is not None
        best, most = None, -1.0
        for chosen in candidates(ground, size):
            found = costs(ground, chosen, self.loss)
            utility = found.utility(weights)
            if utility > most and found.for_job(weights) >= self.least_utility:
                best, most = chosen, utility
        if best is None:
            return None
        for site, mask in best:
            take(site, row, mask)
        return as_slots(best)

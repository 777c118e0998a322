"""Places chosen as a peer's simulator chooses them, instead of by the tree of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bough.core.cluster import Cluster, parse_short
from bough.core.jobs import Slots
from bough.core.topology import Topology
from bough.sim.engine import Engine
from bough.sim.record import RunRecord

#: Devices free on each node as bit masks, and how many are wanted: the place, or None.
Rule = Callable[[list[int], int], Slots | None]


def place_by(engine: Engine, rule: Rule) -> None:
    """For this replay, set the tree's own search aside."""
    topology: Topology = engine.scheduler.state.topology

    def find(pool: int, size: int, **_: Any) -> Slots | None:
        return rule(topology.free_masks, size)

    vars(topology)["find"] = find


def counted(devices: int, kind: str) -> Cluster:
    """All devices on one node: what a simulator does that counts devices and places nothing."""
    return parse_short(f"{devices}x{kind}")


def replay_counted(engine: Engine) -> RunRecord:
    """Replay on such a cluster; which devices of a wide node a job has is not worth a thought."""
    place_by(engine, counting)
    return engine.run()


def counting(free: list[int], size: int) -> Slots | None:
    """Any devices of the one node: they are counted, and where they are means nothing."""
    return ((0, lowest(free[0], size)),) if free[0].bit_count() >= size else None


def first_fit(width: int) -> Rule:
    """The first node with room; for more than `width` devices the first idle nodes (Tiresias)."""
    whole = (1 << width) - 1

    def rule(free: list[int], size: int) -> Slots | None:
        if size <= width:
            for node, mask in enumerate(free):
                if mask.bit_count() >= size:
                    return ((node, lowest(mask, size)),)
            return None
        idle = [(node, mask) for node, mask in enumerate(free) if mask == whole]
        if size % width or len(idle) < size // width:
            return None
        return tuple(idle[: size // width])

    return rule


def freest_first(free: list[int], size: int) -> Slots | None:
    """From the node with most free devices, then the next, until there are enough (Pollux)."""
    if sum(mask.bit_count() for mask in free) < size:
        return None
    place = []
    for node in sorted(range(len(free)), key=lambda n: -free[n].bit_count()):
        taken = lowest(free[node], min(size, free[node].bit_count()))
        place.append((node, taken))
        size -= taken.bit_count()
        if not size:
            break
    return tuple(sorted(place))


def lowest(mask: int, count: int) -> int:
    """The lowest bits of a mask."""
    taken = 0
    for _ in range(count):
        bit = mask & -mask
        taken |= bit
        mask &= ~bit
    return taken

"""Room for a job that was granted devices but found no place for them: smaller jobs move aside.

Where all sizes are powers of two and nodes are too, what is free always suffices, if jobs are
placed from the largest to the smallest: each leaves room in whole blocks of its size (the buddy
system, and ElasticFlow's placement, ASPLOS '23, section 4.3). Here only those move that are in the
way: the fewest devices' worth on one node, or on as many nodes as are needed. Who moved finds a
place as the larger one did, and what it needs for that are smaller jobs still.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bough.core.jobs import Slots
from bough.core.state import POOL

if TYPE_CHECKING:
    from bough.core.settle import Settlement

#: On each node: the rows that hold some of it, and how many of its devices.
Tenants = dict[int, dict[int, int]]


def make_way(trial: Settlement, row: int, want: int) -> bool:
    """Give a job its devices by moving smaller ones, if all of them find a place again."""
    state = trial.state
    items, pool = state.table.items, int(state.table.wi[POOL, row])
    if not items[row].plain or state.topology.free(pool) + held(items[row].place) < want:
        return False
    before = {row: items[row].place}
    trial.hold(row, items[row], ())
    homeless = [(want, row)]
    while homeless:
        homeless.sort()
        size, mover = homeless.pop()
        found = state.find(items[mover], pool, size)
        if found is None:
            away = in_the_way(trial, pool, size)
            for other in away:
                before.setdefault(other, items[other].place)
                homeless.append((held(items[other].place), other))
                trial.hold(other, items[other], ())
            found = state.find(items[mover], pool, size) if away else None
        if found is None:
            put_back(trial, before)
            return False
        trial.hold(mover, items[mover], *found)
    return True


def put_back(trial: Settlement, before: dict[int, Slots]) -> None:
    """Everybody holds again what it held."""
    items = trial.state.table.items
    for row in before:
        trial.hold(row, items[row], ())
    for row, place in before.items():
        if place:
            trial.hold(row, items[row], place)


def in_the_way(trial: Settlement, pool: int, size: int) -> list[int]:
    """Which smaller jobs to move so that so many devices are together; none: it cannot be."""
    topology = trial.state.topology
    nodes = [n for n, own in enumerate(topology.pools) if own == pool and open_to_all(trial, n)]
    tenants = movable(trial, pool, size)
    widest = max((topology.nodes[n].devices for n in nodes), default=0)
    if size > widest:
        ways = [whole_nodes(trial, tenants, group, size) for group in groups(trial, nodes, size)]
    else:
        ways = [from_node(trial, tenants[n], n, size) for n in nodes if n in tenants]
    return min((way for way in ways if way), key=lambda way: cost(trial, way), default=[])


def open_to_all(trial: Settlement, node: int) -> bool:
    """Whether devices of this node may be handed out."""
    topology = trial.state.topology
    return topology.up[node] and not topology.drained[node]


def movable(trial: Settlement, pool: int, size: int) -> Tenants:
    """Who may be moved for the sake of a job of this size, node by node."""
    table = trial.state.table
    found: Tenants = {}
    able = (table.pool == pool) & (table.must == 0) & (table.busy == 0)
    for row in able.nonzero()[0].tolist():
        job = table.items[row]
        if job.place and job.plain and held(job.place) < size:
            for node, mask in job.place:
                found.setdefault(node, {})[row] = mask.bit_count()
    return found


def from_node(trial: Settlement, there: dict[int, int], node: int, size: int) -> list[int]:
    """Whom to move from this node, the largest first, until so many devices are free there."""
    missing = size - trial.state.topology.free_masks[node].bit_count()
    if sum(there.values()) < missing:
        return []
    chosen, least = [], min(there.values())
    for row in sorted(there, key=lambda row: (-there[row], row)):
        if missing <= 0:
            break
        # Where one is more than is needed, smaller ones may be just that.
        if there[row] <= missing or there[row] == least:
            chosen.append(row)
            missing -= there[row]
    return chosen if missing <= 0 else []


def whole_nodes(trial: Settlement, tenants: Tenants, nodes: list[int], size: int) -> list[int]:
    """Whom to move from the nodes that are cheapest to empty, until they suffice."""
    topology = trial.state.topology
    emptied = []
    for node in nodes:
        moving = sum(tenants[node].values()) if node in tenants else 0
        if topology.free_masks[node].bit_count() + moving == topology.nodes[node].devices:
            emptied.append((moving, node))
    chosen: list[int] = []
    for _, node in sorted(emptied):
        if size <= 0:
            break
        size -= topology.nodes[node].devices
        chosen += [row for row in tenants.get(node, ()) if row not in chosen]
    return chosen if size <= 0 else []


def groups(trial: Settlement, nodes: list[int], size: int) -> Iterator[list[int]]:
    """Nodes that are near each other and would be enough: racks, or else all of them."""
    topology = trial.state.topology
    racks: dict[int, list[int]] = {}
    for node in nodes:
        racks.setdefault(topology.racks[node], []).append(node)
    enough = [g for g in racks.values() if sum(topology.nodes[n].devices for n in g) >= size]
    yield from enough or [nodes]


def cost(trial: Settlement, rows: list[int]) -> int:
    """Devices of those that would be moved."""
    items = trial.state.table.items
    return sum(held(items[row].place) for row in rows)


def held(place: Slots) -> int:
    """Devices of a place."""
    return place[0][1].bit_count() if len(place) == 1 else sum(m.bit_count() for _, m in place)

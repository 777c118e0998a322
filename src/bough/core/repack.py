"""Placing everything anew at each decision, free to move jobs: what many simulators do.

"best" looks for the tightest place in the tree, "first" takes the first nodes that have room, in
the order of the nodes: needed to reproduce results of simulators that do so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bough.core.jobs import Slots
from bough.core.planning import Draft
from bough.core.policy import Ints
from bough.core.settle import Settlement
from bough.core.state import POOL, State

Fit = Callable[[int, int], Slots | None]
_BIG = 1 << 60


def repack(trial: Settlement, draft: Draft, how: str) -> bool:
    """Empty the tree, place what the plan grants in its order, pass over what does not fit."""
    state = trial.state
    for row, pool in draft.moved.items():
        trial.hold(row, state.table.items[row], ())
        trial.repool(row, pool)
    if not draft.orders:
        rows = (draft.want > 0).nonzero()[0]
        rows = rows[np.argsort(-draft.want[rows], kind="stable")]
        draft.orders.append((rows, draft.want, int(draft.want.sum()), True))
    if how == "first":
        places: dict[int, Slots] = {}
        fit = FirstFit(state)
        for order, wished, devices, skip in draft.orders:
            walk(state, order, wished, devices, skip, fit.find, places)
        for row in state.table.size.nonzero()[0].tolist():
            if places.get(row) != state.table.items[row].place:
                trial.hold(row, state.table.items[row], ())
        for row, place in places.items():
            if place != state.table.items[row].place:
                trial.hold(row, state.table.items[row], place)
        return True
    for row in state.table.size.nonzero()[0].tolist():
        trial.hold(row, state.table.items[row], ())
    for order, wished, devices, skip in draft.orders:

        def best(row: int, size: int) -> Slots | None:
            job = state.table.items[row]
            found = trial.look(row, job, int(state.table.wi[POOL, row]), size, ())
            if found is None:
                return None
            trial.hold(row, job, *found)
            return found[0]

        walk(state, order, wished, devices, skip, best, {})
    return True


def walk(
    state: State, order: Ints, wished: Ints, left: int, skip: bool, fit: Fit,
    places: dict[int, Slots],
) -> None:  # fmt: skip
    """Place rows in order while devices are left."""
    sizes = wished[order]
    rows = order[(sizes > 0) & (sizes <= left)]
    limit = _BIG
    for row, size in zip(rows.tolist(), wished[rows].tolist(), strict=True):
        place = None
        if size <= left and (size < limit or not state.table.items[row].plain):
            place = fit(row, size)
            if place is None and state.table.items[row].plain:
                limit = size
        if place is not None:
            places[row] = place
            left -= size
            if left <= 0:
                return
        elif not skip:
            return


class FirstFit:
    """Free devices by node, taken in the order of the nodes; the tree itself is not touched."""

    def __init__(self, state: State) -> None:
        self.state = state
        topology = state.topology
        self.free = list(topology.free_masks)
        for job in state.table.items:
            for node, mask in job.place:
                self.free[node] |= mask
        self.width = [node.devices for node in topology.nodes]
        self.pools = topology.pools

    def find(self, row: int, size: int) -> Slots | None:
        """The first node with room; for more than a node has, idle nodes and a part of one more."""
        pool = int(self.state.table.wi[POOL, row])
        idle: list[int] = []
        part: int | None = None
        for node, mask in enumerate(self.free):
            if self.pools[node] != pool:
                continue
            if size >= self.width[node]:
                if mask.bit_count() == self.width[node]:
                    idle.append(node)
                    size -= self.width[node]
                    if not size:
                        return self._take(idle, 0)
            elif mask.bit_count() >= size:
                part = node
                break
        if part is None and idle:
            part = self._part_before(pool, size, idle)
        return None if part is None else self._take([*idle, part], size)

    def _part_before(self, pool: int, size: int, idle: list[int]) -> int | None:
        """A partial node may come before the idle ones."""
        for node, mask in enumerate(self.free):
            if self.pools[node] == pool and node not in idle and mask.bit_count() >= size:
                return node if size < self.width[node] else None
        return None

    def _take(self, nodes: list[int], part: int) -> Slots:
        """Everything of all nodes but the last, of which the lowest `part` (all, when 0)."""
        slots = []
        for i, node in enumerate(nodes):
            mask = self.free[node]
            if part and i == len(nodes) - 1:
                taken = 0
                for _ in range(part):
                    taken |= (mask & ~taken) & -(mask & ~taken)
                mask = taken
            self.free[node] &= ~mask
            slots.append((node, mask))
        return tuple(sorted(slots))

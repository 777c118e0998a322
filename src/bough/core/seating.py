"""Who of a gang sits where on devices chosen for it: on sure ones those that keep its state."""

from __future__ import annotations

from typing import Final

from bough.core.gangs import Bin, RoleAsk, Worker, listed
from bough.core.inventory import Inventory
from bough.core.jobs import Seats, Slots
from bough.core.model import JobSpec

#: Roles without which the work of the others is lost: they sit on reserved nodes where they can.
KEEPERS: Final = frozenset({"chief", "master", "ps", "evaluator"})


def seats_on(
    inventory: Inventory, spec: JobSpec, roles: list[RoleAsk], slots: Slots
) -> Seats | None:
    """A seat for each worker, whole on one node, that use up these devices; None: none such."""
    left = dict(slots)
    bins = {node: Bin(inventory, node) for node in left}
    if any(not role.devices and role.name in KEEPERS for role in spec.roles):
        bins |= {node: Bin(inventory, node) for node in reserved(inventory) if node not in left}
    seats = []
    for worker in sorted(listed(roles), key=lambda w: spec.roles[w.role].name not in KEEPERS):
        keeps = spec.roles[worker.role].name in KEEPERS
        node = best_node(inventory, worker, keeps, bins, left)
        if node is None:
            return None
        bins[node].put(worker)
        mask = lowest(left.get(node, 0), worker.devices)
        left[node] = left.get(node, 0) & ~mask
        seats.append((worker.role, node, mask))
    return None if any(left.values()) else tuple(sorted(seats))


def best_node(
    inventory: Inventory, worker: Worker, keeps: bool, bins: dict[int, Bin], left: dict[int, int]
) -> int | None:
    """Where a worker goes: keepers to reserved nodes, others rather to those that are not."""
    able = [
        node
        for node, found in bins.items()
        if left.get(node, 0).bit_count() >= worker.devices
        and found.cpus >= worker.cpus
        and found.memory >= worker.memory
    ]

    def order(node: int) -> tuple[bool, bool, int]:
        sure = inventory.nodes[node].terms.tier == "reserved"
        return sure is not keeps, node not in left, node

    return min(able, key=order, default=None)


def reserved(inventory: Inventory) -> list[int]:
    """Nodes that stay, and take jobs now."""
    return [
        index
        for index, node in enumerate(inventory.nodes)
        if inventory.up[index] and not inventory.drained[index] and node.terms.tier == "reserved"
    ]


def lowest(mask: int, count: int) -> int:
    """The first so many devices of a mask."""
    found = 0
    for _ in range(count):
        found |= mask & ~found & -(mask & ~found)
    return found


def kept_devices(spec: JobSpec) -> int:
    """Devices of roles that keep a gang's state, at its least; -1: such roles need no device."""
    keepers = [role for role in spec.roles if role.name in KEEPERS]
    return sum(r.devices * r.count.min for r in keepers) or -bool(keepers)

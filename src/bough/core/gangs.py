"""Places for gangs, whose workers may not be torn apart, and places that are spread out.

A worker of a role is whole on one node, with its CPUs and memory. Workers are packed largest
first: onto one node if one holds them all, else onto as few as possible in the lowest domain that
holds them. Those that need no device (parameter servers) go beside most of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bough.core.inventory import Inventory, exact
from bough.core.jobs import Slots
from bough.core.model import Wish
from bough.core.search import bounds, domain_free, every


class RoleAsk(NamedTuple):
    """So many workers of one role; the other numbers are for each worker."""

    devices: int
    workers: int
    cpus: float = 0.0
    memory: float = 0.0


class Worker(NamedTuple):
    """One worker to be placed: devices, thousandths of CPUs, bytes, and its role's index."""

    devices: int
    cpus: int
    memory: int
    role: int


class Gang(NamedTuple):
    """Where a gang goes."""

    #: All devices together.
    slots: Slots
    #: (role, node, devices) for each worker, by role; no devices for those that need none.
    workers: tuple[tuple[int, int, int], ...]


class Bin:
    """A node while workers are tried on it."""

    __slots__ = ("cpus", "free", "got", "memory", "node", "own")

    def __init__(self, inventory: Inventory, node: int, own: bool = False) -> None:
        self.node = node
        self.own = own
        self.free = inventory.free_masks[node].bit_count()
        self.cpus, self.memory = inventory.left(node)
        self.got: list[Worker] = []

    def holds(self, workers: Iterable[Worker]) -> bool:
        """Whether all of these fit together."""
        devices = cpus = memory = 0
        for worker in workers:
            devices += worker.devices
            cpus += worker.cpus
            memory += worker.memory
        return devices <= self.free and cpus <= self.cpus and memory <= self.memory

    def put(self, worker: Worker) -> None:
        """One more worker."""
        self.free -= worker.devices
        self.cpus -= worker.cpus
        self.memory -= worker.memory
        self.got.append(worker)


def find_gang(
    inventory: Inventory,
    pool: int,
    roles: Sequence[RoleAsk],
    wish: Wish,
    near: Slots,
    relaxed: bool,
) -> Gang | None:
    """The best place for all workers together, or None."""
    workers = listed(roles)
    limits = bounds(inventory, wish)
    if wish.mode == "spread":
        return spread(inventory, pool, workers, near)
    found = on_one_node(inventory, pool, workers, near, limits.inner if limits.must else -1)
    if found is None and limits.top >= 0:
        found = in_domains(inventory, pool, workers, near, relaxed, limits.top)
    return found


def listed(roles: Sequence[RoleAsk]) -> list[Worker]:
    """Every worker, the largest first."""
    workers = []
    for role, ask in enumerate(roles):
        if min(ask.devices, ask.workers, ask.cpus, ask.memory) < 0:
            raise ValueError(f"a role asks for {tuple(ask)}: nothing may be negative")
        workers += [Worker(ask.devices, *exact(ask.cpus, ask.memory), role)] * ask.workers
    return sorted(workers, key=lambda w: (-w.devices, -w.cpus, -w.memory, w.role))


def on_one_node(
    inventory: Inventory, pool: int, workers: list[Worker], near: Slots, inner: int
) -> Gang | None:
    """The tightest node that holds all workers (inside one domain of `inner` if that is not -1)."""
    shelves = inventory.shelves[pool]
    devices = sum(worker.devices for worker in workers)
    widest = max((shelf.width for shelf in shelves), default=0)
    nodes = every(shelves, range(devices, widest + 1), -1)
    for node in [node for node, _ in near] if near else nodes:
        at = Bin(inventory, node)
        if not at.holds(workers):
            continue
        free = inventory.free_masks[node]
        if inner >= 0:
            free = inventory.blocks[inventory.shelf_of[node].width].within(free, devices, inner)
            if devices and not free:
                continue
        for worker in workers:
            at.put(worker)
        return seated(inventory, [at], near, free)
    return None


def in_domains(
    inventory: Inventory, pool: int, workers: list[Worker], near: Slots, relaxed: bool, top: int
) -> Gang | None:
    """Few nodes in the lowest domain; around its own nodes for a gang that grows."""
    shelves = inventory.shelves[pool]
    devices = sum(worker.devices for worker in workers)
    largest = max([worker.devices for worker in workers], default=0)
    widest = max((shelf.width for shelf in shelves), default=0)
    if largest > widest:
        return None
    most = len(workers) if relaxed else fewest(workers, widest)
    own = [Bin(inventory, node, own=True) for node, _ in near]
    held = {at.node for at in own}
    chains = [inventory.tree.chains[inventory.racks[at.node]] for at in own]
    for level in range(top + 1):
        inside = inventory.tree.inside[level]
        domains = sorted({chain[level] for chain in chains}) if near else range(len(inside))
        sized = sorted((domain_free(shelves, level, domain), domain) for domain in domains)
        for free, domain in sized:
            if free < devices and not near:
                continue
            nodes = every(shelves, range(largest, widest + 1), inside[domain][0])
            others = [Bin(inventory, node) for node in nodes if node not in held]
            others.sort(key=lambda at: (-(at.free // max(largest, 1)), at.free, at.node))
            bins = packed(own + others, workers, most)
            if bins is not None:
                return seated(inventory, bins, near)
            own = [Bin(inventory, node, own=True) for node, _ in near]
    return None


def fewest(workers: list[Worker], width: int) -> int:
    """How many empty nodes of a width they need (first fit, largest first)."""
    bins: list[int] = []
    for worker in workers:
        at = next((i for i, free in enumerate(bins) if free >= worker.devices), -1)
        if at < 0:
            bins.append(width - worker.devices)
        else:
            bins[at] -= worker.devices
    return len(bins)


def packed(bins: list[Bin], workers: list[Worker], most: int) -> list[Bin] | None:
    """Fill nodes in order, the last one tightly; None when `most` nodes besides own do not do."""
    left = [worker for worker in workers if worker.devices]
    used: list[Bin] = []
    others = 0
    for number, first in enumerate(bins):
        if not left:
            break
        at = first
        if not at.own:
            others += 1
            if others > most:
                return None
            if sum(worker.devices for worker in left) <= at.free:
                last = [b for b in bins[number:] if b.holds(left)]
                at = min(last, key=lambda b: (b.free, b.node), default=first)
        for worker in left[:]:
            if at.holds((worker,)):
                at.put(worker)
                left.remove(worker)
        if at.got:
            used.append(at)
        elif not at.own:
            others -= 1
    if left or not settle_beside(bins, used, [w for w in workers if not w.devices]):
        return None
    return used


def settle_beside(bins: list[Bin], used: list[Bin], workers: list[Worker]) -> bool:
    """Put workers that need no device beside most of the others, else on any node with room."""
    for worker in workers:
        crowded = sorted(used, key=lambda b: -len(b.got))
        host = next((b for b in [*crowded, *bins] if b.holds((worker,))), None)
        if host is None:
            return False
        host.put(worker)
        if host not in used:
            used.append(host)
    return True


def seated(inventory: Inventory, bins: list[Bin], near: Slots, inside: int | None = None) -> Gang:
    """Choose the devices of each worker on the nodes found."""
    own = dict(near)
    slots = []
    seats = []
    for at in sorted(bins, key=lambda b: b.node):
        blocks = inventory.blocks[inventory.shelf_of[at.node].width]
        free = inventory.free_masks[at.node] if inside is None else inside
        size = sum(worker.devices for worker in at.got)
        mask = blocks.grow(free, own.get(at.node, 0), size) if size else 0
        if mask:
            slots.append((at.node, mask))
        for worker in at.got:
            part = blocks.pick(mask, worker.devices)
            mask ^= part
            seats.append((worker.role, at.node, part))
    seats.sort(key=lambda seat: seat[0])
    return Gang(tuple(slots), tuple(seats))


# ------------------------------------------------------------------------------------ spreading


def spread(inventory: Inventory, pool: int, workers: list[Worker], near: Slots) -> Gang | None:
    """Each worker on a node of its own as far as possible, evenly over the domains.

    One after another goes where fewest of this job are: to such a node, and among those in the
    domain with fewest, from the top of the tree down.
    """
    held = {node: mask.bit_count() for node, mask in near}
    shelves = inventory.shelves[pool]
    widest = max((shelf.width for shelf in shelves), default=0)
    least = min([worker.devices for worker in workers], default=0)
    field = Field(inventory, every(shelves, range(least, widest + 1), -1), held)
    for worker in workers:
        at = field.next(worker)
        if at is None:
            return None
        at.put(worker)
        field.crowd(at.node)
    return seated(inventory, [at for at in field.bins.values() if at.got], near)


class Field:
    """Nodes by how many workers of a job they have, and how many there are in each domain."""

    def __init__(self, inventory: Inventory, nodes: Iterable[int], held: dict[int, int]) -> None:
        self.tree = inventory.tree
        self.racks = inventory.racks
        self.bins = {node: Bin(inventory, node) for node in sorted(nodes)}
        self.crowds = {**dict.fromkeys(self.bins, 0), **held}
        #: For each level and domain: workers there.
        self.load = [[0] * len(domains) for domains in self.tree.inside]
        #: Workers on a node -> domain of level 0 -> nodes in order.
        self.layers: dict[int, dict[int, dict[int, None]]] = {}
        for node, crowd in self.crowds.items():
            self.weigh(node, crowd)
            if node in self.bins:
                self.layer(node)[node] = None

    def layer(self, node: int) -> dict[int, None]:
        """The nodes of the same domain with as many workers."""
        layer = self.layers.setdefault(self.crowds[node], {})
        return layer.setdefault(self.racks[node], {})

    def weigh(self, node: int, workers: int) -> None:
        """Count workers in all domains of a node."""
        for level, domain in enumerate(self.tree.chains[self.racks[node]]):
            self.load[level][domain] += workers

    def crowd(self, node: int) -> None:
        """A node has one worker more."""
        del self.layer(node)[node]
        self.crowds[node] += 1
        self.weigh(node, 1)
        self.layer(node)[node] = None

    def next(self, worker: Worker) -> Bin | None:
        """Where the next worker goes; None when no node holds it."""
        for crowd in sorted(self.layers):
            layer = self.layers[crowd]
            for rack in sorted(layer, key=self.rank):
                for node in layer[rack]:
                    if self.bins[node].holds((worker,)):
                        return self.bins[node]
        return None

    def rank(self, rack: int) -> tuple[list[int], int]:
        """How crowded the domains around a domain of level 0 are, from the top down."""
        chain = self.tree.chains[rack]
        loads = [self.load[level][chain[level]] for level in reversed(range(len(chain)))]
        return loads, rack

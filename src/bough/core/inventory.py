"""What the cluster has and what of it is free: nodes in a tree, their devices, CPUs and memory.

Everything counted here is a function of the present state: of the nodes in the order in which
they first joined, of what is held and of what is unusable, never of how it came about. Changes
cost O(depth of the tree) for each node touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bough.core.blocks import Blocks
from bough.core.jobs import Slots
from bough.core.levels import Shelf, Tree
from bough.core.model import INFINITY, Node

CLUSTER = "cluster"
#: Thousandths of CPUs, or bytes, of a node that has more than anybody wants.
ENDLESS = 1 << 62


class Inventory:
    """Nodes in a tree and what is free. Read its fields; change them by its methods.

    Nodes are known by an index that never changes; masks have one bit for each device.
    """

    def __init__(
        self,
        levels: Sequence[str] = ("node",),
        bandwidth: Mapping[str, float] | None = None,
        inner: Mapping[str, int] | None = None,
    ) -> None:
        #: Names of the levels from the top down to the node; sizes of the domains inside a node,
        #: ascending; every level a place may span, from the bottom to the top.
        self._made_of = (levels, bandwidth, inner)
        self.levels, self.inner, self.spans = read_levels(levels, inner or {})
        self._bandwidth = fill_bandwidth(self.spans, bandwidth or {})
        #: Pool index -> kind of device, in order of appearance.
        self.kinds: list[str] = []
        #: Node index -> what is known of it.
        self.names: list[str] = []
        self.nodes: list[Node] = []
        self.index: dict[str, int] = {}
        self.up: list[bool] = []
        self.drained: list[bool] = []
        #: Devices of each node: not reported unhealthy; to be handed out when not held; held; free.
        self.healthy_masks: list[int] = []
        self.open_masks: list[int] = []
        self.held_masks: list[int] = []
        self.free_masks: list[int] = []
        #: Of each node: devices counted as usable; CPUs (exact thousandths) and bytes taken.
        self.counted: list[int] = []
        self.cpus_taken: list[int] = []
        self.memory_taken: list[int] = []
        self.tree = Tree(self.levels[:-1])
        #: Where each node is: its pool, its shelf, its domain of level 0 and its bit there.
        self.pools: list[int] = []
        self.shelf_of: list[Shelf] = []
        self.racks: list[int] = []
        self.bits: list[int] = []
        #: Of each pool: its shelves, narrow nodes first; what is free and usable in it.
        self.shelves: list[list[Shelf]] = []
        self.pool_free: list[int] = []
        self.pool_usable: list[int] = []
        #: Width of node -> how its devices are chosen.
        self.blocks: dict[int, Blocks] = {}

    # ----------------------------------------------------------------------------------- nodes

    def add(self, node: Node) -> int:
        """A node joins, comes back, or changed; its index stays when its name is known.

        A node that comes back has all its devices healthy; a drain stays until it is lifted.
        """
        if node.devices < 1:
            raise ValueError(f"node {node.name}: devices must be 1 or more, not {node.devices}")
        if len(node.path) != len(self.levels) - 1:
            wanted = ", ".join(self.levels[:-1]) or "nothing"
            raise ValueError(f"node {node.name}: path {list(node.path)} must name {wanted}")
        if not (node.cpus >= 0 and node.memory >= 0):
            raise ValueError(f"node {node.name}: cpus and memory must be 0 or more")
        index = self.index.get(node.name)
        if index is not None:
            self._replace(index, node)
            return index
        index = self.index[node.name] = len(self.names)
        self.names.append(node.name)
        self.nodes.append(node)
        self.up.append(True)
        self.drained.append(False)
        self.healthy_masks.append((1 << node.devices) - 1)
        for zeros in (
            self.open_masks, self.held_masks, self.free_masks, self.counted, self.cpus_taken,
            self.memory_taken, self.pools, self.racks, self.bits,
        ):  # fmt: skip
            zeros.append(0)
        self.shelf_of.append(self._seat(index))
        self._refresh(index)
        return index

    def _replace(self, index: int, node: Node) -> None:
        before = self.nodes[index]
        self.nodes[index] = node
        known = self.healthy_masks[index] if self.up[index] else -1
        self.healthy_masks[index] = (known | -1 << before.devices) & ((1 << node.devices) - 1)
        self.up[index] = True
        if (before.kind, before.devices, before.path) != (node.kind, node.devices, node.path):
            self._rebuild()
        else:
            self._refresh(index)

    def _rebuild(self) -> None:
        """Number the domains anew, as if all nodes had joined in order as they now are."""
        self.tree = Tree(self.levels[:-1])
        self.shelves = [[] for _ in self.kinds]
        self.pool_free = [0 for _ in self.kinds]
        self.pool_usable = [0 for _ in self.kinds]
        for index in range(len(self.names)):
            self.free_masks[index] = self.counted[index] = 0
            self.shelf_of[index] = self._seat(index)
            self._refresh(index)

    def _seat(self, index: int) -> Shelf:
        """Give a node its place in the tree and on a shelf, with nothing free yet."""
        node = self.nodes[index]
        pool = self.pools[index] = self.pool(node.kind)
        racks = len(self.tree.members)
        rack = self.racks[index] = self.tree.add(node.path, index)
        if len(self.tree.members) > racks:
            for known in (shelf for shelves in self.shelves for shelf in shelves):
                known.extend()
        bit = self.bits[index] = 1 << (len(self.tree.members[rack]) - 1)
        shelf = next((s for s in self.shelves[pool] if s.width == node.devices), None)
        if shelf is None:
            shelf = Shelf(self.tree, node.devices)
            shelf.extend()
            self.shelves[pool].append(shelf)
            self.shelves[pool].sort(key=lambda s: s.width)
        if node.devices not in self.blocks:
            self.blocks[node.devices] = Blocks(node.devices, self.inner)
        shelf.put(rack, bit, 0)
        return shelf

    def pool(self, kind: str) -> int:
        """The index of the pool of a kind of device; a new kind makes a new pool."""
        if kind not in self.kinds:
            self.kinds.append(kind)
            self.shelves.append([])
            self.pool_free.append(0)
            self.pool_usable.append(0)
        return self.kinds.index(kind)

    def remove(self, name: str) -> None:
        """A node is down: nothing on it is free or usable. What is held there is still given."""
        index = self._known(name)
        self.up[index] = False
        self._refresh(index)

    def health(self, name: str, device: int, healthy: bool) -> None:
        """A device became unusable, or usable again."""
        index = self._known(name)
        if not 0 <= device < self.nodes[index].devices:
            raise ValueError(f"node {name} has no device {device}")
        bit = 1 << device
        mask = self.healthy_masks[index]
        self.healthy_masks[index] = mask | bit if healthy else mask & ~bit
        self._refresh(index)

    def drain(self, name: str, drained: bool) -> None:
        """A node takes nothing new, or takes jobs again."""
        index = self._known(name)
        self.drained[index] = drained
        self._refresh(index)

    def _known(self, name: str) -> int:
        index = self.index.get(name)
        if index is None:
            raise ValueError(f"unknown node {name}")
        return index

    def _refresh(self, index: int) -> None:
        """Bring all counts in line with what is known of a node."""
        is_open = self.up[index] and not self.drained[index]
        open_mask = self.open_masks[index] = self.healthy_masks[index] if is_open else 0
        held = self.held_masks[index]
        self._set_free(index, open_mask & ~held)
        counted = (open_mask | held).bit_count() if self.up[index] else 0
        self.pool_usable[self.pools[index]] += counted - self.counted[index]
        self.counted[index] = counted

    def _set_free(self, index: int, free: int) -> None:
        before = self.free_masks[index].bit_count()
        after = free.bit_count()
        self.free_masks[index] = free
        self.shelf_of[index].move(self.racks[index], self.bits[index], 1, before, after)
        self.pool_free[self.pools[index]] += after - before

    # ----------------------------------------------------------------------- taking and giving

    def take(self, slots: Slots, cpus: float = 0.0, memory: float = 0.0) -> None:
        """Hold these free devices (of one pool), with so many CPUs and bytes for each."""
        for node, mask in slots:
            free = self.free_masks[node]
            assert free & mask == mask, f"{self.names[node]}: {mask:b} is not free of {free:b}"
        self._swap(slots, -1)
        if cpus or memory:
            self._charge(slots, cpus, memory, 1)

    def give(self, slots: Slots, cpus: float = 0.0, memory: float = 0.0) -> None:
        """Give back what was taken; what is down, drained or unhealthy does not become free."""
        is_open = True
        for node, mask in slots:
            held = self.held_masks[node]
            assert held & mask == mask, f"{self.names[node]}: {mask:b} is not held of {held:b}"
            if mask & ~self.open_masks[node]:
                is_open = False
        if is_open:
            self._swap(slots, 1)
        else:
            self._hold(slots)
        if cpus or memory:
            self._charge(slots, cpus, memory, -1)

    def retake(self, slots: Slots, cpus: float = 0.0, memory: float = 0.0) -> None:
        """Undo a `give`: hold these devices again, be they still to be handed out or not."""
        for node, mask in slots:
            held = self.held_masks[node]
            assert not held & mask, f"{self.names[node]}: {held & mask:b} is held already"
        self._hold(slots)
        if cpus or memory:
            self._charge(slots, cpus, memory, 1)

    def is_free(self, slots: Slots) -> bool:
        """Whether all of these devices are free."""
        return all(self.free_masks[node] & mask == mask for node, mask in slots)

    def _swap(self, slots: Slots, sign: int) -> None:
        """Free devices become held ones (-1) or the reverse (+1); equal nodes of a rack at once."""
        free_masks, held_masks, racks, bits = (
            self.free_masks, self.held_masks, self.racks, self.bits,
        )  # fmt: skip
        if len(slots) == 1:  # most jobs
            node, mask = slots[0]
            count = free_masks[node].bit_count()
            change = sign * mask.bit_count()
            free_masks[node] ^= mask
            held_masks[node] ^= mask
            self.shelf_of[node].move(racks[node], bits[node], 1, count, count + change)
            self.pool_free[self.pools[node]] += change
            return
        shelf, rack, before, after, batch, nodes, total = None, -1, 0, 0, 0, 0, 0
        for node, mask in slots:
            free = free_masks[node]
            free_masks[node] = free ^ mask
            held_masks[node] ^= mask
            count = free.bit_count() if free else 0
            change = count if mask == free else mask.bit_count()
            total += change
            if shelf is not None:
                if racks[node] == rack and count == before and count + sign * change == after:
                    if self.shelf_of[node] is shelf:
                        batch |= bits[node]
                        nodes += 1
                        continue
                shelf.move(rack, batch, nodes, before, after)
            shelf, rack, batch, nodes = self.shelf_of[node], racks[node], bits[node], 1
            before, after = count, count + sign * change
        if shelf is not None:
            shelf.move(rack, batch, nodes, before, after)
            self.pool_free[self.pools[slots[0][0]]] += sign * total

    def _hold(self, slots: Slots) -> None:
        """Held devices become unheld ones, or the reverse, where some are not open."""
        for node, mask in slots:
            self.held_masks[node] ^= mask
            self._refresh(node)

    def _charge(self, slots: Slots, cpus: float, memory: float, sign: int) -> None:
        thousandths, size = exact(cpus, memory)
        for node, mask in slots:
            devices = sign * mask.bit_count()
            self.cpus_taken[node] += thousandths * devices
            self.memory_taken[node] += size * devices

    def left(self, node: int) -> tuple[int, int]:
        """Thousandths of CPUs and bytes not taken on a node (below 0 if it was made smaller)."""
        known = self.nodes[node]
        cpus = ENDLESS if known.cpus == INFINITY else round(known.cpus * 1000)
        memory = ENDLESS if known.memory == INFINITY else int(known.memory)
        return cpus - self.cpus_taken[node], memory - self.memory_taken[node]

    def room(self, node: int, cpus: float, memory: float) -> int:
        """For how many shares of so many CPUs and bytes a node has room."""
        thousandths, size = exact(cpus, memory)
        free_cpus, free_memory = self.left(node)
        shares = ENDLESS
        if thousandths:
            shares = free_cpus // thousandths
        if size:
            shares = min(shares, free_memory // size)
        return max(shares, 0)


def exact(cpus: float, memory: float) -> tuple[int, int]:
    """CPUs in thousandths and whole bytes: sums of whole numbers forget their history."""
    return round(cpus * 1000), round(memory)


def read_levels(
    levels: Sequence[str], inner: Mapping[str, int]
) -> tuple[tuple[str, ...], tuple[int, ...], tuple[str, ...]]:
    """Levels down to the node, sizes of those inside it, and all names from the bottom up."""
    outer = tuple(name for name in levels if name not in inner)
    check_levels(outer, inner)
    within = sorted(inner, key=lambda name: inner[name])
    return outer, tuple(inner[name] for name in within), (*within, *reversed(outer), CLUSTER)


def check_levels(levels: tuple[str, ...], inner: Mapping[str, int]) -> None:
    """Refuse level names that make no tree."""
    if not levels or levels[-1] != "node":
        raise ValueError(f"levels {list(levels)} must end in 'node' (then levels inside a node)")
    names = [*levels, *inner, CLUSTER]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"level {twice[0]!r} is named twice ('{CLUSTER}' is always the top)")
    for name, size in inner.items():
        if size < 1:
            raise ValueError(f"level {name!r} needs 1 or more devices, not {size}")


def fill_bandwidth(spans: tuple[str, ...], given: Mapping[str, float]) -> tuple[float, ...]:
    """The bandwidth of each span; a level without one is as fast as the level below."""
    unknown = sorted(set(given) - set(spans))
    if unknown:
        raise ValueError(f"bandwidth of unknown level {unknown[0]!r}; levels are {list(spans)}")
    filled = []
    last = INFINITY
    for name in spans:
        last = given.get(name, last)
        if not last > 0:
            raise ValueError(f"bandwidth of {name!r} must be positive, not {last}")
        filled.append(last)
    return tuple(filled)

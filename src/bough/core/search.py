"""Looking for a place of some size: one node, whole nodes, or scattered over partly free ones.

Plain functions over what is free (`Shelf`); none of them changes anything. They go from the
lowest level of the tree up, and at each level take the domain that is left with least room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bough.core.inventory import Inventory
from bough.core.jobs import Slots
from bough.core.levels import Shelf
from bough.core.model import Wish

NOWHERE: frozenset[int] = frozenset()


class Ask(NamedTuple):
    """All that is asked of a place."""

    size: int
    wish: Wish
    cpus: float
    memory: float
    near: Slots
    relaxed: bool


class Bounds(NamedTuple):
    """What a wish means in this tree."""

    #: The highest level of the tree the place may span; -1: one node only.
    top: int
    #: The level inside a node that should (or must) hold it; -1: none.
    inner: int
    must: bool


def bounds(inventory: Inventory, wish: Wish) -> Bounds:
    """Read a wish; a level that the tree does not have is a ValueError."""
    top = inventory.tree.height - 1
    if not wish.level:
        return Bounds(top, -1, False)
    if wish.level not in inventory.spans:
        raise ValueError(f"unknown level {wish.level!r}; levels are {list(inventory.spans)}")
    must = wish.mode == "require"
    level = inventory.spans.index(wish.level)
    node = len(inventory.inner)
    inner = level if level < node else -1
    return Bounds(max(level - node - 1, -1) if must else top, inner, must)


def roomy(inventory: Inventory, slots: Slots, cpus: float, memory: float) -> bool:
    """Whether every node has CPUs and memory for its part of a place."""
    return all(inventory.room(node, cpus, memory) >= mask.bit_count() for node, mask in slots)


def limited(inventory: Inventory, shelves: list[Shelf], cpus: float, memory: float) -> list[Shelf]:
    """Shelves on which a node has only as many devices free as it has CPUs and memory for."""
    copies = []
    for shelf in shelves:
        copy = Shelf(shelf.tree, shelf.width)
        copy.extend()
        for node in members(shelf, range(shelf.width + 1)):
            free = inventory.free_masks[node].bit_count()
            copy.put(
                inventory.racks[node],
                inventory.bits[node],
                min(free, inventory.room(node, cpus, memory)),
            )
        copies.append(copy)
    return copies


def members(shelf: Shelf, counts: Iterable[int], racks: int = -1) -> Iterator[int]:
    """Nodes by how much they have free (in the order of `counts`), then by number."""
    for count in counts:
        domains = shelf.has[count] & racks
        while domains:
            rack = (domains & -domains).bit_length() - 1
            domains &= domains - 1
            bits = shelf.masks[rack][count]
            while bits:
                yield shelf.tree.members[rack][(bits & -bits).bit_length() - 1]
                bits &= bits - 1


# ------------------------------------------------------------------------------- a fresh place


def fresh(inventory: Inventory, shelves: list[Shelf], ask: Ask, limits: Bounds) -> Slots | None:
    """A place for a job that holds nothing."""
    size = ask.size
    found = one_node(inventory, shelves, size, limits)
    if found is not None or limits.top < 0:
        return found
    gang = all(size > shelf.width for shelf in shelves)
    for level in range(limits.top + 1):
        if gang:
            found = at_level(inventory, shelves, size, level)
        if found is None and ask.relaxed:
            found = scattered(inventory, shelves, size, level)
        if found is not None:
            return found
    return None


def one_node(inventory: Inventory, shelves: list[Shelf], size: int, limits: Bounds) -> Slots | None:
    """The node with the least free that is enough, or inside one domain of it if so wished."""
    if limits.inner >= 0:
        found = inside_node(inventory, shelves, size, limits.inner)
        if found is not None or limits.must:
            return found
    best = -1
    least = 0
    for shelf in shelves:
        node = shelf.tightest(size) if size <= shelf.width else -1
        if node >= 0 and (best < 0 or inventory.free_masks[node].bit_count() < least):
            best, least = node, inventory.free_masks[node].bit_count()
    return ((best, chosen(inventory, best, size)),) if best >= 0 else None


def inside_node(inventory: Inventory, shelves: list[Shelf], size: int, level: int) -> Slots | None:
    """The tightest node with a domain of an inner level that has `size` devices free."""
    for count in range(size, max((shelf.width for shelf in shelves), default=0) + 1):
        for shelf in shelves:
            if count > shelf.width:
                continue
            blocks = inventory.blocks[shelf.width]
            for node in members(shelf, (count,)):
                free = blocks.within(inventory.free_masks[node], size, level)
                if free:
                    return ((node, blocks.pick(free, size)),)
    return None


def chosen(inventory: Inventory, node: int, size: int) -> int:
    """So many of the free devices of a node."""
    return inventory.blocks[inventory.shelf_of[node].width].pick(inventory.free_masks[node], size)


def whole_nodes(inventory: Inventory, shelf: Shelf, size: int) -> Slots | None:
    """Whole nodes and a part of one more, in the lowest domain that has them."""
    nodes, rest = divmod(size, shelf.width)
    for level in range(shelf.tree.height):
        domain = shelf.domain(level, nodes, rest)
        if domain >= 0:
            return assembled(inventory, shelf, level, domain, size)
    return None


def at_level(inventory: Inventory, shelves: list[Shelf], size: int, level: int) -> Slots | None:
    """Whole nodes and a part of one more, in one domain of this level."""
    for shelf in reversed(shelves):
        domain = shelf.domain(level, *divmod(size, shelf.width))
        if domain >= 0:
            return assembled(inventory, shelf, level, domain, size)
    return mixed(inventory, shelves, size, level) if len(shelves) > 1 else None


def assembled(
    inventory: Inventory,
    shelf: Shelf,
    level: int,
    domain: int,
    size: int,
    skip: frozenset[int] = NOWHERE,
) -> Slots:
    """Whole nodes and a part of one more, in a domain known to have them."""
    nodes, rest = divmod(size, shelf.width)
    part = partial(shelf, rest, shelf.tree.inside[level][domain][0], skip) if rest else -1
    found = shelf.wholes(level, domain, nodes + (rest > 0 and part < 0))
    if rest and part < 0:
        part = found.pop()
    full = (1 << shelf.width) - 1
    slots = [(node, full) for node in found]
    if rest:
        slots.append((part, chosen(inventory, part, rest)))
    slots.sort()
    return tuple(slots)


def partial(shelf: Shelf, size: int, racks: int, skip: frozenset[int]) -> int:
    """The partly free node with the least free that is enough; or -1."""
    nodes = members(shelf, range(size, shelf.width), racks)
    return next((node for node in nodes if node not in skip), -1)


def mixed(inventory: Inventory, shelves: list[Shelf], size: int, level: int) -> Slots | None:
    """Whole nodes of different widths, wide ones first, and a part of one more."""
    best: tuple[int, int] | None = None
    for domain in range(len(inventory.tree.inside[level])):
        room = sum(s.whole_nodes(level, domain) * s.width for s in shelves)
        if best is None or room < best[0]:
            if gathered(inventory, shelves, size, level, domain) is not None:
                best = (room, domain)
    return gathered(inventory, shelves, size, level, best[1]) if best else None


def gathered(
    inventory: Inventory, shelves: list[Shelf], size: int, level: int, domain: int
) -> Slots | None:
    """The same in one domain, or None when it has not enough."""
    used: dict[int, int] = {}
    rest = size
    for shelf in reversed(shelves):
        nodes = min(shelf.whole_nodes(level, domain), rest // shelf.width)
        for node in shelf.wholes(level, domain, nodes):
            used[node] = shelf.width
        rest -= nodes * shelf.width
    if rest:
        racks = inventory.tree.inside[level][domain][0]
        parts = (
            (count, node)
            for shelf in shelves
            for count in range(rest, shelf.width + 1)
            for node in members(shelf, (count,), racks)
            if node not in used
        )
        part = min(parts, default=None)
        if part is None:
            return None
        used[part[1]] = rest
    return tuple(sorted((node, chosen(inventory, node, used[node])) for node in used))


# ---------------------------------------------------------------------------------- scattering


def scattered(inventory: Inventory, shelves: list[Shelf], size: int, level: int) -> Slots | None:
    """As few nodes as possible in the domain of this level with least free that is enough."""
    best: tuple[int, int] | None = None
    for domain in range(len(inventory.tree.inside[level])):
        free = domain_free(shelves, level, domain)
        if free >= size and (best is None or free < best[0]):
            best = (free, domain)
    if best is None:
        return None
    return strewn(inventory, shelves, size, shelves[0].tree.inside[level][best[1]][0])


def domain_free(shelves: list[Shelf], level: int, domain: int) -> int:
    """Devices free in a domain."""
    total = 0
    for shelf in shelves:
        if not level:
            total += shelf.free[domain]
            continue
        racks = shelf.tree.inside[level][domain][0]
        while racks:
            total += shelf.free[(racks & -racks).bit_length() - 1]
            racks &= racks - 1
    return total


def strewn(
    inventory: Inventory,
    shelves: list[Shelf],
    size: int,
    racks: int,
    skip: frozenset[int] = NOWHERE,
) -> Slots | None:
    """As few nodes as possible within some domains: those with most free, the last a tight one."""
    used: dict[int, int] = {}
    rest = size
    for count in range(max(shelf.width for shelf in shelves), 0, -1):
        if count < rest:
            for node in every(shelves, (count,), racks):
                if node in skip:
                    continue
                if rest <= count:
                    break
                used[node] = count
                rest -= count
        if 0 < rest <= count:
            last = every(shelves, range(rest, count + 1), racks)
            node = next((n for n in last if n not in used and n not in skip), -1)
            if node >= 0:
                used[node] = rest
                rest = 0
        if not rest:
            return tuple(sorted((node, chosen(inventory, node, used[node])) for node in used))
    return None


def every(shelves: list[Shelf], counts: Iterable[int], racks: int) -> Iterator[int]:
    """Nodes of all shelves in the order of `counts`, then narrow ones first, then by number."""
    for count in counts:
        for shelf in shelves:
            if count <= shelf.width and shelf.has[count] & racks:
                yield from members(shelf, (count,), racks)

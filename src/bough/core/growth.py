"""Changing the size of a job where it is: what it gets in addition, and what it keeps."""

from __future__ import annotations

from bough.core.inventory import Inventory
from bough.core.jobs import Slots
from bough.core.levels import Shelf
from bough.core.search import Ask, Bounds, assembled, domain_free, partial, strewn


def grown(inventory: Inventory, shelves: list[Shelf], ask: Ask, limits: Bounds) -> Slots | None:
    """What a job that holds `near` gets in addition: on its own nodes, then close to them.

    Unless relaxed, the grown job may be on no more nodes than it would need if started anew.
    """
    if limits.inner >= 0 and limits.must:
        return in_domain(inventory, ask, limits.inner)
    own = dict(ask.near)
    used: dict[int, int] = {}
    rest = fill_own(inventory, ask, own, used)
    if rest == 0:
        return with_own(inventory, own, used, ())
    held = sum(mask.bit_count() for mask in own.values())
    fitting = []
    for shelf in reversed(shelves):
        spare = -(-(held + ask.size) // shelf.width) - len(own)
        if ask.relaxed or -(-rest // shelf.width) <= spare:
            fitting.append(shelf)
    found = beside(inventory, fitting, ask, rest, limits.top) if fitting else None
    return with_own(inventory, own, used, found) if found is not None else None


def is_vain(inventory: Inventory, shelf: Shelf, near: Slots, size: int) -> bool:
    """Whether a compact job surely finds no room for so many more: most that try find none."""
    masks, held, room = inventory.free_masks, 0, 0
    for node, mask in near:
        held += mask.bit_count()
        room += masks[node].bit_count()
    rest, width = size - room, shelf.width
    if rest <= 0:
        return False
    spare = -(-(held + size) // width) - len(near)
    return -(-rest // width) > spare or shelf.wholly < rest // width


def in_domain(inventory: Inventory, ask: Ask, level: int) -> Slots | None:
    """Devices of the one domain inside a node in which the job is."""
    node, held = ask.near[0]
    blocks = inventory.blocks[inventory.shelf_of[node].width]
    if len(ask.near) > 1 or blocks.level(held) > level:
        return None
    free = inventory.free_masks[node] & blocks.around(held, level)
    if free.bit_count() < ask.size or inventory.room(node, ask.cpus, ask.memory) < ask.size:
        return None
    return ((node, blocks.grow(free, held, ask.size)),)


def fill_own(inventory: Inventory, ask: Ask, own: dict[int, int], used: dict[int, int]) -> int:
    """Fill up a job's own nodes, as few of them as possible; what is left to place."""
    room = {}
    for node in own:
        free = inventory.free_masks[node].bit_count()
        if free and (ask.cpus or ask.memory):
            free = min(free, inventory.room(node, ask.cpus, ask.memory))
        if free:
            room[node] = free
    rest = ask.size
    while rest and room:
        enough = [node for node in room if room[node] >= rest]
        if enough:
            node = min(enough, key=lambda n: (room[n], n))
        else:
            node = max(room, key=lambda n: (room[n], -n))
        used[node] = min(rest, room.pop(node))
        rest -= used[node]
    return rest


def beside(
    inventory: Inventory, shelves: list[Shelf], ask: Ask, size: int, top: int
) -> Slots | None:
    """So many devices on other nodes, in the lowest domain around one of the job's own nodes."""
    tree = inventory.tree
    skip = frozenset(node for node, _ in ask.near)
    chains = {tree.chains[inventory.racks[node]] for node in skip}
    for level in range(top + 1):
        for domain in sorted({chain[level] for chain in chains}):
            racks = tree.inside[level][domain][0]
            for shelf in shelves:
                nodes, rest = divmod(size, shelf.width)
                spare = shelf.whole_nodes(level, domain) - nodes
                if spare < 0:
                    continue
                if spare or not rest or partial(shelf, rest, racks, skip) >= 0:
                    return assembled(inventory, shelf, level, domain, size, skip)
            if ask.relaxed and domain_free(shelves, level, domain) >= size:
                found = strewn(inventory, shelves[::-1], size, racks, skip)
                if found is not None:
                    return found
    return None


def with_own(inventory: Inventory, own: dict[int, int], used: dict[int, int], more: Slots) -> Slots:
    """What is added on own nodes, close to what is held there, and on others."""
    if not used:
        return more
    found = list(more)
    for node, size in used.items():
        blocks = inventory.blocks[inventory.shelf_of[node].width]
        found.append((node, blocks.grow(inventory.free_masks[node], own[node], size)))
    found.sort()
    return tuple(found)


def keep(inventory: Inventory, slots: Slots, size: int) -> Slots:
    """`size` devices of a place, in the lowest domain and on the fewest nodes possible."""
    held = {node: mask.bit_count() for node, mask in slots}
    excess = sum(held.values()) - size
    if excess <= 0:
        return slots
    stay = list(held) if len(held) == 1 else lowest_part(inventory, held, size)
    excess = sum(held[node] for node in stay) - size
    kept: dict[int, int] = {}
    for node in leaving_order(inventory, held, stay) if len(stay) > 1 else stay:
        leave = min(excess, held[node])
        excess -= leave
        if held[node] > leave:
            kept[node] = held[node] - leave
    return tuple(
        (
            node,
            inventory.blocks[inventory.shelf_of[node].width].pick(mask, kept[node])
            if kept[node] < held[node]
            else mask,
        )
        for node, mask in slots
        if node in kept
    )


def leaving_order(inventory: Inventory, held: dict[int, int], nodes: list[int]) -> list[int]:
    """Nodes to leave first: holding fewest, in domains where the job holds fewest, the last."""
    chains = {node: inventory.tree.chains[inventory.racks[node]] for node in nodes}
    totals: dict[tuple[int, int], int] = {}
    for node, chain in chains.items():
        for at in enumerate(chain):
            totals[at] = totals.get(at, 0) + held[node]
    crowds = {
        chain: [totals[at] for at in enumerate(chain)][::-1] for chain in set(chains.values())
    }
    return sorted(nodes, key=lambda node: (held[node], crowds[chains[node]], -node))


def lowest_part(inventory: Inventory, held: dict[int, int], size: int) -> list[int]:
    """The nodes of the lowest domain in which the job holds enough: fewest nodes, then tightest."""
    alone = [node for node in held if held[node] >= size]
    if alone:
        return [min(alone, key=lambda n: (held[n], n))]
    for level in range(inventory.tree.height):
        domains: dict[int, list[int]] = {}
        for node in held:
            chain = inventory.tree.chains[inventory.racks[node]]
            domains.setdefault(chain[level], []).append(node)
        enough = {d: n for d, n in domains.items() if sum(held[i] for i in n) >= size}
        if enough:
            return min(enough.items(), key=lambda item: (needed(held, item[1], size), item[0]))[1]
    raise AssertionError("the cluster holds every place")


def needed(held: dict[int, int], nodes: list[int], size: int) -> tuple[int, int]:
    """How few of these nodes hold `size` devices, and how many devices all of them hold."""
    rest = size
    count = 0
    for devices in sorted((held[node] for node in nodes), reverse=True):
        if rest <= 0:
            break
        rest -= devices
        count += 1
    return count, sum(held[node] for node in nodes)

"""Recounts the whole tree from scratch, to prove that what is kept up step by step is right."""

from __future__ import annotations

from bough.core.inventory import Inventory
from bough.core.levels import Counts, Shelf, Tree


def check(inventory: Inventory) -> None:
    """Assert every kept count against a recount."""
    check_tree(inventory)
    for index, node in enumerate(inventory.nodes):
        assert inventory.index[node.name] == index, node.name
        assert inventory.names[index] == node.name
        assert inventory.kinds[inventory.pools[index]] == node.kind, node.name
        is_open = inventory.up[index] and not inventory.drained[index]
        healthy = inventory.healthy_masks[index] & ((1 << node.devices) - 1)
        assert healthy == inventory.healthy_masks[index], node.name
        assert inventory.open_masks[index] == (healthy if is_open else 0), node.name
        free = inventory.open_masks[index] & ~inventory.held_masks[index]
        assert inventory.free_masks[index] == free, node.name
        assert inventory.shelf_of[index] in inventory.shelves[inventory.pools[index]], node.name
        assert inventory.shelf_of[index].width == node.devices, node.name
    for pool in range(len(inventory.kinds)):
        nodes = [i for i in range(len(inventory.nodes)) if inventory.pools[i] == pool]
        free = sum(inventory.free_masks[i].bit_count() for i in nodes)
        usable = sum(
            (inventory.open_masks[i] | inventory.held_masks[i]).bit_count()
            for i in nodes
            if inventory.up[i]
        )
        assert inventory.pool_free[pool] == free, (pool, inventory.pool_free[pool], free)
        assert inventory.pool_usable[pool] == usable, (pool, inventory.pool_usable[pool], usable)
        widths = [shelf.width for shelf in inventory.shelves[pool]]
        assert widths == sorted(set(widths)), widths
        for shelf in inventory.shelves[pool]:
            check_shelf(inventory, shelf)


def check_tree(inventory: Inventory) -> None:
    """The domains are numbered as if the nodes had joined in order as they now are."""
    tree = Tree(inventory.levels[:-1])
    for index, node in enumerate(inventory.nodes):
        assert tree.add(node.path, index) == inventory.racks[index], node.name
        position = len(tree.members[inventory.racks[index]]) - 1
        assert inventory.bits[index] == 1 << position, node.name
    for field in ("index", "inside", "chains", "members", "bits"):
        assert getattr(tree, field) == getattr(inventory.tree, field), field


def check_shelf(inventory: Inventory, shelf: Shelf) -> None:
    """The buckets of a shelf hold each of its nodes once, and count them right."""
    tree = inventory.tree
    assert shelf.tree is tree
    masks = [[0] * (shelf.width + 1) for _ in shelf.masks]
    whole: dict[tuple[int, int], int] = {}
    for index in range(len(inventory.nodes)):
        if inventory.shelf_of[index] is not shelf:
            continue
        free = inventory.free_masks[index].bit_count()
        rack = inventory.racks[index]
        masks[rack][free] |= inventory.bits[index]
        if free == shelf.width:
            for at in enumerate(tree.chains[rack]):
                whole[at] = whole.get(at, 0) + 1
    assert shelf.masks == masks
    counts = range(shelf.width + 1)
    has = [sum(1 << rack for rack, row in enumerate(masks) if row[f]) for f in counts]
    assert shelf.has == has
    assert shelf.occupied == sum(1 << count for count in counts if has[count])
    assert shelf.free == [sum(f * row[f].bit_count() for f in counts) for row in masks]
    assert shelf.wholly == whole.get((tree.height - 1, 0), 0)
    for level, kept in enumerate(shelf.whole):
        assert kept.count == [whole.get((level, d), 0) for d in range(len(kept.count))]
        check_counts(kept)


def check_counts(kept: Counts) -> None:
    """Each domain is in the bucket of its count and in no other."""
    for count, bucket in enumerate(kept.buckets):
        assert bucket == sum(1 << d for d, n in enumerate(kept.count) if n == count)
        assert (kept.filled >> count & 1) == (bucket != 0)
    assert kept.filled >> len(kept.buckets) == 0

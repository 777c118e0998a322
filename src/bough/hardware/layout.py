"""How devices lie in a node: equal, aligned blocks are levels of the tree, all else is not said."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence


def block(labels: Sequence[Hashable]) -> int:
    """Devices in each block, when equal labels make equal blocks one after the other; else 0."""
    size = next((i for i, label in enumerate(labels) if label != labels[0]), len(labels))
    if not size or len(labels) % size:
        return 0
    runs = [labels[start : start + size] for start in range(0, len(labels), size)]
    whole = all(len(set(run)) == 1 for run in runs)
    return size if whole and len({run[0] for run in runs}) == len(runs) else 0


def islands(numbers: Sequence[int], pairs: Iterable[tuple[int, int]]) -> list[int]:
    """For each device, the first of those that all have links to each other and to it.

    A ring or a mesh in which some pairs have no link is no island: all of it is left apart.
    """
    linked = {frozenset(pair) for pair in pairs}
    first = {number: number for number in numbers}
    for number in numbers:
        group = [n for n in numbers if n == number or frozenset((n, number)) in linked]
        if all(frozenset((a, b)) in linked for a in group for b in group if a != b):
            first[number] = group[0]
    return [first[number] for number in numbers]


def inner_levels(island_labels: Sequence[int], sockets: Sequence[int]) -> dict[str, int]:
    """Levels inside a node that are smaller than it and larger than a device."""
    sizes = {"island": block(island_labels)}
    if -1 not in sockets:
        sizes["socket"] = block(sockets)
    if sizes.get("socket") == sizes["island"]:
        del sizes["socket"]  # the links are the better reason to stay together
    return {name: size for name, size in sizes.items() if 1 < size < len(island_labels)}

"""Small trees for tests, and hypothesis strategies for what happens to them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from bough.core.jobs import Slots
from bough.core.model import Node
from bough.core.topology import Topology

FLAT: tuple[str, ...] = ("node",)
RACKS = ("rack", "node")
BLOCKS = ("block", "rack", "node")


def tree(
    widths: Sequence[int],
    levels: tuple[str, ...] = FLAT,
    per_domain: int = 2,
    inner: dict[str, int] | None = None,
    kinds: Sequence[str] = ("h100",),
) -> Topology:
    """Nodes n0, n1 … of these widths; each domain has `per_domain` of what is below it."""
    topology = Topology(levels, inner=inner)
    for number, width in enumerate(widths):
        depth = len(levels) - 1
        path = tuple(f"{levels[i]}{number // per_domain ** (depth - i)}" for i in range(depth))
        kind = kinds[number % len(kinds)]
        topology.add(Node(name=f"n{number}", kind=kind, devices=width, path=path))
    return topology


def leave_free(topology: Topology, free: Iterable[str]) -> None:
    """Take devices until each node has just these free: "1100" means devices 0 and 1."""
    for node, bits in enumerate(free):
        wanted = sum(1 << i for i, bit in enumerate(bits) if bit == "1")
        taken = topology.free_masks[node] & ~wanted
        if taken:
            topology.take(((node, taken),))


def counts(slots: Slots | None) -> dict[int, int] | None:
    """Devices on each node."""
    return None if slots is None else {node: mask.bit_count() for node, mask in slots}


def size_of(slots: Slots) -> int:
    """Devices in all."""
    return sum(mask.bit_count() for _, mask in slots)


def joined(one: Slots, other: Slots) -> Slots:
    """Both places as one."""
    masks = dict(one)
    for node, mask in other:
        assert not masks.get(node, 0) & mask, "the same device twice"
        masks[node] = masks.get(node, 0) | mask
    return tuple(sorted(masks.items()))


def without(slots: Slots, kept: Slots) -> Slots:
    """What is given back when a place shrinks."""
    masks = dict(kept)
    return tuple((n, m & ~masks.get(n, 0)) for n, m in slots if m & ~masks.get(n, 0))


def crowd(topology: Topology, seed: int, share: float = 0.5) -> None:
    """Take each device with some probability."""
    drawn = random.Random(seed)
    for node, free in enumerate(topology.free_masks):
        mask = sum(1 << i for i in range(free.bit_length()) if drawn.random() < share) & free
        if drawn.random() < 0.3:
            mask = free
        if drawn.random() < 0.3:
            mask = 0
        if mask:
            topology.take(((node, mask),))


shapes = st.sampled_from(
    [
        {"widths": [8] * 6},
        {"widths": [4] * 8, "levels": RACKS},
        {"widths": [8] * 8, "levels": BLOCKS, "inner": {"island": 4}},
        {"widths": [2, 4, 8, 2, 4, 8], "levels": RACKS},
        {"widths": [4] * 8, "levels": BLOCKS, "kinds": ("h100", "t4")},
        {"widths": [12, 6, 3], "inner": {"island": 3, "socket": 6}},
    ]
)

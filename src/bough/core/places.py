"""Devices held, node by node, as sets: all of two places, and what one has beyond another."""

from __future__ import annotations

from bough.core.jobs import Slots


def merge(a: Slots, b: Slots) -> Slots:
    """All devices of both."""
    if len(a) == len(b) == 1 and a[0][0] == b[0][0]:
        return ((a[0][0], a[0][1] | b[0][1]),)
    masks = dict(a)
    for node, mask in b:
        masks[node] = masks.get(node, 0) | mask
    return tuple(sorted(masks.items()))


def minus(a: Slots, b: Slots) -> Slots:
    """Devices of a that are not of b."""
    if len(a) == len(b) == 1:
        if a[0][0] != b[0][0]:
            return a
        rest = a[0][1] & ~b[0][1]
        return ((a[0][0], rest),) if rest else ()
    masks = dict(b)
    left = [(node, mask & ~masks.get(node, 0)) for node, mask in a]
    return tuple([slot for slot in left if slot[1]])

"""What lies between devices, and what jobs send over it: where the short board would be."""

from __future__ import annotations

from collections import Counter

import numpy as np

from bough.core.known_models import EXPOSED, known_kind, known_model
from bough.core.policy import Bools, Ints, Links
from bough.core.state import State


def links_view(state: State, rows: Ints | None, pool: int) -> Links:
    """The levels of the tree for one kind of device, and what these rows exchange."""
    topology, items = state.topology, state.table.items
    sent = np.zeros((state.table.n if rows is None else len(rows), 2))
    kind = known_kind(topology.kinds[pool]) if pool < len(topology.kinds) else None
    every = range(state.table.n) if rows is None else rows.tolist()
    for i, row in enumerate(every):
        spec = items[row].spec
        model = known_model(state.speedups.trained(spec.model)) if spec.model else None
        if model is not None and kind is not None:
            batch = spec.batch or model.batch
            sent[i] = EXPOSED * 4e6 * model.parameters, model.per_sample * batch / kind.speed
    bandwidth = np.array([topology.bandwidth(span) for span in range(len(topology.spans))])
    return Links(topology.spans, bandwidth, largest(state, pool), sent[:, 0], sent[:, 1])


def largest(state: State, pool: int) -> Ints:
    """Usable devices of a kind in the largest domain of each level, from the bottom up."""
    topology = state.topology
    held = [
        (node, topology.open_masks[node].bit_count())
        for node, kind in enumerate(topology.pools)
        if kind == pool and topology.up[node]
    ]
    widest = max((devices for _, devices in held), default=0)
    found = [min(size, widest) for size in topology.inner] + [widest]
    for level in range(topology.tree.height):
        inside: Counter[int] = Counter()
        for node, devices in held:
            inside[topology.tree.chains[topology.racks[node]][level]] += devices
        found.append(max(inside.values(), default=0))
    return np.array(found, np.int64)


def reach(links: Links, sizes: Ints, patience: float) -> Ints:
    """The highest level over which each row may be spread at each of its sizes; -1: none.

    A ring all-reduce over the links of the level must take no longer than so many times what the
    devices compute in the meantime; a level above one that is too slow is out of reach as well.
    """
    n = np.maximum(sizes, 1)[:, :, None]
    waits = 2.0 * (n - 1) / n * links.bytes[:, None, None] / links.bandwidth
    ok: Bools = waits <= patience * links.seconds[:, None, None] / n + 1e-12
    found: Ints = np.cumprod(ok, axis=2).sum(axis=2) - 1
    return found

"""Turns Pollux' profiles, steps by local batch, into speeds at a fixed global batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bough.core.speedup import SpeedRow

#: devices, nodes, local batch, seconds of a step, seconds of it that synchronise.
Sample = tuple[int, int, float, float, float]


def pollux_rows(model: str, samples: Sequence[Sample], batches: Sequence[int]) -> list[SpeedRow]:
    """Rows for each global batch, or for doublings of the largest local one when none is told.

    The place with the fewest nodes is a size's compact one. A gang that would fit on one node but
    was measured on several is one level (span 1) more; wider spreads of larger ones are no level.
    """
    places: dict[tuple[int, int], list[Sample]] = {}
    for sample in samples:
        places.setdefault(sample[:2], []).append(sample)
    fewest: dict[int, int] = {}
    for devices, nodes in places:
        fewest[devices] = min(nodes, fewest.get(devices, nodes))
    largest = max((sample[2] for sample in samples), default=0.0)
    doublings = (int(largest) << k for k in range(max(fewest, default=1).bit_length()))
    rows = []
    for batch in batches or doublings:
        for (devices, nodes), found in sorted(places.items()):
            span = 0 if nodes == fewest[devices] else 1
            seconds = step_seconds(found, batch / devices)
            if seconds and (span == 0 or fewest[devices] == 1):
                rows.append(SpeedRow(model, batch, "", devices, 1 / seconds, span))
    return rows


def step_seconds(samples: Sequence[Sample], local_batch: float) -> float:
    """A step with so many samples on each device; 0 where nothing near was measured.

    What does not fit at once is done in equal passes, of which only the last synchronises.
    """
    by_batch = sorted((local, step, sync) for _, _, local, step, sync in samples)
    measured = [local for local, _, _ in by_batch]
    passes = max(1, math.ceil(local_batch / measured[-1] - 1e-9))
    if local_batch / passes < measured[0] * (1 - 1e-9):
        return 0.0
    step = float(np.interp(local_batch / passes, measured, [s for _, s, _ in by_batch]))
    compute = float(np.interp(local_batch / passes, measured, [s - y for _, s, y in by_batch]))
    return step + (passes - 1) * compute

"""Placing everything anew at each decision: what simulators with free migration do."""

from __future__ import annotations

import numpy as np

from bough.core.planning import Draft
from bough.core.settle import Settlement
from bough.core.state import POOL, SIZE


def repack(trial: Settlement, draft: Draft) -> bool:
    """Empty the tree, place what the plan grants in its order, pass over what does not fit."""
    state = trial.state
    table = state.table
    running = table.size.nonzero()[0].tolist()
    for row in running:
        trial.hold(row, table.items[row], ())
    if not draft.orders:
        rows = (draft.want > 0).nonzero()[0]
        rows = rows[np.argsort(-draft.want[rows], kind="stable")]
        draft.orders.append((rows, draft.want, int(draft.want.sum()), True))
    for order, wished, devices, skip in draft.orders:
        _walk(trial, order, wished, devices, skip)
    return True


def _walk(trial: Settlement, order: np.ndarray, wished: np.ndarray, left: int, skip: bool) -> None:  # type: ignore[type-arg]
    """Place rows in order while devices are left."""
    state = trial.state
    sizes = wished[order]
    candidates = order[(sizes > 0) & (sizes <= left)]
    pool_of = state.table.wi[POOL]
    for row in candidates.tolist():
        size = int(wished[row])
        if size > left or size >= trial.limit.get(int(pool_of[row]), 1 << 60):
            if not skip:
                return
            continue
        job = state.table.items[row]
        place = trial.look(row, job, int(pool_of[row]), size, ())
        if place is None:
            if job.plain:
                trial.limit[int(pool_of[row])] = size
            if not skip:
                return
            continue
        trial.hold(row, job, place)
        left -= size
        if left <= 0:
            return


__all__ = ["SIZE", "repack"]

"""Compiled twins of the loops in order.py and climb.py, for who installed the extra `fast`.

Each does exactly what its numpy twin does (tests compare them); fast.use_compiled chooses.
The signatures are spelt out, so that importing this module compiles, or finds in the cache,
everything at once, and no decision waits for a compiler.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import int64, njit, types

Ints = npt.NDArray[np.int64]

_row = types.Array(int64, 1, "C", readonly=True)
_table = types.Array(int64, 2, "C", readonly=True)
_pair = types.UniTuple(int64, 2)  # type: ignore[no-untyped-call]


@njit(int64[::1](_row, int64, _row, types.boolean), cache=True)
def fit_in_order(size: Ints, devices: int, order: Ints, skip: bool) -> Ints:
    """Twin of order.fit_in_order; an empty order is that of the rows."""
    granted = np.zeros(len(size), np.int64)
    for k in range(len(order) if len(order) else len(size)):
        i = order[k] if len(order) else k
        if size[i] <= devices:
            granted[i] = size[i]
            devices -= size[i]
            if devices == 0:
                break
        elif not skip:
            break
    return granted


@njit(types.boolean(_row, _row, _row, _row, _table, int64[:, ::1]), cache=True)
def count_climbers(
    rows: Ints, owner: Ints, lo: Ints, hi: Ints, rungs: Ints, climbers: Ints
) -> bool:
    """Count the rows that take the step from each rung; whether all bounds are rungs."""
    owners, width = rungs.shape
    for i in rows:
        who = owner[i]
        low, high = 0, width - 1
        while low < high and rungs[who, low] < lo[i]:
            low += 1
        while high > low and rungs[who, high] > hi[i]:
            high -= 1
        if rungs[who, low] != lo[i] or (rungs[who, high] != hi[i] and high < width - 1):
            return False
        climbers[who, low] += 1
        climbers[who, high] -= 1
    for who in range(owners):
        for rung in range(1, width):
            climbers[who, rung] += climbers[who, rung - 1]
    return True


@njit(_pair(int64[:, ::1], int64, int64[::1], _table), cache=True)
def take_levels(climbers: Ints, free: int, reached: Ints, steps: Ints) -> tuple[int, int]:
    """Take whole levels while they fit; the first step not taken, and the devices left."""
    k, count = 0, steps.shape[1]
    while k < count:
        need, end = 0, k
        while end < count and steps[3, end] == steps[3, k]:
            need += climbers[steps[0, end], steps[2, end]] * steps[1, end]
            end += 1
        if need > free:
            break
        free -= need
        for j in range(k, end):
            reached[steps[0, j]] = steps[2, j] + 1
        k = end
    return k, free


@njit(int64[::1](_row, _row, _row, _row, int64, _table, _table), cache=True)
def climb(
    order: Ints, owner: Ints, lo: Ints, hi: Ints, free: int, rungs: Ints, steps: Ints
) -> Ints:
    """Twin of climb.climb; empty when some bound lies between rungs.

    `steps` holds the owner, the cost, the rung and the level of every step.
    """
    size = np.zeros(len(lo), np.int64)
    rows = order if len(order) else np.arange(len(lo))
    admitted = 0
    for i in rows:
        if lo[i] > free:
            break
        free -= lo[i]
        size[i] = lo[i]
        admitted += 1
    rows = rows[:admitted]
    climbers = np.zeros(rungs.shape, np.int64)
    if not count_climbers(rows, owner, lo, hi, rungs, climbers):
        return size[:0]
    reached = np.zeros(len(rungs), np.int64)
    k, free = take_levels(climbers, free, reached, steps)
    for i in rows:
        size[i] = max(min(rungs[owner[i], reached[owner[i]]], hi[i]), lo[i])
    count = steps.shape[1]
    while k < count and free > 0:
        end, able = k, False
        while end < count and steps[3, end] == steps[3, k]:
            who, rung = steps[0, end], steps[2, end]
            able |= steps[1, end] <= free and climbers[who, rung] > 0
            reached[who] = rung + 1
            end += 1
        k = end
        for i in rows if able else rows[:0]:
            more = max(min(rungs[owner[i], reached[owner[i]]], hi[i]), lo[i]) - size[i]
            if 0 < more <= free:
                size[i] += more
                free -= more
    return size

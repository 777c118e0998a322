"""One option for each job, several pools of devices: the best choice by prices, or exactly.

Choosing a size and a kind of device for every job, so that the sum of what they are worth is
greatest, is a multiple-choice knapsack. If a device of each pool had the right price, everybody
choosing for themselves would nearly fill the pools: those prices are found by bisection. They
also prove how far from the best possible the outcome can be. With a single pool the best is found
by dynamic programming, with several by an integer program (the extra `optimize`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bough.core.programs import Program, solve

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Times the price of every pool is found anew, given those of the others, at most; they have
#: settled when none moves by more than this part of it.
ROUNDS, SETTLED = 40, 1e-3
#: Halvings of the interval in which a price lies.
HALVINGS = 40


@dataclass(slots=True, frozen=True)
class Choice:
    """What was chosen."""

    #: The option of each row; -1: none.
    option: Ints
    #: What the choice is worth in sum, and what no choice can exceed.
    worth: float
    bound: float
    #: Of a device of each pool.
    prices: Floats


def knapsack_relaxed(value: Floats, size: Ints, pool: Ints, devices: Ints) -> Choice:
    """Choose an option for each row, or none, such that all fit and are worth most in sum.

    Option k takes `size[k]` devices of pool `pool[k]` and is worth `value[i, k]` to row i, or
    -inf where it is not allowed; none is worth 0. What must be chosen can be made worth more.
    """
    prices = np.full(len(devices), _common_price(value, size, int(devices.sum())))
    for _ in range(ROUNDS if len(devices) > 1 else 1):
        before = prices.copy()
        for p in range(len(devices)):
            prices[p] = _clearing_price(p, value, size, pool, prices, int(devices[p]))
        if np.allclose(before, prices, rtol=SETTLED, atol=0.0):
            break
    net = value - prices[pool] * size
    best = net.max(axis=1, initial=0.0)
    bound = float(best.sum() + prices @ devices)
    free = devices.copy()
    option = _choose(net, size, pool, free)
    improve(value, option, size, pool, free)
    rows = (option >= 0).nonzero()[0]
    return Choice(option, float(value[rows, option[rows]].sum()), bound, prices)


def _common_price(value: Floats, size: Ints, devices: int) -> float:
    """The clearing price if all pools were one: where the search for prices begins."""
    one = np.zeros(len(size), np.int64)
    return _clearing_price(0, value, size, one, np.zeros(1), devices)


def _clearing_price(
    p: int, value: Floats, size: Ints, pool: Ints, prices: Floats, devices: int
) -> float:
    """The lowest price at which no more is asked of pool p than there is, given the others'."""
    here = (pool == p).nonzero()[0]
    if not len(here) or not len(value):
        return 0.0
    elsewhere = (value - prices[pool] * size)[:, pool != p].max(axis=1, initial=0.0)
    worth, own = value[:, here] - elsewhere[:, None], size[here]
    # Of equal options the smaller is taken, so that the demand falls at the price itself.
    by_size = np.argsort(own, kind="stable")
    worth, own = worth[:, by_size], own[by_size]

    def demand(price: float) -> int:
        net = worth - price * own
        best = net.argmax(axis=1)
        chosen = net[np.arange(len(net)), best] > 0
        return int(own[best[chosen]].sum())

    low, high = 0.0, float((worth / np.maximum(own, 1)).max(initial=0.0))
    if demand(low) <= devices:
        return low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if demand(middle) <= devices else (middle, high)
    return high


def _choose(net: Floats, size: Ints, pool: Ints, free: Ints) -> Ints:
    """Everybody's best option at these prices, those who gain most first, as far as they fit."""
    option = np.full(len(net), -1)
    if not net.size:
        return option
    best = net.argmax(axis=1)
    gain = net[np.arange(len(net)), best] / np.maximum(size[best], 1)
    for i in np.argsort(-gain, kind="stable").tolist():
        k = int(best[i])
        if gain[i] > 0 and size[k] <= free[pool[k]]:
            option[i] = k
            free[pool[k]] -= size[k]
    return option


def knapsack_of_one(value: Floats, size: Ints, devices: int) -> Ints:
    """The same for a single pool, exactly: the option of each row; -1: none.

    Row after row, the most that can be had with each number of devices: what it costs grows with
    rows x options x devices. Of equal choices, later rows take the smaller option.
    """
    rows, width = len(value), devices + 1
    order = np.argsort(size, kind="stable")
    order = order[size[order] <= devices]
    # Worth of the rows so far by devices; in front of it, what cannot be.
    margin = int(size[order].max(initial=0))
    had = np.concatenate([np.full(margin, -np.inf), np.zeros(width)])
    before = np.arange(width) - size[order][:, None] + margin
    table = np.empty((1 + len(order), width))
    taken = np.zeros((rows, width), np.int16)
    for i in range(rows):
        table[0] = had[margin:]
        np.add(had[before], value[i, order, None], out=table[1:])
        taken[i] = table.argmax(axis=0)
        had[margin:] = table.max(axis=0)
    option = np.full(rows, -1)
    left = int(had[margin:].argmax())
    for i in range(rows - 1, -1, -1):
        if taken[i, left]:
            option[i] = order[taken[i, left] - 1]
            left -= int(size[option[i]])
    return option


def knapsack_solved(value: Floats, size: Ints, pool: Ints, devices: Ints) -> Ints:
    """The same for any pools by an integer program, as near the best as `programs.GAP`."""
    row, option = np.isfinite(value).nonzero()
    n, pools, count = len(value), len(devices), len(row)
    if not count:
        return np.full(n, -1)
    at = np.arange(count)
    found = solve(
        Program(
            gain=value[row, option], low=np.zeros(count), high=np.ones(count),
            row=np.concatenate([row, n + pool[option]]), column=np.concatenate([at, at]),
            entry=np.concatenate([np.ones(count), size[option].astype(np.float64)]),
            row_low=np.full(n + pools, -np.inf),
            row_high=np.concatenate([np.ones(n), devices.astype(np.float64)]),
            whole=np.ones(count, np.bool_),
        )
    )  # fmt: skip
    assert found is not None, "to choose nothing is always possible"
    chosen = np.full(n, -1)
    taken = found > 0.5
    chosen[row[taken]] = option[taken]
    free = devices.copy()
    np.subtract.at(free, pool[option[taken]], size[option[taken]])
    improve(value, chosen, size, pool, free)
    return chosen


def improve(value: Floats, option: Ints, size: Ints, pool: Ints, free: Ints) -> None:
    """Spend what is left, a change of one row at a time, greatest gain for a device first."""
    every = np.arange(len(value))
    while value.size:
        some = option >= 0
        now = np.where(some, value[every, option], 0.0)
        back = np.where(some[:, None] & (pool[option][:, None] == pool), size[option][:, None], 0)
        more = size - back
        gain = np.where(more <= free[pool], value - now[:, None], 0.0)
        rate = gain / np.maximum(more, 0.5)
        i, k = divmod(int(rate.argmax()), len(size))
        if not gain[i, k] > 1e-12 * abs(now[i]):
            return
        if option[i] >= 0:
            free[pool[option[i]]] += size[option[i]]
        option[i] = k
        free[pool[k]] -= size[k]

"""One option for each job, several pools of devices: the best choice by prices, not by a solver.

Choosing a size and a kind of device for every job, so that the sum of what they are worth is
greatest, is a multiple-choice knapsack. If a device of each pool had the right price, everybody
choosing for themselves would nearly fill the pools: those prices are found by bisection. They
also prove how far from the best possible the outcome can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Times the price of every pool is found anew, given those of the others.
ROUNDS = 6
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
    prices = np.zeros(len(devices))
    for _ in range(ROUNDS if len(devices) > 1 else 1):
        before = prices.copy()
        for p in range(len(devices)):
            prices[p] = _clearing_price(p, value, size, pool, prices, int(devices[p]))
        if np.allclose(before, prices, rtol=1e-9, atol=0.0):
            break
    net = value - prices[pool] * size
    best = net.max(axis=1, initial=0.0)
    bound = float(best.sum() + prices @ devices)
    free = devices.copy()
    option = _choose(net, size, pool, free)
    _improve(value, option, size, pool, free)
    rows = (option >= 0).nonzero()[0]
    return Choice(option, float(value[rows, option[rows]].sum()), bound, prices)


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


def _improve(value: Floats, option: Ints, size: Ints, pool: Ints, free: Ints) -> None:
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

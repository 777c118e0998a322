"""Plans that are bred: populations of choices, crossed, changed by chance, and repaired.

The operators are those of Pollux (OSDI '21): crossing at one job, going back to the present
choice, giving up, growing at random, and repairing what is too much in a fixed order of jobs.
"""

from __future__ import annotations

import numpy as np

from bough.core.lots import Lots
from bough.core.policy import Bools, Floats, Ints

#: Chance that a job of a plan goes back to what it has, gives up, or has something else.
BACK, NOTHING, OTHER = 0.1, 0.01, 0.05


def evolve(
    worth: Floats, size: Ints, devices: int, held: Ints, shape: tuple[int, int],
    chance: Lots,
) -> Ints:  # fmt: skip
    """The option of each row (-1: none) in the best plan after so many generations.

    `worth` is as in knapsack.py; `shape` is how many plans there are, and for how many generations.
    """
    plans, generations = shape
    rows = len(worth)
    if not rows or not len(size):
        return np.full(rows, -1)
    # Option 0 is none, so that choices can be looked up.
    value = np.concatenate([np.zeros((rows, 1)), worth], axis=1)
    cost = np.concatenate([[0], size])
    able = np.isfinite(value)
    count = able.sum(axis=1)
    allowed = np.argsort(~able, axis=1, kind="stable")
    # Who must run is worth more than all others: it is seen to first.
    order = np.argsort(-np.where(able, value, 0.0).max(axis=1), kind="stable")
    now = np.where(able[np.arange(rows), held + 1], held + 1, 0)
    alive = repaired(np.repeat(now[None], plans, axis=0), cost, devices, order)
    fitness = _fitness(value, alive)
    for _ in range(generations):
        parents = alive[_tournament(fitness, plans, chance)]
        point = chance.below(rows + 1, (plans, 1))
        young = np.where(np.arange(rows) < point, parents[0], parents[1])
        young = np.where(chance.parts(young.shape) < BACK, now, young)
        young = np.where(chance.parts(young.shape) < NOTHING, 0, young)
        drawn = allowed[np.arange(rows), (chance.parts(young.shape) * count).astype(np.int64)]
        young = np.where(chance.parts(young.shape) < OTHER, drawn, young)
        young = repaired(young, cost, devices, order)
        alive = np.concatenate([alive, young])
        fitness = np.concatenate([fitness, _fitness(value, young)])
        fittest = np.argsort(-fitness, kind="stable")[:plans]
        alive, fitness = alive[fittest], fitness[fittest]
    best: Ints = alive[0] - 1
    return best


def repaired(plans: Ints, cost: Ints, devices: int, order: Ints) -> Ints:
    """Rows in order keep their choice as long as it fits, and nothing where it does not."""
    plans = plans.copy()
    free = np.full(len(plans), devices)
    for row in order.tolist():
        fits: Bools = cost[plans[:, row]] <= free
        plans[~fits, row] = 0
        free -= cost[plans[:, row]]
    return plans


def _fitness(value: Floats, plans: Ints) -> Floats:
    """What each plan is worth in sum."""
    found: Floats = value[np.arange(len(value)), plans].sum(axis=1)
    return found


def _tournament(fitness: Floats, plans: int, chance: Lots) -> Ints:
    """Two parents for each new plan: of two drawn plans the fitter."""
    drawn = chance.below(len(fitness), (2, plans, 2))
    first, second = drawn[..., 0], drawn[..., 1]
    found: Ints = np.where(fitness[first] >= fitness[second], first, second)
    return found

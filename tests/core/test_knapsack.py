"""Choosing an option for each job: feasible, near the best, and never above the bound."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.knapsack import Floats, Ints, knapsack_relaxed


def best_of_all(value: Floats, size: Ints, pool: Ints, devices: Ints) -> float:
    """The worth of the best choice, by trying them all."""
    best = 0.0
    for option in itertools.product(range(-1, len(size)), repeat=len(value)):
        used, worth = np.zeros(len(devices)), 0.0
        for row, k in enumerate(option):
            if k >= 0:
                used[pool[k]] += size[k]
                worth += value[row, k]
        if (used <= devices).all():
            best = max(best, worth)
    return best


def test_takes_what_is_worth_most_for_a_device() -> None:
    value = np.array([[1.0, 1.5], [1.0, 1.9], [0.2, 0.3]])
    choice = knapsack_relaxed(value, np.array([1, 2]), np.array([0, 0]), np.array([3]))
    assert choice.option.tolist() == [0, 1, -1]
    assert choice.worth == 2.9


def test_everybody_goes_to_the_pool_that_suits_them() -> None:
    value = np.array([[1.0, 3.0], [1.0, 1.1], [1.0, 2.0]])
    choice = knapsack_relaxed(value, np.array([1, 1]), np.array([0, 1]), np.array([2, 1]))
    assert choice.option.tolist() == [1, 0, 0]


def test_what_is_not_allowed_is_not_chosen() -> None:
    value = np.array([[-np.inf, 1.0], [-np.inf, -np.inf]])
    choice = knapsack_relaxed(value, np.array([1, 4]), np.array([0, 0]), np.array([8]))
    assert choice.option.tolist() == [1, -1]


def test_nothing_to_choose_from() -> None:
    none = np.zeros(0, np.int64)
    assert knapsack_relaxed(np.zeros((0, 0)), none, none, np.array([4])).option.tolist() == []
    assert knapsack_relaxed(np.zeros((2, 0)), none, none, np.array([4])).worth == 0.0


def test_many_jobs_in_several_pools_come_close_to_the_bound() -> None:
    """Few kinds of jobs, each best somewhere else: where prices begin must not keep them apart."""
    draw = np.random.default_rng(0)
    models = draw.uniform(0.2, 1.0, (10, 3, 5)).cumsum(axis=2).reshape(10, -1)
    value = models[draw.integers(10, size=300)] ** 0.7
    size, pool = np.tile([1, 2, 4, 8, 16], 3), np.repeat([0, 1, 2], 5)
    for devices in ([60, 30, 30], [300, 150, 150], [2400, 1200, 1200]):
        choice = knapsack_relaxed(value, size, pool, np.array(devices))
        assert choice.worth >= 0.95 * choice.bound


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_feasible_and_below_the_bound(data: st.DataObject) -> None:
    rows, options = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    pools = data.draw(st.integers(1, 2))
    size = np.array(data.draw(st.lists(st.integers(1, 5), min_size=options, max_size=options)))
    pool = np.array([data.draw(st.integers(0, pools - 1)) for _ in size])
    devices = np.array([data.draw(st.integers(0, 9)) for _ in range(pools)])
    worths = st.lists(st.integers(0, 30), min_size=options, max_size=options)
    value = np.array([data.draw(worths) for _ in range(rows)]) / 4
    choice = knapsack_relaxed(value, size, pool, devices)
    used = np.zeros(pools)
    for k in choice.option[choice.option >= 0]:
        used[pool[k]] += size[k]
    assert (used <= devices).all()
    best = best_of_all(value, size, pool, devices)
    assert choice.worth <= best + 1e-9
    assert best <= choice.bound + 1e-6


def test_close_to_the_bound_where_jobs_are_many() -> None:
    random = np.random.default_rng(3)
    size, pool = np.tile(2 ** np.arange(4), 3), np.repeat(np.arange(3), 4)
    suits = random.uniform(0.5, 2.0, (200, 3)).repeat(4, axis=1)
    value = random.random((200, 1)) * size**0.8 * suits
    choice = knapsack_relaxed(value, size, pool, np.array([120, 200, 60]))
    assert choice.worth >= 0.99 * choice.bound

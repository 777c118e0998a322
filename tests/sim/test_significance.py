"""Intervals and probabilities are those of the textbooks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bough.sim.significance import compared, holm, interval, sign_flip


def test_an_interval_of_student() -> None:
    """Mean 3, standard deviation sqrt(2.5), four degrees of freedom: 2.776 * 0.7071."""
    found = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.mean == 3.0
    assert found.half == pytest.approx(2.776 * math.sqrt(2.5 / 5))
    assert interval([7.0]).half == math.inf


def test_signs_are_tossed_exactly() -> None:
    """Five pairs on one side: two of 32 tosses are as far out."""
    assert sign_flip(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) == 2 / 32
    assert sign_flip(np.zeros(5)) == 1.0
    assert sign_flip(np.array([1.0, -1.0])) == 1.0


def test_many_pairs_are_tossed_by_a_seed() -> None:
    few, many = sign_flip(np.ones(12)), sign_flip(np.ones(40))
    assert few == 2 / 2**12
    assert many < 2e-4
    assert many == sign_flip(np.ones(40))


def test_a_ratio_is_told_whatever_the_size_of_the_instance() -> None:
    verdict = compared([50.0, 5e6, 0.5], [100.0, 1e7, 1.0], by_ratio=True)
    assert (verdict.effect, verdict.low, verdict.high) == pytest.approx((0.5, 0.5, 0.5))
    assert verdict.p == 0.25


def test_shares_are_told_apart_by_difference() -> None:
    verdict = compared([0.9, 0.8, 0.0], [0.8, 0.7, 0.0], by_ratio=False)
    assert verdict.effect == pytest.approx(0.2 / 3)


def test_luck_among_many_is_corrected() -> None:
    """Holm: 0.01 x 4, 0.02 x 3, 0.03 x 2, and never less than the one before."""
    assert holm([0.02, 0.01, 0.03, 0.9]) == pytest.approx([0.06, 0.04, 0.06, 0.9])
    assert holm([]) == []


def test_equal_policies_are_rarely_told_apart() -> None:
    """Of 200 comparisons of noise with noise, about one in twenty has p below 0.05."""
    chance = np.random.default_rng(0)
    below = sum(
        compared(*np.exp(chance.normal(size=(2, 8))).tolist(), by_ratio=True).p < 0.05
        for _ in range(200)
    )
    assert 2 <= below <= 20

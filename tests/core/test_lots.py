"""Lots that follow from a seed: the same again, spread evenly, different for another seed."""

from __future__ import annotations

import numpy as np

from bough.core.lots import Lots


def test_the_same_seed_gives_the_same_lots_however_they_are_asked_for() -> None:
    whole = Lots(7).parts((1000,))
    other = Lots(7)
    pieces = [other.parts((10, 30)).ravel(), other.parts((700,))]
    assert np.array_equal(np.concatenate(pieces), whole)
    assert abs(np.corrcoef(whole, Lots(8).parts((1000,)))[0, 1]) < 0.1


def test_lots_are_spread_evenly() -> None:
    """Chi-squared over 100 cells of 100,000: 99 degrees of freedom, far within 6 sigmas."""
    for seed in range(5):
        found = Lots(seed).parts((100_000,))
        assert found.min() >= 0.0
        assert found.max() < 1.0
        counts = np.bincount((found * 100).astype(int), minlength=100)
        assert abs(((counts - 1000) ** 2 / 1000).sum() - 99) < 6 * np.sqrt(2 * 99)
        assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.02


def test_whole_numbers_reach_both_ends() -> None:
    found = Lots(1).below(6, (1000, 2))
    assert found.shape == (1000, 2)
    assert set(found.ravel().tolist()) == set(range(6))

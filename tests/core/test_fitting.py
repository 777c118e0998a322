"""Fits find the form that made the samples, also under noise, and say how wrong they may be."""

from __future__ import annotations

import math
from itertools import combinations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.fitting import OnlineFit, Optimus, fit_optimus, fit_power_law, nnls
from bough.core.pollux import Batches, Pollux, PolluxSample, fit_pollux, goodput, goodput_curve
from bough.core.speedup import Curve, power_law

SIZES = (1, 2, 4, 8, 16, 32)

# ------------------------------------------------------------------------------- power law


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 1000), st.floats(0, 1.2))
def test_a_power_law_is_found_exactly(first: float, exponent: float) -> None:
    law = fit_power_law(SIZES, [first * n**exponent for n in SIZES])
    assert law.first == pytest.approx(first)
    assert law.exponent == pytest.approx(exponent, abs=1e-9)
    assert law.error == pytest.approx(0, abs=1e-9)


def test_its_error_is_the_residual() -> None:
    wrong = np.array([1.1, 1 / 1.1, 1.1, 1 / 1.1])
    law = fit_power_law((1, 1, 2, 2), (wrong * [1, 1, 2, 2]).tolist())
    assert law.rate(2) == pytest.approx(2)
    assert law.error == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("sizes", "rates", "message"),
    [
        ((1, 1), (1.0, 2.0), "two different sizes"),
        ((), (), "sizes is empty"),
        ((1, 2), (1.0,), "rates has 1 values for 2 sizes"),
        ((1, 2), (1.0, math.nan), r"rates\[1\] is nan"),
        ((1, 2), (0.0, 1.0), r"rates\[0\] is 0"),
        ((0, 2), (1.0, 1.0), r"sizes\[0\] is 0"),
    ],
)
def test_samples_that_cannot_be_measured_are_refused(
    sizes: tuple[int, ...], rates: tuple[float, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fit_power_law(sizes, rates)


# --------------------------------------------------------------------------------- Optimus


def nnls_by_subsets(matrix: np.ndarray, target: np.ndarray) -> float:
    """The least residual over every choice of columns whose plain solution is not negative."""
    best = float(np.linalg.norm(target))
    for k in range(1, matrix.shape[1] + 1):
        for columns in combinations(range(matrix.shape[1]), k):
            x = np.linalg.lstsq(matrix[:, columns], target, rcond=None)[0]
            if (x >= 0).all():
                best = min(best, float(np.linalg.norm(matrix[:, columns] @ x - target)))
    return best


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 8))
def test_non_negative_least_squares_is_the_best_of_all_subsets(
    seed: int, width: int, height: int
) -> None:
    draw = np.random.default_rng(seed)
    matrix, target = draw.normal(size=(height, width)), draw.normal(size=height)
    x = nnls(matrix, target)
    assert (x >= 0).all()
    best = nnls_by_subsets(matrix, target)
    assert np.linalg.norm(matrix @ x - target) == pytest.approx(best, abs=1e-7)


def optimus_samples(truth: Optimus, noise: float = 0.0) -> list[tuple[int, int, float]]:
    draw = np.random.default_rng(7)
    pairs = [(w, p) for w in (1, 2, 4, 6, 10) for p in (1, 3, 8)]
    factor = np.exp(noise * draw.normal(size=len(pairs)))
    return [(w, p, truth.rate(w, p) * f) for (w, p), f in zip(pairs, factor, strict=True)]


@pytest.mark.parametrize(
    "truth",
    [
        Optimus("sync", (0.02, 0.3, 0.1, 0.01, 0.02), batch=128),
        Optimus("sync", (0.05, 0.0, 0.4, 0.0, 0.01), batch=64),
        Optimus("async", (0.5, 0.2, 0.03, 0.04)),
    ],
)
def test_the_forms_of_optimus_are_found(truth: Optimus) -> None:
    fit = fit_optimus(optimus_samples(truth), truth.mode, truth.batch)
    assert fit.coefficients == pytest.approx(truth.coefficients, abs=1e-6)
    noisy = fit_optimus(optimus_samples(truth, noise=0.05), truth.mode, truth.batch)
    assert noisy.rate(8, 4) == pytest.approx(truth.rate(8, 4), rel=0.1)
    assert 0.01 < noisy.error < 0.1


def test_optimus_needs_its_number_of_samples() -> None:
    with pytest.raises(ValueError, match="sync needs at least 5, there are 4"):
        fit_optimus([(w, 1, 1.0) for w in (1, 2, 3, 4)])
    with pytest.raises(ValueError, match="async needs at least 4"):
        fit_optimus([(1, 1, 1.0)], "async")


def test_an_optimus_curve_has_as_many_servers_as_workers() -> None:
    truth = Optimus("sync", (0.02, 0.3, 0.1, 0.01, 0.02), batch=128)
    curve = truth.curve((1, 4))
    assert curve.speed == pytest.approx((1.0, truth.rate(4, 4) / truth.rate(1, 1)))
    assert curve.source == "fitted"


# ---------------------------------------------------------------------------------- Pollux

BERT = Pollux(0.17, 0.058, 0.26, 0.003, 1.3, 0.014, 1.7)


def pollux_samples(
    truth: Pollux, places: list[tuple[int, int]], noise: float = 0.0
) -> list[PolluxSample]:
    draw = np.random.default_rng(3)
    return [
        PolluxSample(
            devices, nodes, local,
            truth.step_seconds(devices, nodes, local) * float(np.exp(noise * draw.normal())),
            truth.compute + truth.compute_per_sample * local,
        )
        for devices, nodes in places
        for local in (4.0, 8.0, 12.0)
    ]  # fmt: skip


PLACES = [(1, 1), (2, 1), (4, 1), (2, 2), (4, 2), (8, 2), (16, 4)]


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_form_of_pollux_predicts_places_it_has_not_seen(noise: float) -> None:
    fit = fit_pollux(pollux_samples(BERT, PLACES, noise))
    for devices, nodes, local in [(3, 1, 6.0), (12, 3, 10.0), (16, 16, 4.0), (32, 8, 12.0)]:
        expected = BERT.step_seconds(devices, nodes, local)
        assert fit.step_seconds(devices, nodes, local) == pytest.approx(expected, rel=0.1)
    assert fit.error < 0.01 + 1.5 * noise


def test_what_was_never_seen_is_believed_to_cost_nothing() -> None:
    one = fit_pollux(pollux_samples(BERT, [(1, 1)]))
    assert one.throughput(16, 4, 12.0) == pytest.approx(16 * one.throughput(1, 1, 12.0), rel=1e-3)
    node = fit_pollux(pollux_samples(BERT, [(1, 1), (2, 1), (4, 1)]))
    assert node.step_seconds(4, 2, 12.0) == pytest.approx(node.step_seconds(4, 1, 12.0))


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (PolluxSample(2, 3, 4, 1.0), "2 devices cannot be on 3 nodes"),
        (PolluxSample(1, 0, 4, 1.0), "1 devices cannot be on 0 nodes"),
        (PolluxSample(1, 1, 4, math.nan), "must be positive and finite"),
        (PolluxSample(1, 1, 0, 1.0), "must be positive and finite"),
    ],
)
def test_impossible_samples_are_refused(sample: PolluxSample, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_pollux([sample])


def test_no_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="samples is empty"):
        fit_pollux([])


def test_a_large_batch_is_gathered_in_passes_of_which_only_the_last_synchronises() -> None:
    compute = BERT.compute + 12 * BERT.compute_per_sample
    expected = 3 * compute + BERT.step_seconds(2, 1, 12)
    assert BERT.steps_per_second(2, 1, 96, 12) == pytest.approx(1 / expected)


def test_goodput_grows_the_batch_only_as_far_as_it_pays() -> None:
    quiet = Batches(first=12, most=384, local_most=12, noise=10)
    noisy = Batches(first=12, most=384, local_most=12, noise=100_000)
    assert goodput(BERT, quiet, 8, 2)[1] < goodput(BERT, noisy, 8, 2)[1] <= 384
    assert noisy.efficiency(12) == 1.0


def test_the_goodput_curve_begins_at_one() -> None:
    batches = Batches(first=12, most=384, local_most=12, noise=1000)
    curve = goodput_curve(BERT, batches, (1, 2, 4, 8), node_devices=4)
    assert curve.at(1) == 1.0
    assert curve.at(4) > curve.at(2) > 1


# -------------------------------------------------------------------- while the job runs


def test_without_samples_the_believed_curve_stays() -> None:
    base = power_law(0.8, 0.2)
    assert OnlineFit(base).curve() is base


def test_one_sample_moves_the_level_and_less_so_other_sizes() -> None:
    fit = OnlineFit(power_law(0.8, 0.2))
    for _ in range(20):
        fit.add(8, 1.3 * 8**0.8)
    curve = fit.curve()
    assert curve.source == "fitted"
    assert curve.at(8) == pytest.approx(1.3 * 8**0.8, rel=0.03)
    assert 1.0 < curve.at(1) < 1.3


def test_several_sizes_tell_how_well_it_scales() -> None:
    fit = OnlineFit(power_law(0.8, 0.2))
    for size in (1, 2, 4, 8):
        for _ in range(10):
            fit.add(size, size**0.5)
    curve = fit.curve()
    assert curve.at(4) == pytest.approx(2, rel=0.03)
    assert curve.at(16) == pytest.approx(4, rel=0.1)
    assert fit.tilt() == pytest.approx(-0.3, abs=0.03)


def test_more_samples_mean_less_error() -> None:
    errors = []
    for count in (1, 4, 20):
        fit = OnlineFit(power_law(0.8, 0.2))
        for size in (1, 4):
            for _ in range(count):
                fit.add(size, size**0.7)
        errors.append(fit.curve((1, 4)).error)
    assert errors[0] > errors[1] > errors[2] > 0


def test_one_outlier_does_not_decide() -> None:
    fit = OnlineFit(power_law(0.8, 0.2))
    for _ in range(10):
        fit.add(4, 4**0.8)
    fit.add(4, 4**0.8 / 50)
    assert fit.curve().at(4) == pytest.approx(4**0.8, rel=0.1)


def test_a_lasting_change_is_followed() -> None:
    fit = OnlineFit(power_law(0.8, 0.2))
    for _ in range(50):
        fit.add(4, 4**0.8)
    for _ in range(100):
        fit.add(4, 4**0.8 / 2)
    assert fit.curve().at(4) == pytest.approx(4**0.8 / 2, rel=0.15)
    assert fit.samples() <= 20


def test_rates_in_another_unit_still_tell_how_it_scales() -> None:
    fit = OnlineFit(power_law(0.8, 0.2), unit_known=False)
    for size in (1, 2, 4, 8):
        for _ in range(10):
            fit.add(size, 1234 * size**0.6)
    curve = fit.curve()
    assert curve.at(8) / curve.at(1) == pytest.approx(8**0.6, rel=0.03)


def test_a_size_that_was_measured_joins_the_curve() -> None:
    fit = OnlineFit(Curve((1, 8), (1.0, 6.0), error=0.1))
    fit.add(3, 2.5)
    assert 3 in fit.curve().sizes
    assert 5 in fit.curve((5,)).sizes


def test_a_size_believed_impossible_teaches_nothing() -> None:
    fit = OnlineFit(Curve((1, 4), (0.0, 3.0), error=0.1))
    fit.add(1, 0.5)
    assert fit.samples() == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(SIZES), st.floats(0.001, 1000)), max_size=30))
def test_whatever_is_measured_the_curve_is_one_and_survives_a_snapshot(
    samples: list[tuple[int, float]],
) -> None:
    fit = OnlineFit(power_law(0.8, 0.2))
    for size, rate in samples:
        fit.add(size, rate)
    again = OnlineFit(fit.base)
    again.restore(msgspec.json.decode(msgspec.json.encode(fit.state())))
    assert again.curve() == fit.curve()
    assert all(v > 0 for v in fit.curve().speed)


def test_a_rate_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"rates\[0\] is nan"):
        OnlineFit(power_law(0.8)).add(1, math.nan)

"""Curves answer for every size, refuse nonsense, and the book finds the nearest thing known."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core import known_models
from bough.core.prior import Prior
from bough.core.speedup import Curve, SpeedBook, SpeedRow, power_law

speeds = st.just(0.0) | st.floats(0.01, 100)


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    sizes = sorted(draw(st.sets(st.integers(1, 64), min_size=1, max_size=8)))
    speed = draw(st.lists(speeds, min_size=len(sizes), max_size=len(sizes)).filter(any))
    return Curve(tuple(sizes), tuple(speed))


def rows(model: str, batch: int, kind: str, rates: dict[int, float]) -> list[SpeedRow]:
    return [SpeedRow(model, batch, kind, size, rate) for size, rate in rates.items()]


# ---------------------------------------------------------------------------------- a curve


def test_between_known_sizes_the_speed_is_linear() -> None:
    curve = Curve((1, 2, 4), (1.0, 1.8, 3.0))
    assert [curve.at(n) for n in (1, 2, 3, 4)] == [1.0, 1.8, pytest.approx(2.4), 3.0]


def test_beyond_the_last_known_size_it_is_flat() -> None:
    assert Curve((1, 2), (1.0, 1.8)).at(1000) == 1.8


def test_below_the_first_known_size_it_is_in_proportion() -> None:
    curve = Curve((4, 8), (3.0, 5.0))
    assert [curve.at(n) for n in (0, 1, 2)] == [0.0, 0.75, 1.5]


def test_a_size_known_not_to_run_stops_every_size_up_to_the_first_that_does() -> None:
    curve = Curve((1, 4, 8), (0.0, 3.0, 5.0))
    assert [curve.at(n) for n in (1, 2, 3, 4)] == [0.0, 0.0, 0.0, 3.0]


def test_spans_count_levels_above_the_most_compact_place() -> None:
    curve = Curve((1, 8), (1.0, 6.0), span_factor=(0.8, 0.5))
    assert [curve.spread(levels) for levels in (0, 1, 2, 3)] == [1.0, 0.8, 0.5, 0.5]
    assert Curve((1,), (1.0,)).spread(3) == 1.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sizes": (), "speed": ()}, "sizes is empty"),
        ({"sizes": (1, 2), "speed": (1.0,)}, "speed has 1 values for 2 sizes"),
        ({"sizes": (0, 2), "speed": (1.0, 2.0)}, "sizes [0, 2] must be positive and ascending"),
        ({"sizes": (2, 2), "speed": (1.0, 2.0)}, "sizes [2, 2] must be positive and ascending"),
        ({"sizes": (1, 2), "speed": (1.0, math.nan)}, "speed[1] is nan"),
        ({"sizes": (1, 2), "speed": (1.0, -2.0)}, "speed[1] is -2.0"),
        ({"sizes": (1, 2), "speed": (math.inf, 2.0)}, "speed[0] is inf"),
        ({"sizes": (1, 2), "speed": (0.0, 0.0)}, "speed is 0 everywhere"),
        ({"sizes": (1,), "speed": (1.0,), "error": -0.1}, "error is -0.1"),
        ({"sizes": (1,), "speed": (1.0,), "error": math.nan}, "error is nan"),
        ({"sizes": (1,), "speed": (1.0,), "span_factor": (0.0,)}, "span_factor[0] is 0.0"),
    ],
)
def test_a_curve_that_makes_no_sense_is_refused_by_field(
    fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message.replace("[", r"\[").replace("]", r"\]")):
        Curve(**fields)


def test_a_curve_survives_json() -> None:
    curve = Curve((1, 2), (1.0, 1.7), "fitted", 0.1, (0.9,))
    assert msgspec.json.decode(msgspec.json.encode(curve), type=Curve) == curve


# ------------------------------------------------------------------------- concave envelope


def hull_at(curve: Curve, n: int) -> float:
    """The envelope by its definition: the best mixture of two sizes, 0 devices among them."""
    top = curve.peak()
    points = [(0, 0.0), *((s, v) for s, v in zip(curve.sizes, curve.speed, strict=True))]
    best = max(v for s, v in points if s <= max(n, 0) or s <= top) if n >= top else 0.0
    for a, va in points:
        for b, vb in points:
            if a <= n <= b and a < b:
                best = max(best, va + (vb - va) * (n - a) / (b - a))
    return best


@settings(max_examples=60, deadline=None)
@given(curves())
def test_the_envelope_is_the_least_concave_curve_above(curve: Curve) -> None:
    envelope = curve.concave()
    for size in curve.sizes:
        assert envelope.at(size) == pytest.approx(hull_at(curve, size))


@settings(max_examples=60, deadline=None)
@given(curves())
def test_gains_per_device_of_the_envelope_never_grow(curve: Curve) -> None:
    envelope = curve.concave()
    sizes, speed = (0, *envelope.sizes), (0.0, *envelope.speed)
    gains = np.diff(speed) / np.diff(sizes)
    assert (np.diff(gains) <= 1e-9).all()
    assert (gains >= 0).all()


def test_past_its_peak_the_envelope_is_flat() -> None:
    assert Curve((1, 2, 4, 8), (1.0, 1.9, 3.0, 2.0)).concave().speed == (1.0, 1.9, 3.0, 3.0)


# --------------------------------------------------------------------------------- the book


def test_a_table_is_relative_to_one_device_of_the_reference_kind() -> None:
    book = SpeedBook("v100")
    book.add_rows(rows("resnet50", 64, "v100", {1: 4.0, 2: 7.0}))
    book.add_rows(rows("resnet50", 64, "h100", {1: 12.0, 2: 22.0}))
    assert book.curve("resnet50", 64, "v100").speed == (1.0, 1.75)
    assert book.curve("resnet50", 64, "h100").speed == (3.0, 5.5)


def test_names_are_found_however_they_are_written() -> None:
    book = SpeedBook()
    book.add_rows(rows("ResNet-50", 64, "V100", {1: 4.0, 2: 7.0}))
    assert book.curve("resnet50", 64, "v100").speed == (1.0, 1.75)
    assert book.rate("resnet_50", 64, "v100", 2) == 7.0


def test_without_the_batch_the_nearest_one_serves_with_more_error() -> None:
    book = SpeedBook()
    book.add_rows(rows("m", 64, "v100", {1: 4.0, 2: 6.0}))
    book.add_rows(rows("m", 256, "v100", {1: 1.0, 2: 1.9}))
    curve = book.curve("m", 200, "v100")
    assert curve.speed == (1.0, 1.9)
    assert 0 < curve.error < book.curve("m", 512, "v100").error < 0.2


def test_without_the_kind_another_is_scaled_with_more_error() -> None:
    book = SpeedBook("a100", factors={"mine": 4.4})
    book.add_rows(rows("m", 64, "a100", {1: 4.0, 2: 6.0}))
    curve = book.curve("m", 64, "mine")
    assert curve.speed == pytest.approx((2.0, 3.0))
    assert curve.error == pytest.approx(0.2)


def test_the_unit_follows_from_another_kind_when_the_reference_was_not_measured() -> None:
    book = SpeedBook("v100", factors={"slow": 0.5})
    book.add_rows(rows("m", 64, "slow", {1: 4.0, 2: 6.0}))
    assert book.curve("m", 64, "slow").speed == (0.5, 0.75)
    assert book.curve("m", 64, "v100").speed == (1.0, 1.5)


def test_without_a_reference_kinds_nobody_measured_are_equally_fast() -> None:
    book = SpeedBook()
    assert book.curve("resnet50", 0, "k80").at(1) == book.curve("resnet50", 0, "h100").at(1) == 1
    assert book.curve("unheard-of", 0, "k80") is book.curve("unheard-of", 0, "h100")


def test_a_book_can_be_seen_from_another_reference() -> None:
    book = SpeedBook()
    book.add_rows(rows("m", 64, "a", {1: 2.0, 2: 3.0}))
    book.add_rows(rows("m", 64, "b", {1: 1.0, 2: 2.0}))
    assert book.referring_to("b").curve("m", 64, "a").speed == (2.0, 3.0)
    assert book.curve("m", 64, "a").speed == (1.0, 1.5)


def test_a_relative_curve_is_taken_as_it_is() -> None:
    book = SpeedBook("v100")
    curve = Curve((1, 2), (2.0, 3.5), "fitted", 0.05)
    book.add("m", 8, "h100", curve)
    assert book.curve("m", 8, "h100") == curve


def test_a_new_table_replaces_the_remembered_answer() -> None:
    book = SpeedBook()
    before = book.curve("resnet50", 64, "v100")
    assert before.source == "planned"
    assert book.curve("resnet50", 64, "v100") is before
    book.add_rows(rows("resnet50", 64, "v100", {1: 1.0, 2: 2.0}))
    assert book.curve("resnet50", 64, "v100").source == "profiled"


def test_spans_become_factors_and_a_span_nobody_measured_is_like_the_one_below() -> None:
    book = SpeedBook()
    spread = [SpeedRow("m", 8, "x", n, r, span=1) for n, r in {2: 1.0, 4: 1.6}.items()]
    far = [SpeedRow("m", 8, "x", 4, 0.8, span=3)]
    book.add_rows(rows("m", 8, "x", {1: 1.0, 2: 2.0, 4: 3.2}) + spread + far)
    assert book.curve("m", 8, "x").span_factor == pytest.approx((0.5, 0.5, 0.25))


def test_a_size_measured_only_far_apart_counts_as_its_most_compact_place() -> None:
    book = SpeedBook()
    book.add_rows([*rows("m", 8, "x", {1: 1.0}), SpeedRow("m", 8, "x", 16, 5.0, span=1)])
    assert book.curve("m", 8, "x").at(16) == 5.0


def test_repeated_measurements_are_averaged() -> None:
    book = SpeedBook()
    book.add_rows([*rows("m", 8, "x", {1: 1.0, 2: 1.6}), SpeedRow("m", 8, "x", 2, 2.0)])
    assert book.curve("m", 8, "x").at(2) == pytest.approx(1.8)


def test_exact_rates_are_told_only_where_they_were_measured() -> None:
    book = SpeedBook()
    book.add_rows(rows("m", 8, "x", {1: 1.0, 4: 3.0, 8: 0.0}))
    assert [book.rate("m", 8, "x", n) for n in (1, 2, 4, 8)] == [1.0, None, 3.0, None]
    assert book.rate("m", 16, "x", 1) is None
    assert book.rate("m", 8, "y", 1) is None
    assert book.rate("m", 8, "", 1) == 1.0


def test_a_factor_must_be_a_number_one_can_divide_by() -> None:
    with pytest.raises(ValueError, match="factor of x is nan"):
        SpeedBook(factors={"x": math.nan})


# --------------------------------------------------------------------- models known by name


@pytest.mark.parametrize("kind", sorted(known_models.KINDS))
def test_every_built_in_curve_begins_at_one_and_cannot_beat_perfect_scaling(kind: str) -> None:
    book = SpeedBook(kind)
    for model in known_models.MODELS:
        curve = book.curve(model, 0, kind)
        assert curve.source == "planned"
        assert curve.at(1) == pytest.approx(1)
        assert all(v <= n + 1e-9 for n, v in zip(curve.sizes, curve.speed, strict=True))
        assert all(0 < f <= 1 for f in curve.span_factor)


def test_other_names_lead_to_models_there_are() -> None:
    assert set(known_models.ALIASES.values()) <= set(known_models.MODELS)
    assert not set(known_models.ALIASES) & set(known_models.MODELS)


def test_a_built_in_curve_needs_a_sample_for_each_device() -> None:
    assert SpeedBook().curve("bert", 16, "v100").sizes[-1] == 16


def test_a_larger_batch_scales_better() -> None:
    book = SpeedBook()
    small, large = (book.curve("resnet50", batch, "v100").at(32) for batch in (128, 1024))
    assert small < large


def test_a_faster_kind_is_faster_and_scales_worse() -> None:
    book = SpeedBook("v100")
    v100, h100 = (book.curve("resnet50", 256, kind) for kind in ("v100", "h100"))
    assert h100.at(1) > 3 * v100.at(1)
    assert h100.at(32) / h100.at(1) < v100.at(32) / v100.at(1)


def test_kinds_are_known_by_the_beginning_of_their_name() -> None:
    assert known_models.known_kind("A100-SXM4-80GB") == known_models.KINDS["a100"]
    assert known_models.known_kind("quantum") is None


# ---------------------------------------------------------------------- models nobody knows


def test_an_unknown_model_follows_the_power_law_the_prior_expects() -> None:
    book = SpeedBook()
    curve = book.curve("unheard-of", 0, "v100")
    assert curve.source == "prior"
    assert curve.at(16) == pytest.approx(16**0.8)


def test_unknown_models_share_one_curve_until_something_is_learnt() -> None:
    prior = Prior()
    book = SpeedBook(prior=prior)
    before = book.curve("a", 0, "v100")
    assert book.curve("b", 3, "v100") is before
    for _ in range(20):
        prior.observe_exponent("a", 0.4)
    assert book.curve("a", 0, "v100").at(16) < before.at(16)


def test_without_the_built_in_models_everything_is_a_prior() -> None:
    assert SpeedBook(builtin=False).curve("resnet50", 64, "v100").source == "prior"


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1), st.integers(1, 1000))
def test_a_power_law_is_met_closely_between_its_sizes(exponent: float, devices: int) -> None:
    assert power_law(exponent).at(devices) == pytest.approx(devices**exponent, rel=0.04)

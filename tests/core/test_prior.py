"""The prior starts from a guess, learns from what ended, and is not carried away by one job."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.prior import FIRST_EXPONENT, FIRST_SECONDS, Mean, Prior

values = st.lists(st.floats(-100, 100), min_size=1, max_size=30)


@settings(max_examples=60, deadline=None)
@given(values)
def test_a_running_mean_is_the_mean(numbers: list[float]) -> None:
    mean = Mean()
    for value in numbers:
        mean.add(value)
    assert mean.mean == pytest.approx(float(np.mean(numbers)), abs=1e-9)
    assert mean.squares == pytest.approx(len(numbers) * float(np.var(numbers)), abs=1e-6)


def test_before_anything_ended_every_job_is_expected_to_take_an_hour() -> None:
    assert Prior().expect_seconds("anything", "anybody") == pytest.approx(FIRST_SECONDS)
    assert Prior().exponent("anything") == pytest.approx(FIRST_EXPONENT)


def test_what_ended_often_is_expected_again() -> None:
    prior = Prior()
    for _ in range(30):
        prior.observe("bert", "ada", 60.0)
    assert prior.expect_seconds("bert", "ada") == pytest.approx(60, rel=0.05)
    assert prior.spread("bert", "ada") < prior.spread("gpt2", "eve") < Prior().spread("", "")


def test_one_odd_job_does_not_decide() -> None:
    prior = Prior()
    for _ in range(30):
        prior.observe("bert", "ada", 60.0)
    prior.observe("bert", "ada", 1e6)
    assert prior.expect_seconds("bert", "ada") < 100


def test_an_unknown_model_is_expected_to_be_like_the_users_other_jobs() -> None:
    prior = Prior()
    for _ in range(20):
        prior.observe("bert", "ada", 60.0)
        prior.observe("bert", "eve", 36_000.0)
    ada, eve = prior.expect_seconds("new", "ada"), prior.expect_seconds("new", "eve")
    assert ada < prior.expect_seconds("new", "somebody") < eve


def test_a_known_model_of_an_unknown_user_is_expected_to_be_like_the_model() -> None:
    prior = Prior()
    for _ in range(20):
        prior.observe("short", "ada", 60.0)
        prior.observe("long", "ada", 36_000.0)
    assert prior.expect_seconds("short", "eve") < 200
    assert prior.expect_seconds("long", "eve") > 10_000


def test_the_exponent_is_learnt_by_model_and_stays_between_nothing_and_perfect() -> None:
    prior = Prior()
    for _ in range(20):
        prior.observe("m", "ada", 60.0, exponent=0.4)
    assert prior.exponent("m") == pytest.approx(0.4, abs=0.05)
    assert prior.exponent("m") < prior.exponent("other") < FIRST_EXPONENT
    assert prior.exponent_spread("m") < Prior().exponent_spread("m")
    for _ in range(100):
        prior.observe_exponent("super", 3.0)
    assert prior.exponent("super") == 1.0


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_a_duration_that_cannot_be_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds is"):
        Prior().observe("m", "u", seconds)


def test_an_exponent_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="exponent is nan"):
        Prior().observe("m", "u", 1.0, exponent=math.nan)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("mn"), st.sampled_from("uv"), st.floats(0.1, 1e9))))
def test_a_snapshot_knows_the_same(observed: list[tuple[str, str, float]]) -> None:
    prior = Prior()
    for model, user, seconds in observed:
        prior.observe(model, user, seconds, exponent=0.5)
    again = Prior()
    again.restore(msgspec.json.decode(msgspec.json.encode(prior.state())))
    for model, user in [("m", "u"), ("n", "v"), ("x", "y")]:
        assert again.expect_seconds(model, user) == prior.expect_seconds(model, user)
        assert again.spread(model, user) == prior.spread(model, user)
    assert again.exponent("m") == prior.exponent("m")


def test_the_order_in_which_jobs_end_hardly_matters() -> None:
    jobs = [("m", "u", 10.0), ("m", "v", 1000.0), ("n", "u", 50.0)]
    forth, back = Prior(), Prior()
    for job in jobs:
        forth.observe(*job)
    for job in reversed(jobs):
        back.observe(*job)
    assert forth.expect_seconds("m", "u") == pytest.approx(back.expect_seconds("m", "u"))

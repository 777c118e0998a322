"""Synthetic traces: the load that was asked for, drawn from a seed and nothing else."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.errors import InputError
from bough.sim.synthetic import Mix, Model, generate

shares = st.floats(0, 1)
mixes = st.builds(
    Mix,
    arrivals=st.sampled_from(["poisson", "diurnal", "at-once"]),
    durations=st.sampled_from(["log-normal", "two-phase", "exponential", "constant"]),
    swing=shares,
    sigma=st.floats(0, 3),
    best_effort=shares,
    users=st.integers(1, 20),
    queues=st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=3).map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(
    jobs=st.integers(1, 40),
    devices=st.integers(1, 300),
    load=st.floats(0.05, 4),
    elastic=shares,
    seed=st.integers(0, 2**32),
    mix=mixes,
)
def test_every_trace_makes_sense(
    jobs: int, devices: int, load: float, elastic: float, seed: int, mix: Mix
) -> None:
    trace = generate(jobs, devices, load, elastic, seed, mix)
    assert len(trace.jobs) == jobs
    assert trace.jobs[0].submit == 0
    submits = [job.submit for job in trace.jobs]
    assert submits == sorted(submits)
    for job in trace.jobs:
        sizes = job.spec.sizes()
        assert job.devices in sizes
        assert sizes[-1] <= devices
        assert job.seconds > 0
        assert job.spec.estimate_seconds == job.seconds
        assert job.spec.queue in mix.queues
        if job.spec.service == "guaranteed":
            assert job.spec.deadline is not None
            slack = (job.spec.deadline - job.submit) / job.seconds
            assert mix.slack[0] - 0.6 <= slack <= mix.slack[1] + 0.6  # times are rounded
        else:
            assert job.spec.deadline is None


def test_the_same_seed_gives_the_same_trace_and_another_another() -> None:
    assert generate(50, 64, seed=3) == generate(50, 64, seed=3)
    assert generate(50, 64, seed=3).jobs != generate(50, 64, seed=4).jobs


@pytest.mark.parametrize("arrivals", ["poisson", "diurnal"])
@pytest.mark.parametrize("load", [0.5, 1.0, 1.6])
def test_the_work_is_the_load_that_was_asked_for(arrivals: Any, load: float) -> None:
    trace = generate(20_000, 500, load, seed=1, mix=Mix(arrivals=arrivals))
    offered = trace.device_seconds() / trace.span_seconds() / 500
    assert offered == pytest.approx(load, rel=1e-3)


def test_the_load_moves_arrivals_and_nothing_else() -> None:
    low, high = generate(200, 64, 0.4, seed=9), generate(200, 64, 1.2, seed=9)
    assert [job.seconds for job in low.jobs] == [job.seconds for job in high.jobs]
    assert [job.spec.devices for job in low.jobs] == [job.spec.devices for job in high.jobs]
    assert low.span_seconds() == pytest.approx(3 * high.span_seconds(), rel=1e-6)


def test_poisson_arrivals_are_memoryless() -> None:
    trace = generate(20_000, 100, seed=2)
    gaps = np.diff([job.submit for job in trace.jobs])
    # An exponential's standard deviation is its mean, and 1/e of it lies beyond.
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)
    assert (gaps > gaps.mean()).mean() == pytest.approx(1 / math.e, abs=0.01)


def test_diurnal_arrivals_come_by_day() -> None:
    trace = generate(20_000, 40, seed=2, mix=Mix(arrivals="diurnal", swing=0.7, sigma=0.5))
    assert trace.span_seconds() > 20 * 86_400
    hours = Counter(int(job.submit % 86_400 // 3600) for job in trace.jobs)
    # Swinging by 0.7 about the mean, noon is busier than midnight by 1.7 / 0.3.
    assert (hours[11] + hours[12]) / (hours[23] + hours[0]) == pytest.approx(1.7 / 0.3, rel=0.2)


def test_run_times_follow_their_distribution() -> None:
    def logs(mix: Mix) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.log([job.seconds for job in generate(20_000, 100, seed=5, mix=mix).jobs])

    drawn = logs(Mix(seconds=600, sigma=1.2))
    assert np.exp(np.median(drawn)) == pytest.approx(600, rel=0.05)
    assert drawn.std() == pytest.approx(1.2, rel=0.03)
    drawn = np.exp(logs(Mix(durations="exponential", seconds=900)))
    assert drawn.mean() == pytest.approx(900, rel=0.03)
    assert set(np.exp(logs(Mix(durations="constant", seconds=700))).round(6)) == {700.0}
    drawn = np.exp(logs(Mix(durations="two-phase")))
    assert drawn.min() > 59
    assert drawn.max() < 172_801
    assert (drawn > 3600).mean() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("elastic", [0.0, 0.3, 1.0])
def test_the_elastic_share(elastic: float) -> None:
    trace = generate(10_000, 512, elastic=elastic, seed=6)
    grows = [job.spec.devices for job in trace.jobs if job.spec.devices.max > job.spec.devices.min]
    assert len(grows) == elastic * 10_000
    if grows:
        assert {sizes.min for sizes in grows} == {1, 2, 4, 8}
        assert {sizes.max for sizes in grows} == {2, 4, 8, 16, 32, 64}


def test_equal_ranges_are_one_object() -> None:
    trace = generate(2_000, 512, elastic=1.0, seed=6)
    by_value: dict[Any, set[int]] = {}
    for job in trace.jobs:
        by_value.setdefault(job.spec.devices, set()).add(id(job.spec.devices))
    assert all(len(objects) == 1 for objects in by_value.values())


def test_models_users_and_deadlines_have_the_shares_asked_for() -> None:
    mix = Mix(
        models=(Model("bert", 64, 3.0), Model("vgg16", 32, 1.0)),
        users=3,
        queues=("a", "b"),
        best_effort=0.25,
    )
    jobs = generate(10_000, 64, seed=8, mix=mix).jobs
    assert sum(job.spec.model == "bert" for job in jobs) / 10_000 == pytest.approx(0.75, abs=0.02)
    assert sum(job.spec.deadline is None for job in jobs) == 2_500
    users = Counter(job.spec.user for job in jobs)
    # Zipf: shares of 6, 3 and 2 elevenths.
    assert users["user-1"] / 10_000 == pytest.approx(6 / 11, abs=0.02)
    assert {(j.spec.user, j.spec.queue) for j in jobs} == {
        ("user-1", "a"), ("user-2", "b"), ("user-3", "a"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("jobs", {"jobs": 0}),
        ("devices", {"devices": 0}),
        ("load", {"load": 0.0}),
        ("load", {"load": math.nan}),
        ("elastic", {"elastic": 1.5}),
        ("best_effort", {"mix": Mix(best_effort=-0.1)}),
        ("swing", {"mix": Mix(swing=2)}),
        ("sigma", {"mix": Mix(sigma=math.inf)}),
        ("seconds", {"mix": Mix(seconds=0)}),
        ("slack", {"mix": Mix(slack=(2.0, 1.0))}),
        ("users", {"mix": Mix(users=0)}),
        ("queues", {"mix": Mix(queues=())}),
        ("models", {"mix": Mix(models=())}),
        ("elastic_most", {"mix": Mix(elastic_most=4)}),
        ("rigid_sizes", {"mix": Mix(rigid_sizes=((0, 1.0),))}),
    ],
)
def test_what_cannot_be_drawn_is_named(field: str, given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^{field}: must"):
        generate(**({"jobs": 10, "devices": 8} | given))

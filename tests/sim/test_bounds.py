"""The lower bound is one: no schedule of tiny cases beats it, and it is met where that is known."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.cluster import parse_short
from bough.sim.bounds import lower_bound, mean_bound
from bough.sim.options import Failures, Options
from bough.sim.record import JobRecord
from bough.sim.results import summarise
from bough.sim.runs import Setting, run
from bough.sim.synthetic import generate

#: A job: when it comes, how much work it has, and its speed at sizes 0, 1, 2 …
Tiny = tuple[int, int, tuple[float, ...]]

speeds = st.lists(st.sampled_from([0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=3).map(
    lambda gains: (0.0, *np.cumsum([1.0, *gains[1:]]).tolist())
)
tiny_jobs = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3), speeds), min_size=1, max_size=3
)


def bound(jobs: list[Tiny], devices: int) -> float:
    """The bound of jobs given by their speeds."""
    reach = [speed[: devices + 1] for _, _, speed in jobs]
    fastest = [work / max(speed) for (_, work, _), speed in zip(jobs, reach, strict=True)]
    least = [
        min(work / speed[size] * size for size in range(1, len(speed)))
        for (_, work, _), speed in zip(jobs, reach, strict=True)
    ]
    submit = np.array([float(when) for when, _, _ in jobs])
    return mean_bound(submit, np.array(fastest), np.array(least), devices).seconds


def best_of_all_schedules(jobs: list[Tiny], devices: int) -> float:
    """The smallest mean over every choice of sizes in every second."""

    @cache
    def total(now: int, left: tuple[float, ...]) -> float:
        """Sum of completions from now on."""
        if all(work <= 0 for work in left):
            return 0.0
        choices = [
            range(len(speed)) if work > 0 and when <= now else range(1)
            for (when, _, speed), work in zip(jobs, left, strict=True)
        ]
        return min(step(now, left, sizes) for sizes in product(*choices) if sum(sizes) <= devices)

    def step(now: int, left: tuple[float, ...], sizes: tuple[int, ...]) -> float:
        if not any(sizes) and all(when <= now for when, _, _ in jobs):
            return math.inf  # idling with every job there never helps
        done, after = 0.0, []
        for (_, _, speed), work, size in zip(jobs, left, sizes, strict=True):
            rest = work - speed[size]
            if work > 0 >= rest - 1e-12:
                done += now + work / speed[size]
                rest = 0.0
            after.append(rest)
        return done + total(now + 1, tuple(after))

    everything = tuple(float(work) for _, work, _ in jobs)
    return (total(0, everything) - sum(when for when, _, _ in jobs)) / len(jobs)


@settings(max_examples=60, deadline=None)
@given(jobs=tiny_jobs, devices=st.integers(1, 3))
def test_no_schedule_beats_it(jobs: list[Tiny], devices: int) -> None:
    assert bound(jobs, devices) <= best_of_all_schedules(jobs, devices) + 1e-9


@settings(max_examples=60, deadline=None)
@given(works=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=4))
def test_on_one_device_it_is_the_optimum(works: list[tuple[int, int]]) -> None:
    jobs: list[Tiny] = [(when, work, (0.0, 1.0)) for when, work in works]
    assert bound(jobs, 1) == pytest.approx(best_of_all_schedules(jobs, 1))


@given(
    fastest=st.lists(st.floats(0.01, 1e6), min_size=1, max_size=20),
    devices=st.integers(1, 1000),
)
def test_jobs_that_never_meet_need_their_fastest_time(fastest: list[float], devices: int) -> None:
    alone = np.array(fastest)
    submit = np.arange(len(alone)) * 1e7
    found = mean_bound(submit, alone, alone, devices)
    assert found.seconds == pytest.approx(alone.mean())


def test_jobs_that_scale_freely_are_bound_by_shortest_remaining_first() -> None:
    # Work 4 and 2 on two devices: the short one is done at 1, the long one at 3.
    found = mean_bound(np.zeros(2), np.array([2.0, 1.0]), np.array([4.0, 2.0]), 2)
    assert found.fluid == pytest.approx((1 + 3) / 2)


def test_a_crowd_of_rigid_jobs_is_bound_by_busy_times() -> None:
    # 100 jobs of 8 seconds on one device each, 10 devices: in truth 10 waves, mean 8 * 5.5 = 44.
    count, seconds, devices = 100, 8.0, 10
    need = np.full(count, seconds)
    found = mean_bound(np.zeros(count), need, need, devices)
    assert found.alone == 8.0
    assert found.fluid == pytest.approx(seconds / devices * (count + 1) / 2)  # 40.4
    assert found.busy == pytest.approx(44.0)


WORLDS = {
    "as planned": Options(),
    "not as believed": Options(speed_error=0.4, seed=4),
    "things break": Options(failures=Failures(node_mtbf_seconds=20_000.0, job_mtbf_seconds=9e4)),
    "in each other's way": Options(interference=0.2, straggler_share=0.3, start_seconds=30.0),
}


@pytest.mark.parametrize("cluster", ["4x4xv100", "2x4xv100 + 2x8xa100"])
@pytest.mark.parametrize("world", WORLDS)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 1000),
    load=st.sampled_from([0.3, 1.0, 2.0]),
    elastic=st.sampled_from([0.0, 0.5, 1.0]),
    policy=st.sampled_from(["fifo", "srtf", "las", "max_min", "greedy"]),
)
def test_no_policy_beats_it(
    cluster: str, world: str, seed: int, load: float, elastic: float, policy: str
) -> None:
    nodes = parse_short(cluster)
    trace = generate(25, nodes.devices, load, elastic, seed)
    setting = Setting(trace=trace, cluster=nodes, cluster_name=cluster, options=WORLDS[world])
    found = summarise(run(setting, policy, lambda _: None))
    assert found["completed"] > 0
    assert found["mean_jct_over_bound"] >= 1 - 1e-9


def test_the_origin_of_time_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    submit, need = rng.uniform(0, 100, 50), rng.uniform(1, 50, 50)
    here = mean_bound(submit, need, need, 4)
    assert mean_bound(submit + 1.7e9, need, need, 4) == pytest.approx(here, rel=1e-6)


def test_of_records() -> None:
    jobs = [
        JobRecord("a", "", "", "", 1, submit=0.0, fastest_seconds=3.0, least_device_seconds=3.0),
        JobRecord("b", "", "", "", 1, submit=0.0),  # nothing is known of it: it costs nothing
    ]
    assert lower_bound(jobs, 4) == pytest.approx(1.5)
    assert math.isnan(lower_bound([], 4))


def test_a_hundred_thousand_jobs_take_a_moment() -> None:
    rng = np.random.default_rng(2)
    count = 100_000
    submit = np.cumsum(rng.exponential(1.0, count))
    need = rng.lognormal(5, 2, count)
    assert mean_bound(submit, need, need, 1000).seconds > need.mean() - 1

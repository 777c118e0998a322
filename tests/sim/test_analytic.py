"""Where mathematics knows the answer, the simulator agrees: queueing theory, and all schedules."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.replays import job, replay

from bough.core.speedup import Curve
from bough.policies import builtin
from bough.sim.bounds import lower_bound
from bough.sim.record import RunRecord
from bough.sim.trace import TraceJob

Floats = npt.NDArray[np.float64]

# --------------------------------------------------------------------------- queueing theory

#: Independent runs, the jobs of each, and how many of them come before it has settled.
RUNS, JOBS, WARM_UP = 16, 1500, 300
MEAN_SECONDS = 10.0
#: Student's t with 15 degrees of freedom, for a two-sided confidence of 99 %.
T_99 = 2.947


def wait_interval(
    rate: float, devices: int, service: Callable[[np.random.Generator, int], Floats]
) -> tuple[float, float]:
    """Mean wait under fifo, and half the width of its confidence interval of 99 %.

    Each run is drawn from its own seed, so that the means of runs are independent; what comes
    before a run has settled is left out.
    """
    means = []
    for seed in range(RUNS):
        rng = np.random.default_rng([20, seed])
        waits = waits_of(*drawn(rng, rate, service, JOBS), devices)
        means.append(np.mean(waits[WARM_UP:]))
    return float(np.mean(means)), T_99 * float(np.std(means, ddof=1)) / math.sqrt(RUNS)


def drawn(
    rng: np.random.Generator,
    rate: float,
    service: Callable[[np.random.Generator, int], Floats],
    count: int,
) -> tuple[list[float], list[float]]:
    """Moments of submission, and seconds."""
    return np.cumsum(rng.exponential(1 / rate, count)).tolist(), service(rng, count).tolist()


def waits_of(submit: list[float], seconds: list[float], devices: int) -> list[float]:
    """How long each job waits under fifo."""
    pairs = enumerate(zip(submit, seconds, strict=True))
    record = replay([job(str(i), at, length) for i, (at, length) in pairs], f"{devices}xv100")
    return [one.begin - one.submit for one in record.jobs]


@pytest.mark.parametrize("devices", [1, 3])
def test_each_wait_follows_from_the_ones_before(devices: int) -> None:
    """The recursion of Lindley, and with several devices of Kiefer and Wolfowitz: job by job."""
    rng = np.random.default_rng(8)
    submit, seconds = drawn(rng, 0.09 * devices, mostly_short, 600)
    free_at = [0.0] * devices
    expected = []
    for at, length in zip(submit, seconds, strict=True):
        begin = max(at, heapq.heappop(free_at))
        heapq.heappush(free_at, begin + length)
        expected.append(begin - at)
    assert waits_of(submit, seconds, devices) == pytest.approx(expected, abs=1e-6)
    assert max(expected) > 50


def erlang_c(devices: int, offered: float) -> float:
    """The chance that a job must wait, for so much offered load in devices."""
    terms = [offered**k / math.factorial(k) for k in range(devices)]
    last = offered**devices / math.factorial(devices) * devices / (devices - offered)
    return last / (sum(terms) + last)


@pytest.mark.parametrize(("devices", "load"), [(1, 0.5), (2, 0.5)])
def test_waits_of_random_jobs_are_those_of_erlang(devices: int, load: float) -> None:
    rate = load * devices / MEAN_SECONDS
    expected = erlang_c(devices, load * devices) / (devices / MEAN_SECONDS - rate)
    wait, half = wait_interval(rate, devices, lambda rng, n: rng.exponential(MEAN_SECONDS, n))
    assert half < 0.25 * expected, "says too little"
    assert abs(wait - expected) <= half


def always_ten(rng: np.random.Generator, count: int) -> Floats:
    """Jobs of equal length."""
    return np.full(count, MEAN_SECONDS)


def mostly_short(rng: np.random.Generator, count: int) -> Floats:
    """Nine of ten take 5 seconds, the tenth 55: the mean is 10 again."""
    return np.where(rng.random(count) < 0.9, 5.0, 55.0)


@pytest.mark.parametrize(
    ("service", "second_moment"), [(always_ten, 100.0), (mostly_short, 0.9 * 25 + 0.1 * 3025)]
)
def test_waits_on_one_device_are_those_of_pollaczek_and_khinchine(
    service: Callable[[np.random.Generator, int], Floats], second_moment: float
) -> None:
    rate = 0.05
    expected = rate * second_moment / (2 * (1 - rate * MEAN_SECONDS))
    wait, half = wait_interval(rate, 1, service)
    assert half < 0.25 * expected, "says too little"
    assert abs(wait - expected) <= half


def test_whose_devices_are_never_all_taken_never_wait() -> None:
    rng = np.random.default_rng(3)
    jobs = [job(str(i), float(at), 10.0) for i, at in enumerate(np.sort(rng.random(90) * 30))]
    assert all(one.begin == one.submit for one in replay(jobs, "90xv100").jobs)


# --------------------------------------------------------------------------- all schedules

#: When a job comes and how many seconds it needs.
Small = tuple[int, int]


def best_total_completion(jobs: list[Small]) -> float:
    """The least sum of completions on one device over every order, preempting at whole seconds.

    With whole moments and lengths nothing is won by preempting in between.
    """

    @cache
    def rest(now: int, left: tuple[int, ...]) -> float:
        if not any(left):
            return 0.0
        ready = [i for i, (when, _) in enumerate(jobs) if when <= now and left[i]]
        if not ready:
            return rest(min(jobs[i][0] for i in range(len(jobs)) if left[i]), left)
        return min(
            (now + 1 if left[i] == 1 else 0)
            + rest(now + 1, (*left[:i], left[i] - 1, *left[i + 1 :]))
            for i in ready
        )

    return rest(0, tuple(seconds for _, seconds in jobs))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=4))
def test_shortest_remaining_first_is_the_best_of_all_orders_on_one_device(
    small: list[Small],
) -> None:
    small = sorted(small)
    jobs = [job(str(i), when, seconds) for i, (when, seconds) in enumerate(small)]
    ends = [one.end for one in replay(jobs, "1xv100", "srtf").jobs]
    assert math.fsum(ends) == pytest.approx(best_total_completion(small))


# --------------------------------------------------------------------------- all allocations

#: Gains of each further device, descending: speeds that grow ever more slowly.
gains = st.lists(
    st.sampled_from([0.0625, 0.125, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=5
).map(lambda found: sorted(found, reverse=True))
several = st.lists(gains, min_size=1, max_size=4)


def elastic(id: str, gain: list[float]) -> TraceJob:
    """A long job that may have any number of devices up to those it gains from."""
    sizes = tuple(range(1, len(gain) + 1))
    curve = Curve(sizes=sizes, speed=tuple(np.cumsum(gain).tolist()))
    return job(id, 0, 1e6, 1, most=len(gain), steps=sizes, curve=curve)


def first_sizes(gain: list[list[float]], devices: int, policy: str) -> list[int]:
    """What each job is given at the beginning."""
    jobs = [elastic(str(i), one) for i, one in enumerate(gain)]
    record = replay(jobs, f"{devices}xv100", policy, until=1.0)
    return [one.sizes[0][1] if one.sizes else 0 for one in record.jobs]


def all_allocations(gain: list[list[float]], devices: int) -> list[tuple[int, ...]]:
    """Every way to give the devices out in which the first to come have their least."""
    served = min(len(gain), devices)
    choices = [range(1, len(one) + 1) if i < served else range(1) for i, one in enumerate(gain)]
    return [sizes for sizes in product(*choices) if sum(sizes) <= devices]


@settings(max_examples=80, deadline=None)
@given(gain=several, devices=st.integers(1, 7))
def test_greedy_does_the_most_work_of_all_allocations(
    gain: list[list[float]], devices: int
) -> None:
    def work(sizes: tuple[int, ...]) -> float:
        return math.fsum(math.fsum(one[:size]) for one, size in zip(gain, sizes, strict=True))

    given_out = tuple(first_sizes(gain, devices, "greedy"))
    assert work(given_out) == pytest.approx(max(map(work, all_allocations(gain, devices))))


@settings(max_examples=80, deadline=None)
@given(gain=several, devices=st.integers(1, 7))
def test_max_min_leaves_nobody_with_less_than_any_other_allocation_would(
    gain: list[list[float]], devices: int
) -> None:
    given_out = sorted(first_sizes(gain, devices, "max_min"))
    assert given_out == max(sorted(sizes) for sizes in all_allocations(gain, devices))


# --------------------------------------------------------------------------- the lower bound


@st.composite
def any_job(draw: st.DrawFn) -> TraceJob:
    """A job of whatever kind: rigid or elastic, with speeds that need not grow with size."""
    sizes = draw(st.sampled_from([(1,), (2,), (4,), (1, 2), (1, 2, 4), (2, 3, 6), (1, 4, 8)]))
    speed = tuple(draw(st.integers(1, 12)) / 2 for _ in sizes)
    submit = float(draw(st.integers(0, 40)))
    return job(
        "",
        submit,
        float(draw(st.integers(1, 50))),
        draw(st.sampled_from(sizes)),
        curve=Curve(sizes=sizes, speed=speed),
        least=sizes[0],
        most=sizes[-1],
        steps=sizes,
        priority=draw(st.sampled_from([0, 0, 1])),
        user=draw(st.sampled_from("ab")),
        deadline=draw(st.sampled_from([None, submit + 10, submit + 100])),
        preemptible=draw(st.booleans()),
        resize_in_place=draw(st.booleans()),
    )


def mean_completion(record: RunRecord) -> float:
    """Of the jobs that are done."""
    return float(np.mean([one.end - one.submit for one in record.jobs if one.state == "done"]))


@settings(max_examples=80, deadline=None)
@given(
    drawn=st.lists(any_job(), min_size=1, max_size=7),
    cluster=st.sampled_from(["8xv100", "2x4xv100", "4x2xv100", "2 racks of 2x2xv100"]),
)
def test_no_policy_is_better_than_the_bound(drawn: list[TraceJob], cluster: str) -> None:
    drawn.sort(key=lambda one: one.submit)
    jobs = [TraceJob(**{f: getattr(one, f) for f in one.__struct_fields__} | {"id": str(i)})
            for i, one in enumerate(drawn)]  # fmt: skip
    for policy in builtin():
        record = replay(jobs, cluster, policy)
        done = [one for one in record.jobs if one.state == "done"]
        assert len(done) == len(jobs), f"{policy} leaves jobs behind"
        assert mean_completion(record) >= lower_bound(done, record.devices) * (1 - 1e-9)

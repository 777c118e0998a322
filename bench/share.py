"""Sharing devices and ordering jobs: plain Python loops against numpy against compiled twins.

All three answer the same question in one run, so that the ratios hold on any machine. Prints
the best of several runs, because what a busy machine adds is not ours. Exits with 1 when numpy
is less than a limit times faster than the loops, or when answers differ.
"""

from __future__ import annotations

import heapq
import importlib.util
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bough.core import share
from bough.core.policy import Ints, Plan, Policy, View
from bough.policies import find
from bough.testing.views import Row, make_view

RUNS = 12
SECONDS_A_RUN = 0.02


class Case(NamedTuple):
    """One question, and how many times faster than loops numpy must answer it."""

    name: str
    ask: Callable[[View], Ints]
    plain: Callable[[View], list[int]]
    rows: int
    devices: int
    least_ratio: float


def a_view(rows: int, devices: int) -> View:
    """Elastic jobs of six kinds; the first ones run, the others wait."""
    random = np.random.default_rng(7)
    jobs = []
    for i in range(rows):
        most = int(random.choice([1, 2, 4, 8, 16, 64]))
        sizes = tuple(2**k for k in range(most.bit_length()))
        speed = tuple(size ** (0.6 + 0.05 * len(sizes)) for size in sizes)
        runs = 4 * i < devices
        left, used = float(random.uniform(10, 1e5)), float(random.uniform(0, 1e4))
        jobs.append(Row(sizes=sizes, speed=speed, size=runs, left=left, attained=used))
    return make_view(devices, jobs, now=100.0)


# ------------------------------------------------------------------------------- plain Python


def plain_fit(view: View) -> list[int]:
    """Grant wishes in order, passing over what does not fit."""
    free, granted = view.devices, []
    for size in view.jobs.wish.tolist():
        granted.append(size if size <= free else 0)
        free -= granted[-1]
    return granted


#: (worth, size, row, class, step, cost).
Step = tuple[float, int, int, int, int, int]


def plain_climb(view: View, worth: Callable[[float, int, float], float]) -> list[int]:
    """Leasts in order, then one step after another from a heap."""
    sizes, speed = view.classes.sizes.tolist(), view.classes.speed.tolist()
    free, granted, heap = view.devices, [0] * view.jobs.n, list[Step]()

    def offer(row: int, cls: int, step: int) -> None:
        if step + 1 < len(sizes[cls]) and sizes[cls][step + 1] > sizes[cls][step]:
            size, cost = sizes[cls][step + 1], sizes[cls][step + 1] - sizes[cls][step]
            gain = speed[cls][step + 1] - speed[cls][step]
            heapq.heappush(heap, (worth(gain, cost, size), size, row, cls, step + 1, cost))

    for row, (lo, cls) in enumerate(
        zip(view.jobs.lo.tolist(), view.jobs.cls.tolist(), strict=True)
    ):
        if lo > free:
            break
        granted[row] = lo
        free -= lo
        offer(row, cls, 1)
    while heap and free:
        _, size, row, cls, step, cost = heapq.heappop(heap)
        if cost <= free:
            free -= cost
            granted[row] = size
            offer(row, cls, step)
    return granted


def plain_water_fill(view: View) -> list[int]:
    return plain_climb(view, lambda gain, cost, size: size)


def plain_marginal_fill(view: View) -> list[int]:
    return plain_climb(view, lambda gain, cost, size: float(f"{-gain / cost:.9e}"))


def plain_las(view: View) -> list[int]:
    """Rows by queue, then those that run by start, then those that wait."""
    jobs = view.jobs
    used, size = jobs.attained().tolist(), jobs.size.tolist()
    start = [s if s == s else float("inf") for s in jobs.run_since.tolist()]
    return sorted(range(jobs.n), key=lambda i: (used[i] >= 3250.0, size[i] == 0, start[i]))


def plain_srtf(view: View) -> list[int]:
    left = view.jobs.seconds_left().tolist()
    return sorted(range(view.jobs.n), key=left.__getitem__)


# --------------------------------------------------------------------------------------- cases

LAS, SRTF = find("las"), find("srtf")


def order_of(policy: Policy, view: View) -> Ints:
    """The order in a plan that is one."""
    plan = policy.plan(view)
    assert isinstance(plan, Plan)
    assert plan.order is not None
    return plan.order


QUESTIONS: list[tuple[str, Callable[[View], Ints], Callable[[View], list[int]], float]] = [
    ("water_fill", share.water_fill, plain_water_fill, 5),
    ("marginal_fill", share.marginal_fill, plain_marginal_fill, 5),
    (
        "fit_in_order",
        lambda view: share.fit_in_order(view.jobs.wish, view.devices, skip=True),
        plain_fit,
        0.5,
    ),
    ("las, order", lambda view: order_of(LAS, view), plain_las, 1),
    ("srtf, order", lambda view: order_of(SRTF, view), plain_srtf, 0.5),
]
CASES = [
    Case(name, ask, plain, rows, devices, ratio)
    for rows, devices in ((250, 1_000), (5_000, 20_000), (10_000, 2_000))
    for name, ask, plain, ratio in QUESTIONS
]


def best_us(ask: Callable[[View], object], view: View) -> float:
    """Microseconds of a call, at best."""
    started = time.perf_counter()
    ask(view)
    calls = max(1, int(SECONDS_A_RUN / (time.perf_counter() - started + 1e-9)))
    best = float("inf")
    for _ in range(RUNS):
        started = time.perf_counter()
        for _ in range(calls):
            ask(view)
        best = min(best, (time.perf_counter() - started) / calls)
    return best * 1e6


def main() -> int:
    compiled = importlib.util.find_spec("numba") is not None
    wrong = 0
    print(
        f"{'µs for a call':16} {'rows':>6} {'loops':>9} {'numpy':>8} {'ratio':>6} {'limit':>6}",
        end="",
    )
    print(f" {'compiled':>9} {'ratio':>6}")
    for case in CASES:
        view = a_view(case.rows, case.devices)
        same = case.ask(view).tolist() == case.plain(view)
        loops, columns = best_us(case.plain, view), best_us(case.ask, view)
        ratio = loops / columns
        print(f"{case.name:16} {case.rows:6} {loops:9.1f} {columns:8.1f} {ratio:6.1f}", end="")
        print(f" {case.least_ratio:6.1f}", end="")
        if compiled and share.use_compiled():
            same &= case.ask(view).tolist() == case.plain(view)
            twin = best_us(case.ask, view)
            share.use_compiled(False)
            print(f" {twin:9.1f} {loops / twin:6.1f}", end="")
        print("  TOO SLOW" if ratio < case.least_ratio else "", "" if same else "  DIFFERENT")
        wrong += ratio < case.least_ratio or not same
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

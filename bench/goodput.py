"""One decision of Sia's relaxation over 2,000 jobs on three kinds of device, and how good it is.

Devices are made scarce, enough and plenty. Beside it the integer program is solved for the same
jobs; the relaxation's own bound says how far from the best possible both are. Limit: 0.5 s of CPU.
Exits with 1 when it is passed.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np

from bough.core.choices import choices
from bough.core.knapsack import knapsack_relaxed, knapsack_solved
from bough.core.policy import View
from bough.policies.sia import Sia
from bough.testing.views import Row, make_view

JOBS, LIMIT_SECONDS = 2_000, 0.5
SIZES = (1, 2, 4, 8, 16, 32)
POOLS = ((300, 150, 150), (2_000, 1_000, 1_000), (16_000, 8_000, 8_000))


def jobs_view(pools: tuple[int, ...]) -> View:
    """Jobs of ten models that scale differently on each kind, some of which run."""
    draw = np.random.default_rng(0)
    gains = draw.uniform(0.2, 1.0, (10, len(pools), len(SIZES)))
    speeds = [[tuple(np.cumsum(g).tolist()) for g in model] for model in gains]
    rows, left = [], list(pools)
    for _ in range(JOBS):
        model, pool = int(draw.integers(10)), int(draw.integers(len(pools)))
        size = int(draw.choice([0, 0, 1, 2, 4]))
        size = size if size <= left[pool] else 0
        left[pool] -= size
        submitted = float(draw.uniform(0.0, 9_000.0))
        rows.append(
            Row(sizes=SIZES, speed=speeds[model][pool], user=model, pool=pool, size=size,
                submitted=submitted, since=9_000.0)
        )  # fmt: skip
    view = make_view(sum(pools), rows, now=10_000.0)
    known = {key: i for i, key in enumerate(dict.fromkeys((r.sizes, r.speeds()) for r in rows))}
    on = [[known[SIZES, speed] for speed in speeds[row.user]] for row in rows]
    return replace(view, pools=pools, classes_on=np.array(on, np.int64))


def main() -> int:
    """Measure; how much is wrong."""
    wrong = 0
    print("devices  decision s  of the bound  program s  of the bound  ratio")
    for pools in POOLS:
        view, policy = jobs_view(pools), Sia(solver="relaxed")
        policy.plan(view)
        began = time.process_time()
        policy.plan(view)
        seconds = time.process_time() - began
        table = choices(view)
        worth = policy._worth(view, table, 9_960.0)
        devices = np.array(pools)
        choice = knapsack_relaxed(worth, table.size, table.pool, devices)
        began = time.process_time()
        best = knapsack_solved(worth, table.size, table.pool, devices)
        program = time.process_time() - began
        rows = (best >= 0).nonzero()[0]
        solved = float(worth[rows, best[rows]].sum())
        print(
            f"{sum(pools):7} {seconds:11.3f} {choice.worth / choice.bound:13.2%} {program:10.2f} "
            f"{solved / choice.bound:13.2%} {program / seconds:6.1f}",
            flush=True,
        )
        wrong += seconds >= LIMIT_SECONDS
    print(f"limit {LIMIT_SECONDS} s: {'TOO SLOW' if wrong else 'ok'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

"""How long each job ran on each kind of device lately: what policies need that share time by turns.

A second counts less the longer it is past, half as much after each half-life: what a job had in a
quieter time is not held against it for ever.
"""

from __future__ import annotations

import math

import numpy as np

from bough.core.jobs import Job, JobTable
from bough.core.policy import NO_SECONDS, Floats, Ints


def account(job: Job, pool: int | None, now: float, half_life: float) -> None:
    """Count up to now that the job ran on this pool (None: it did not run)."""
    elapsed = now - job.recent_at
    job.recent_at = now
    if elapsed <= 0.0:
        return
    rest = math.exp2(-elapsed / half_life)
    for other in job.recent:
        job.recent[other] *= rest
    if pool is not None:
        job.recent[pool] = job.recent.get(pool, 0.0) + possible(elapsed, half_life)


def possible(elapsed: float, half_life: float) -> float:
    """What so many seconds without a break come to."""
    return half_life / math.log(2.0) * -math.expm1(-elapsed / half_life * math.log(2.0))


def ran_on(table: JobTable, rows: Ints, pools: int, half_life: float) -> Floats:
    """Seconds each of these jobs ran on each pool lately, up to now."""
    if not half_life:
        return NO_SECONDS
    found = np.zeros((len(rows), pools))
    held = [bool(table.items[row].held) for row in rows.tolist()]
    runs = (table.size[rows] > 0) & np.array(held, np.bool_)
    for i, row in enumerate(rows.tolist()):
        job, pool = table.items[row], int(table.pool[row])
        rest = math.exp2(-(table.now - job.recent_at) / half_life)
        for other, seconds in job.recent.items():
            found[i, other] = seconds * rest
        if runs[i]:
            since = table.now - max(job.recent_at, float(table.since[row]))
            found[i, pool] += possible(since, half_life)
    found.flags.writeable = False
    return found

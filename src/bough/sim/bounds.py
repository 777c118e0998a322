"""A mean completion time that no policy can beat, so that every result shows its distance to it.

Three relaxations, each of which forgets some of what binds a real schedule; the largest holds.
Of job j: r is its submission, f its run time alone at its fastest size, d the fewest
device-seconds any size needs, m the devices of the cluster, C its completion.

1. *Alone.* Forget all other jobs: C >= r + f.
2. *One fluid machine.* Forget how jobs scale: a job may use all m devices at once at its best
   efficiency, so it needs d / m seconds of the whole. Every real schedule maps to one on that
   machine which ends no job later; there the smallest sum of completions is that of shortest
   remaining first (Schrage 1968).
3. *Busy times.* Let w(t) be the share of j's work done per second at t. Then the integral of w
   is 1, w <= 1 / f always, and the sum of d·w over all jobs is at most m. With M = integral of
   t·w(t) dt, the first two say C >= M + f / 2: work done at a rate of at most 1 / f until C is
   centred at C - f / 2 or earlier. Under the third alone, the sum of M is smallest when the
   unfinished job of smallest d always has the whole machine (Goemans 1996: mean busy times are
   minimised by preemptive highest ratio first). So the sum of C is at least the sum of those M
   plus the sum of f / 2.

1 is tight on an idle cluster, 2 when jobs scale freely, 3 when many wait. Failures, placement,
resizing and deciding without knowing the future only make real schedules longer. Only completed
jobs are counted, on both sides: taking the others out of the relaxation cannot raise it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from bough.core.policy import Floats
from bough.sim.record import JobRecord


class Bound(NamedTuple):
    """Lower bounds on the mean completion time, in seconds, by relaxation."""

    alone: float
    fluid: float
    busy: float

    @property
    def seconds(self) -> float:
        """The best of them."""
        return max(self)


def lower_bound(jobs: Iterable[JobRecord], devices: int) -> float:
    """No policy completes exactly these jobs with a smaller mean; NaN when there are none."""
    rows = [(job.submit, job.fastest_seconds, job.least_device_seconds) for job in jobs]
    if not rows or devices <= 0:
        return float("nan")
    submit, fastest, least = np.nan_to_num(np.array(rows).T, posinf=0.0)
    return mean_bound(submit, fastest, least, devices).seconds


def mean_bound(submit: Floats, fastest: Floats, least: Floats, devices: int) -> Bound:
    """All three bounds, in O(n log n)."""
    order = np.argsort(submit, kind="stable")
    release = submit[order] - submit[order[0]]  # small numbers keep their digits
    seconds = least[order] / devices
    return Bound(
        alone=float(fastest.mean()),
        fluid=_mean_completion(release, seconds),
        busy=_mean_busy_time(release, seconds) + float(fastest.mean()) / 2,
    )


def _mean_completion(release: Floats, seconds: Floats) -> float:
    """Mean of completion minus release on one machine, shortest remaining first."""
    came, total = release.tolist(), 0.0
    for job, start, worked, last in _one_machine(release, seconds, remaining=True):
        if last:
            total += start - came[job] + worked
    return total / len(came)


def _mean_busy_time(release: Floats, seconds: Floats) -> float:
    """Mean of mean busy time minus release on one machine, shortest first."""
    came, need, total = release.tolist(), seconds.tolist(), 0.0
    for job, start, worked, _ in _one_machine(release, seconds, remaining=False):
        share = worked / need[job] if need[job] > 0 else 1.0
        total += share * (start - came[job] + worked / 2)
    return total / len(came)


def _one_machine(
    release: Floats, seconds: Floats, *, remaining: bool
) -> Iterator[tuple[int, float, float, bool]]:
    """Who has the machine: (job, from when, for how long, whether it is done); releases ascend.

    The job with the least remaining seconds goes first, or the one with the least in total.
    """
    arrivals, left = release.tolist(), seconds.tolist()
    waiting: list[tuple[float, int]] = []
    now, arrived, count = 0.0, 0, len(arrivals)
    while arrived < count or waiting:
        if not waiting:
            now = max(now, arrivals[arrived])
        while arrived < count and arrivals[arrived] <= now:
            heappush(waiting, (left[arrived], arrived))
            arrived += 1
        key, job = heappop(waiting)
        until = arrivals[arrived] if arrived < count else float("inf")
        if now + left[job] <= until:
            yield job, now, left[job], True
            now += left[job]
        else:
            yield job, now, until - now, False
            left[job] -= until - now
            heappush(waiting, (left[job] if remaining else key, job))
            now = until

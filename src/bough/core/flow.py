"""Mean completion time: who should go first, and to whom a device more is worth most."""

from __future__ import annotations

from typing import Final

import numpy as np

from bough.core.attained import gittins
from bough.core.policy import Bools, Floats, View

#: What is expected of jobs without an estimate is rounded to powers of this, so that long ones
#: are served one after another and do not take turns.
STEP: Final = 10.0
#: Less service than this is not told apart.
LEAST_SECONDS: Final = 60.0


def service_left(view: View) -> Floats:
    """Device-seconds each job still needs on the fewest devices it can run with, as expected.

    Without an estimate it is the inverse of the Gittins index, which is in the same unit: of jobs
    with estimates it would be exactly what is left. Before anything was learnt, the guess.
    """
    jobs = view.jobs
    least = np.maximum(jobs.min, 1)
    speed = np.maximum(view.classes.speed_at(jobs.cls, least), 1e-300)
    found: Floats = jobs.left_or_guess() / speed * least
    unknown = np.isinf(jobs.left_at)
    if unknown.any():
        service = found[unknown]
        if len(view.history):
            used = jobs.attained()[unknown]
            index = gittins(view.history, used)
            service = np.where(index > 0, 1.0 / np.maximum(index, 1e-300), used)
        steps = np.floor(np.log(np.maximum(service, LEAST_SECONDS)) / np.log(STEP))
        found[unknown] = STEP**steps
    return found


def worst_off(view: View, patience: float, reserve: float) -> Bools:
    """Jobs that will take more than `patience` times as long as under an even share.

    Those that fare worst, until their leasts come to a part of the devices; one at least. The
    even share is that of now: while jobs wish for twice as many devices as there are, everybody
    would go at half the speed.
    """
    jobs = view.jobs
    left = jobs.left_or_guess()
    alone = (jobs.done() + left) / jobs.wish_speed
    crowd = max(int(jobs.wish.sum()) / max(view.devices, 1), 1.0)
    lasts = view.now - jobs.submitted + left / jobs.wish_speed
    ratio = lasts / np.maximum(alone * crowd, 1e-9)
    chosen: Bools = np.zeros(jobs.n, np.bool_)
    late = (ratio > patience).nonzero()[0]
    if len(late):
        late = late[np.argsort(-ratio[late], kind="stable")]
        before = np.cumsum(jobs.lo[late]) - jobs.lo[late]
        chosen[late[before < max(reserve * view.devices, 1.0)]] = True
    return chosen


def worth_by_rank(service: Floats) -> Floats:
    """What a unit of speed is worth to each, so that the mean completion time becomes least.

    For jobs that speed up as the square root of their devices, all there at once, the optimal
    shares are those that make most of the sum of speeds times sqrt(2 rank - 1), counted from the
    longest job (heSRPT: Berg, Vesilo and Harchol-Balter, Performance Evaluation 144 (2020)). The
    curves differ here, but it needs no more than an order, so that an estimate does not have to
    be right, only to say which is longer.
    """
    rank = np.empty(len(service))
    rank[np.argsort(-service, kind="stable")] = np.arange(1, len(service) + 1)
    found: Floats = np.sqrt(2.0 * rank - 1.0)
    return found

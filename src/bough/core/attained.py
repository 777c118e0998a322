"""Queues by service attained, the way back out of them, and what attained service foretells."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bough.core.jobs import Jobs
from bough.core.model import INFINITY
from bough.core.order import stable_order
from bough.core.policy import Bools, Floats, Ints, View

#: A job this close to a limit is over it: clocks and products of times are rounded.
SLACK_SECONDS = 1e-6


def check_limits(limits: tuple[float, ...], promote: float) -> None:
    """Whether queues can be made of these."""
    ascending = all(a < b for a, b in pairwise(limits))
    if not ascending or not all(limit > 0 for limit in limits):
        raise ValueError(f"limits {list(limits)} must be positive and ascending")
    if not 1 <= len(limits) <= 100:
        raise ValueError("there must be 1 to 100 limits")
    if not promote > 0:
        raise ValueError("promote must be positive")


def queue_places(view: View, limits: tuple[float, ...], promote: float) -> tuple[Ints, float]:
    """Each job's queue by device-seconds used, and in how many seconds somebody's changes.

    Twice the number of the queue, and one more for those that wait.
    """
    jobs = view.jobs
    size = jobs.size
    used = size * (view.now - jobs.since + SLACK_SECONDS) + jobs.attained_until
    level = (used >= limits[0]).view(np.uint8)
    for limit in limits[1:]:
        level += used >= limit
    # The next fall of a running job is the only thing that time alone changes.
    seconds = INFINITY
    soon = ((size > 0) & (level < len(limits))).nonzero()[0]
    if len(soon):
        ahead = np.array(limits)[level[soon]] - used[soon]
        seconds = SLACK_SECONDS + float((ahead / size[soon]).min())
    if promote < INFINITY:
        promoted, change = _promoted(view, size > 0, promote)
        level[promoted] = 0
        seconds = min(seconds, change)
    place: Ints = 2 * level + (size == 0)
    return place, seconds


def _promoted(view: View, runs: Bools, promote: float) -> tuple[Bools, float]:
    """Who has waited too long, and in how many seconds that changes for somebody."""
    jobs = view.jobs
    ran = jobs.ran()
    waited = np.maximum(view.now - jobs.submitted - ran, 0.0)
    enough = np.where(runs, promote / 2, promote) * ran
    promoted: Bools = waited + SLACK_SECONDS >= enough
    falls = (2 / promote * waited - ran)[promoted & runs]
    rises = (enough - waited)[~promoted & ~runs]
    change = min(falls.min(initial=INFINITY), rises.min(initial=INFINITY))
    return promoted, max(float(change), 0.0) + SLACK_SECONDS


def by_start(jobs: Jobs) -> Ints:
    """Rows by when they last started, then those that never did."""
    never = np.isnan(jobs.run_since)
    started = (~never).nonzero()[0]
    first = started[stable_order(jobs.run_since[started])]
    return np.concatenate([first, never.nonzero()[0]])


def gittins(history: Floats, used: Floats) -> Floats:
    """The Gittins index of jobs that have used so much, if they are like those of the history.

    The greatest chance to end within some more service, over the service to be expected for it.
    `history` ascends; who has used more than any job of it has index 0.
    """
    ages, job = np.unique(used, return_inverse=True)
    index = np.zeros(len(ages))
    total = np.append(0.0, history.cumsum())
    begin = history.searchsorted(ages, "right")
    ended = np.arange(1, len(history) + 1)
    for i in range(len(ages)):
        k = int(begin[i])
        more = history[k:] - ages[i]
        if len(more):
            chance = ended[: len(more)]
            spent = total[k + 1 :] - total[k] - ages[i] * chance
            spent = spent + more * (len(more) - chance)
            index[i] = float((chance / spent).max())
    found: Floats = index[job]
    return found

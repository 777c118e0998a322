"""Moments at which everything is decided anew: multiples of a period, told by the clock alone.

A policy keeps no state, so it cannot know when it decided last; but it can know in which turn it
is, and in which one a job began.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from bough.core.jobs import Jobs

#: A moment so close before a turn (as a part of one) is in it: products of times are rounded.
ROUNDING = 1e-6


def turn(now: float, seconds: float) -> int:
    """Which turn this moment is in."""
    return math.floor(now / seconds + ROUNDING)


def turns(when: npt.NDArray[np.float64], seconds: float) -> npt.NDArray[np.float64]:
    """Which turn each of these moments is in; NaN for those that never were."""
    found: npt.NDArray[np.float64] = np.floor(when / seconds + ROUNDING)
    return found


def next_turn(now: float, seconds: float) -> float:
    """When the next turn begins."""
    return (turn(now, seconds) + 1) * seconds


def turn_after(jobs: Jobs, sizes: npt.NDArray[np.int64], now: float, seconds: float) -> float:
    """When the next turn begins; never, where nobody has or gets anything that could change hands.

    A queue may be all waiting, with its budget spent: time alone gives it no room.
    """
    if not sizes.any() and not jobs.size.any():
        return math.inf
    return next_turn(now, seconds)


def begins(now: float, seconds: float, slack_seconds: float) -> bool:
    """Whether this moment is at the beginning of a turn; bodies wake a little late."""
    return now - turn(now, seconds) * seconds <= slack_seconds


#: Bodies wake a little late: within this part of a turn, it begins.
LATE = 0.02
#: What is decided anew is decided within this part of a turn; later, who runs goes on.
OPENING = 0.1


def opens(now: float, seconds: float) -> bool:
    """Whether a turn begins now, as far as bodies keep time."""
    return begins(now, seconds, LATE * seconds)


def keeps_its_turn(jobs: Jobs, now: float, seconds: float) -> npt.NDArray[np.bool_]:
    """Who runs and goes on until the next turn: who began in this one, and late in it everybody."""
    runs = jobs.size > 0
    if not begins(now, seconds, OPENING * seconds):
        return runs
    found: npt.NDArray[np.bool_] = runs & (turns(jobs.run_since, seconds) == turn(now, seconds))
    return found

"""Time on each kind of device, shared out by a linear program and worked off in rounds."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bough.core.choices import rooms
from bough.core.model import INFINITY
from bough.core.policy import Floats, Ints, Plan, Policy, View
from bough.core.programs import require
from bough.core.recent import possible
from bough.core.turns import fastest_first, granted, share_time, sizes_and_speeds

#: Priority of whom the program gives time and who had none: above all others, by their share.
FIRST = 1e9
#: A moment so close to a round (as a part of it) is the round; a bisection this close is done.
ROUNDING = 1e-9
CLOSE = 0.01


class Gavel(Policy, frozen=True):
    """Jobs take turns on kinds of device, such that the worst off make as much progress as can be.

    Citation: Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep learning
    workloads", OSDI '20, sections 4 and 5, and its released simulator.
    Faithful: a linear program says for which share of time each job is to have each kind, by its
    speed there (aware=false: as if all were equal); objectives `max_min` (progress relative to an
    equal part of the cluster, times devices over weight), `finish_time` (the worst ratio of the
    time a job takes to what it would take with an equal part), `makespan`, `throughput`, and
    `fifo` (no program: the fastest kind with room, nobody passes). In each round devices go to
    the pairs of job and kind with the highest share over time received, passing over what does
    not fit; who is on its kind already stays there.
    Ours: time received counts half as much after each `half_life_seconds`, where theirs forgets
    it at each new program and keeps what was missed as a tie-break; a program is solved at each
    decision. Between rounds nobody is stopped. Among equally fair shares those with most
    throughput are taken. Jobs keep the size they wish; no two share a device.
    """

    scope = "cluster"

    #: What is made as great, or as small, as possible.
    objective: Literal["max_min", "finish_time", "makespan", "throughput", "fifo"] = "max_min"
    #: Whether it knows how fast each job is on each kind.
    aware: bool = True
    #: Shares are decided anew at multiples of this.
    round_seconds: float = 360.0
    #: Time that was received counts half after it.
    half_life_seconds: float = 3600.0

    def __post_init__(self) -> None:
        if self.objective != "fifo":
            require("gavel (unless objective=fifo)")
        if not (self.round_seconds > 0 and self.half_life_seconds > 0):
            raise ValueError("round_seconds and half_life_seconds must be positive")

    def remembers(self) -> float:
        return self.half_life_seconds

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        size, speed = sizes_and_speeds(view)
        known = speed if self.aware else (speed > 0).astype(np.float64)
        rounds = float(np.floor(view.now / self.round_seconds + ROUNDING))
        new_round = view.now - rounds * self.round_seconds <= ROUNDING * max(view.now, 1.0)
        keeps = (jobs.size > 0) if self.objective == "fifo" or not new_round else jobs.must != 0
        if self.objective == "fifo":
            plan = fastest_first(view, size, known, keeps)
        else:
            share = self.shares(view, size, known)
            plan = granted(view, size, speed, self.priorities(view, share), keeps)
        # Who has the kind it is fastest on gains nothing by another turn.
        content = (plan * speed).max(axis=1, initial=0.0) >= (size * speed).max(axis=1, initial=0.0)
        again = INFINITY if content.all() else (rounds + 1) * self.round_seconds
        return Plan(plan, wake_at=again)

    def shares(self, view: View, size: Ints, speed: Floats) -> Floats:
        """The share of time of each job on each kind."""
        found = self._shares(view, size, speed)
        return np.zeros(speed.shape) if found is None else found

    def _shares(self, view: View, size: Ints, speed: Floats) -> Floats | None:
        pools = rooms(view).astype(np.float64)
        equal = np.maximum(speed @ pools / max(pools.sum(), 1.0), 1e-12)
        if self.objective == "finish_time":
            return _finish_times(view, size, speed, pools, equal)
        if self.objective == "throughput":
            return share_time(speed / equal[:, None], size, pools, np.zeros(len(speed)))
        if self.objective == "makespan":
            left = np.maximum(view.jobs.left_or_guess(), 1.0)
            return share_time(speed / left[:, None], size, pools)
        weight = np.maximum(view.jobs.weight, 1e-9) * equal
        return share_time(speed * size / weight[:, None], size, pools)

    def priorities(self, view: View, share: Floats) -> Floats:
        """Share of time over the part of it received so far."""
        if not view.ran_on.size:
            return share * FIRST
        age = np.maximum(view.now - view.jobs.submitted, 1e-9)
        could = np.array([possible(a, self.half_life_seconds) for a in age.tolist()])
        part = view.ran_on / could[:, None]
        return np.where(part > 0, share / np.maximum(part, 1.0 / FIRST), share * FIRST)


def _finish_times(
    view: View, size: Ints, speed: Floats, pools: Floats, equal: Floats
) -> Floats | None:
    """Shares with which the worst ratio of finish times is least, by bisection."""
    jobs = view.jobs
    age, left = np.maximum(view.now - jobs.submitted, 0.0), jobs.left_or_guess()
    part = pools.sum() / (max(jobs.n, 1) * np.maximum(size.max(axis=1, initial=0), 1))
    alone = age + left / (equal * np.clip(part, 1e-9, 1.0))
    most = speed.max(axis=1, initial=0.0)
    low, high = 0.0, 1.0
    best: Floats | None = None
    while (best is None or high - low > CLOSE * high) and high < FIRST:
        ratio = high if best is None else (low + high) / 2
        time = ratio * alone - age
        needed = np.where(time > 0, left / np.maximum(time, 1e-9), np.inf)
        needed[(left <= 0) | (most <= 0)] = 0.0
        found = share_time(speed, size, pools, needed) if (needed <= most).all() else None
        if found is not None:
            best, high = found, ratio
        elif best is None:
            low, high = high, high * 4
        else:
            low = ratio
    return best

"""Devices and clocks where they save most time for the energy they cost, within a power limit.

Every job starts with its least, at the clock with which its work costs least energy, and climbs
rungs: more devices, or a higher clock. A rung is worth

    (part of the time left that it saves) / (part of the energy left that it adds)

and without bound if it adds none. Both parts are of the job's own, so that a job's rungs do not
depend on how much work it has left, and jobs of a class share them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bough.core.energy import CLOCKS, EXPONENT
from bough.core.model import INFINITY
from bough.core.policy import Floats, Ints, PowerView, View
from bough.core.share import in_order

#: Where nothing is known of power: a device like any other, and no budget.
NO_POWER = PowerView(36.0, 190.0, 0.72, np.zeros(0), np.zeros(0))
#: Watts are rounded in the sums of many jobs.
ROUNDING = 1e-9


class Rung(NamedTuple):
    """What a job may have, what that draws, and what climbing to it is worth."""

    size: int
    clock: float
    watts: float
    #: Work per second, as believed.
    speed: float
    worth: float


class Climbed(NamedTuple):
    """A plan, and whether power rather than devices held it back."""

    sizes: Ints
    clocks: Floats
    watts: float
    short_of_power: bool


def power_in(view: View) -> PowerView:
    """What the view says of power; without a word of it, that of a usual kind without a budget."""
    if view.power is not None:
        return view.power
    none = np.ones(view.jobs.n)
    return PowerView(NO_POWER.idle, NO_POWER.span, NO_POWER.scaled, none, 0.4 * none)


class Ladders:
    """The rungs of every job of a view, shared by those that are alike."""

    def __init__(self, view: View, clocks: tuple[float, ...] = CLOCKS) -> None:
        self.power, self.clocks = power_in(view), clocks
        jobs, classes = view.jobs, view.classes
        self.cls, self.sizes, self.speed = jobs.cls, classes.sizes, classes.speed
        known: dict[tuple[int, int, int, float, float], list[Rung]] = {}
        self.rungs: list[list[Rung]] = []
        keys = zip(
            jobs.cls.tolist(), jobs.lo.tolist(), jobs.hi.tolist(),
            self.power.draw.tolist(), self.power.sensitivity.tolist(), strict=True,
        )  # fmt: skip
        for key in keys:
            if key not in known:
                known[key] = self._climb(*key)
            self.rungs.append(known[key])

    def watts(self, size: int, busy: float, clock: float, draw: float) -> float:
        """Of so many devices, with their share of their nodes'; whole nodes where it needs more."""
        power = self.power
        active = 1.0 - power.scaled + power.scaled * clock**EXPONENT
        nodes = size / power.node_devices
        if size > power.node_devices:
            nodes = -(-size // power.node_devices)
        standing = power.node_watts or power.idle * power.node_devices
        total: float = nodes * standing + size * draw * busy * power.span * active
        return total

    def energy_left(self, view: View) -> Floats:
        """What each job still needs on its least, at its thriftiest clock."""
        each = np.array([r[0].watts / max(r[0].speed, 1e-300) for r in self.rungs])
        found: Floats = np.nan_to_num(view.jobs.left_or_guess() * each, posinf=1e300)
        return found

    def watts_of(self, sizes: Ints) -> float:
        """What all draw together on so many devices, at full clock."""
        rows = sizes.nonzero()[0].tolist()
        return sum(self.at_full_clock(row, int(sizes[row])) for row in rows)

    def at_full_clock(self, row: int, size: int) -> float:
        """What a job draws on so many devices that go as fast as they do."""
        cls = int(self.cls[row])
        least = max(next((s for s in self.sizes[cls].tolist() if s), 1), 1)
        speeds = dict(zip(self.sizes[cls].tolist(), self.speed[cls].tolist(), strict=True))
        busy = min(speeds[size] * least / max(size * speeds[least], 1e-300), 1.0)
        return self.watts(size, busy, 1.0, float(self.power.draw[row]))

    def _climb(self, cls: int, lo: int, hi: int, draw: float, sensitivity: float) -> list[Rung]:
        """From the least at its thriftiest clock to the most at full clock, best rungs first."""
        own = [
            (int(size), float(speed))
            for size, speed in zip(*_distinct(self.sizes[cls], self.speed[cls]), strict=True)
            if lo <= size <= hi
        ]
        least = next((s for s in self.sizes[cls].tolist() if s), 1)
        unit = float(self.speed[cls][1]) / least

        def rung(size: int, speed: float, clock: float, worth: float = INFINITY) -> Rung:
            busy = min(speed / (size * unit), 1.0)
            pace = 1.0 / (1.0 + busy * sensitivity * (1.0 / clock - 1.0))
            return Rung(size, clock, self.watts(size, busy, clock, draw), speed * pace, worth)

        starts = [rung(*own[0], clock) for clock in reversed(self.clocks)]
        now = min(starts, key=lambda r: r.watts / r.speed)
        full, found = dict(own), [now]
        while True:
            wider = [rung(size, speed, now.clock) for size, speed in own if size > now.size]
            faster = [rung(now.size, full[now.size], c) for c in self.clocks if c > now.clock]
            better = [r for r in (*wider, *faster[:1]) if r.speed > now.speed]
            if not better:
                return found
            best = max(better, key=lambda r: worth(now, r))
            # A rung is not reached before the one below it.
            now = best._replace(worth=min(worth(now, best), now.worth))
            found.append(now)


def worth(now: Rung, then: Rung) -> float:
    """Part of the time saved over part of the energy added."""
    saved = 1.0 - now.speed / then.speed
    added = (then.watts / then.speed) / (now.watts / now.speed) - 1.0
    return saved / added if added > 0 else INFINITY


def _distinct(sizes: Ints, speed: Floats) -> tuple[Ints, Floats]:
    """A class's own sizes, without 0 and without those that only fill its row of the table."""
    keep = np.concatenate(([False], sizes[1:] > sizes[:-1]))
    return sizes[keep], speed[keep]


class Wishes(NamedTuple):
    """What is not left to the ladders: who has what at full clock, who is first, who counts."""

    sizes: Ints
    order: Ints
    weights: Floats


def climb_within(
    view: View, ladders: Ladders, allowance: float, wishes: Wishes | None = None
) -> Climbed:
    """Leasts first, to those with least energy left; then the rungs that are worth most.

    Rungs for which there are too few devices or too little power end their job's climb. Those that
    may not be parked have their least whatever they draw, and so have those that are wished for.
    """
    jobs, rungs = view.jobs, ladders.rungs
    level = np.full(jobs.n, -1)
    free, power, held_back = view.devices, allowance, False
    slack = ROUNDING * min(max(allowance, 0.0), 1e18)
    fixed = np.zeros(jobs.n, np.int64) if wishes is None else wishes.sizes
    for row in fixed.nonzero()[0].tolist():
        free -= int(fixed[row])
        power -= ladders.at_full_clock(row, int(fixed[row]))
    for row in ((jobs.must != 0) & (fixed == 0)).nonzero()[0].tolist():
        free -= rungs[row][0].size
        power -= rungs[row][0].watts
        level[row] = 0
    order = (in_order(view, ladders.energy_left(view)) if wishes is None else wishes.order).tolist()
    for row in order:
        first = rungs[row][0]
        if level[row] < 0 and not fixed[row] and first.size <= free:
            if first.watts > power + slack:
                held_back = True
                continue
            level[row], free, power = 0, free - first.size, power - first.watts
    weights = None if wishes is None else wishes.weights
    free, power, short = _take(rungs, level, order, (free, power + slack), weights)
    sizes = np.array([r[k].size if k >= 0 else 0 for r, k in zip(rungs, level, strict=True)], int)
    sizes = np.where(fixed > 0, fixed, sizes)
    clocks = np.array([r[max(k, 0)].clock for r, k in zip(rungs, level, strict=True)], float)
    clocks[fixed > 0] = 1.0
    return Climbed(sizes, clocks, allowance + slack - power, held_back or short)


def _take(
    rungs: list[list[Rung]],
    level: Ints,
    order: list[int],
    there: tuple[int, float],
    weights: Floats | None,
) -> tuple[int, float, bool]:
    """Let jobs climb, the worthiest rung first, of equals those of who comes first in order.

    What is left of devices and power, and whether power was short.
    """
    free, power = there
    counts = np.ones(len(level)) if weights is None else weights
    steps = [
        (-rung.worth * counts[row], rank, k)
        for rank, row in enumerate(order)
        if level[row] >= 0
        for k, rung in enumerate(rungs[row])
        if k
    ]
    steps.sort()
    ended: set[int] = set()
    short = False
    for _, rank, k in steps:
        row = order[rank]
        if row in ended:
            continue
        below, rung = rungs[row][k - 1], rungs[row][k]
        devices, watts = rung.size - below.size, rung.watts - below.watts
        if devices > free or watts > power:
            short |= watts > power
            ended.add(row)
            continue
        free, power = free - devices, power - watts
        level[row] = k
    return free, power, short

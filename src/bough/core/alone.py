"""What each promise would need if it were alone: what it gets while all that fits together.

A job that has all devices to itself needs no search: its quota is the lowest speed with which
its work is done in the time there is, and the moment at which it needs that quota is the solution
of one equation. Filling (filling.py) gives each job just this as long as those before it leave
the quota free; where the quotas of all fit at every moment, whole columns of jobs are planned by a
few passes over them, and nothing is filled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bough.core.filling import RULES, SLACK_SECONDS, WAITS_SECONDS, Levels, Rules, useful_levels
from bough.core.model import INFINITY
from bough.core.policy import Classes, Floats, Ints, View


class Asks(NamedTuple):
    """What jobs need, as columns: see filling.Need."""

    cls: Ints
    most: Ints
    left: Floats
    deadline: Floats
    floor: Ints

    def and_one(self, cls: int, most: int, left: float, deadline: float) -> Asks:
        """These, and one that holds nothing."""
        return Asks(
            np.append(self.cls, cls), np.append(self.most, most), np.append(self.left, left),
            np.append(self.deadline, deadline), np.append(self.floor, 0),
        )  # fmt: skip


class Alone(NamedTuple):
    """Who needs what: `low` devices at once, and `high` from `rises` to the deadline."""

    low: Ints
    high: Ints
    rises: Floats
    deadline: Floats

    def now(self, now: float) -> Ints:
        """Devices now: the minimum satisfactory shares."""
        return np.where(self.rises <= now, self.high, self.low)

    def wake_at(self, now: float, granted: Ints) -> float:
        """When the first of them needs more than these sizes."""
        later = (self.rises > now) & (self.high > np.maximum(granted, self.low))
        return float(self.rises[later].min(initial=INFINITY))


def asks_of(view: View, rows: Ints, margin: Floats | float = 0.0) -> Asks:
    """What these rows need; `margin` is the part of the speed (of each) that is not counted on."""
    jobs = view.jobs
    left = jobs.left()[rows] / (1.0 - margin)
    cls, most, deadline = jobs.cls[rows], jobs.max[rows], jobs.deadline[rows]
    floor = np.zeros(len(rows), np.int64)
    if not jobs.flat:
        floor = jobs.lo[rows] * (jobs.must[rows] != 0)
    # What ends at this very moment, but for rounding, is not to be pushed aside.
    sizes, speeds = level_table(view.classes)
    count = np.maximum((sizes[cls] <= most[:, None]).sum(axis=1), 2)
    soon = left <= SLACK_SECONDS * speeds[cls, count - 1]
    deadline = np.where(soon, np.maximum(deadline, view.now + WAITS_SECONDS), deadline)
    return Asks(cls, most, left, deadline, floor)


def level_table(classes: Classes) -> tuple[Ints, Floats]:
    """The useful levels of all classes, the last repeated; one class of no use if there is none."""
    made: tuple[Ints, Floats] | None = classes.cache.get("level table")
    if made is None:
        levels = useful_levels(classes) or [Levels((0, 1), (0.0, 0.0))]
        width = max(len(sizes) for sizes, _ in levels)
        padded = [
            (sizes + sizes[-1:] * (width - len(sizes)), speeds + speeds[-1:] * (width - len(sizes)))
            for sizes, speeds in levels
        ]
        made = np.array([s for s, _ in padded], np.int64), np.array([v for _, v in padded])
        classes.cache["level table"] = made
    return made


def alone(classes: Classes, asks: Asks, now: float, rules: Rules = RULES) -> Alone | None:
    """What each needs alone; None if one of them cannot be done in time even so."""
    sizes, speeds = level_table(classes)
    own, speed, every = sizes[asks.cls], speeds[asks.cls], np.arange(len(asks.cls))
    slot, deadline = rules.slot_seconds, asks.deadline
    if slot:
        deadline = deadline // slot * slot
    span = deadline - now
    enough = speed * (span + SLACK_SECONDS)[:, None] >= asks.left[:, None]
    enough = (enough | (asks.left <= 0)[:, None]) & (own > 0)
    last = np.maximum((own <= asks.most[:, None]).sum(axis=1) - 1, 1)
    high = enough.argmax(axis=1)
    if not (enough[every, high] & (high <= last) & ((span > 0) | (asks.left <= 0))).all():
        return None
    below = speed[every, high - 1]
    missing = np.maximum(asks.left - below * span, 0.0)
    rises = deadline - missing / (speed[every, high] - below)
    if slot:
        rises = rises // slot * slot
    rises = np.where(rises <= now + WAITS_SECONDS, now, rises)
    least = (own <= asks.floor[:, None]).sum(axis=1) - 1
    least[asks.floor == 0] = 0
    low, high = np.maximum(high - 1, least), np.maximum(high, least)
    # Who has nothing left to do needs no more than what it may not give up.
    low, high = (np.where(asks.left > 0, level, least) for level in (low, high))
    return Alone(own[every, low], own[every, high], rises, deadline)


def together(plans: Alone, devices: int) -> bool:
    """Whether so many devices are enough for all of them at every moment."""
    if int(plans.high.sum()) <= devices:
        return True
    low, high, rises, deadline = plans
    times = np.concatenate([rises, deadline])
    change = np.concatenate([high - low, -high])
    # Those that need no more go before those that need more.
    order = np.lexsort((change, times))
    used = int(low.sum()) + change[order].cumsum()
    return bool(max(int(low.sum()), int(used.max(initial=0))) <= devices)

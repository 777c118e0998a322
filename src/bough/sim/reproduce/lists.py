"""Queues that are lists: what a job's turn owes to when it entered the list, not to when it came.

Tiresias' simulator and those built on it append a job to a queue on entering it, and after each
decision move the waiting jobs of a queue behind the running ones. So a job's turn depends on the
whole past. A policy of bough decides by the present state alone; these remember.
"""

from __future__ import annotations

import msgspec
import numpy as np

from bough.core.model import INFINITY
from bough.core.policy import Bools, Floats, Ints, Plan, Policy, View
from bough.core.share import fit_in_order

#: A job this close to a limit has reached it: sums of times are rounded.
SLACK_DEVICE_SECONDS = 1e-7


class Memory:
    """What is remembered of each live job, by its serial number."""

    def __init__(self) -> None:
        self.now = -INFINITY
        self.serial: Ints = np.zeros(0, np.int64)
        #: The queue it is in, and its place in the list of all queues one after another.
        self.level: Ints = np.zeros(0, np.int64)
        self.rank: Ints = np.zeros(0, np.int64)

    def recall(self, serial: Ints) -> None:
        """Forget who is gone; who is new goes to the end of the first queue."""
        alive = np.isin(self.serial, serial)
        rows = serial.searchsorted(self.serial[alive])
        level, rank = np.zeros_like(serial), np.full_like(serial, self.end())
        level[rows], rank[rows] = self.level[alive], self.rank[alive]
        self.serial, self.level, self.rank = serial.copy(), level, rank

    def end(self) -> int:
        """Behind everybody."""
        return int(self.rank.max(initial=-1)) + 1

    def fall(self, rows: Ints) -> None:
        """These go, in this order, to the end of the next queue."""
        self.level[rows] += 1
        self.rank[rows] = self.end() + np.arange(len(rows))

    def order(self) -> Ints:
        """Rows queue by queue, each in the order of its list."""
        found: Ints = np.lexsort((self.rank, self.level))
        return found

    def park(self, runs: Bools) -> None:
        """Move those that do not run behind those that do, in each queue."""
        order = np.lexsort((self.rank, ~runs, self.level))
        self.rank[order] = np.arange(len(order))


class ListLas(Policy, frozen=True):
    """Tiresias-L as in Tiresias' simulator: least attained service with queues that are lists.

    Citation: Gu et al., NSDI '19; the simulator, and Muri's version of it (SIGCOMM '22).
    Faithful: queues by device-seconds used; a job is appended to its next queue when a decision
    finds it over the limit; waiting jobs move behind running ones after each decision; jobs are
    counted, not placed, and those that do not fit are passed over.
    """

    limits: tuple[float, ...] = (3250.0,)
    #: A fall is looked for after a whole number of seconds of run time.
    whole_seconds: bool = True
    #: Waiting jobs move behind running ones after each decision.
    running_first: bool = True
    memory: Memory = msgspec.field(default_factory=Memory)

    def plan(self, view: View) -> Plan:
        jobs, memory = view.jobs, self.memory
        limits = np.array((*self.limits, INFINITY))
        used = jobs.attained()
        memory.recall(jobs.serial)
        if view.now > memory.now:  # one fall at most in a moment
            over = used >= limits[memory.level] - SLACK_DEVICE_SECONDS
            memory.fall((over & (jobs.size > 0)).nonzero()[0])
            memory.now = view.now
        order = memory.order()
        sizes = fit_in_order(jobs.wish, view.devices, order, skip=True)
        if self.running_first:
            memory.park(sizes > 0)
        wake_at = view.now + self.next_fall(sizes, limits[memory.level], used)
        return Plan(sizes, order=order, wake_at=wake_at)

    def next_fall(self, size: Ints, limit: Floats, used: Floats) -> float:
        """Seconds until the first running job reaches its limit."""
        runs = size.nonzero()[0]
        whole, spent = limit[runs] / size[runs], used[runs] / size[runs]
        if self.whole_seconds:
            whole = np.ceil(whole)
        return max(float((whole - spent).min(initial=INFINITY)), 0.0)

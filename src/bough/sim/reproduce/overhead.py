"""Tiresias as ElasticFlow's simulator runs it, with its start-up times and its oddities.

A job that starts owes a start-up time, which is taken off its progress when the next event looks
at it: one that ends before any other event has none. Every so many decisions everything restarts
and owes more, at once. The next fall of a job to a lower queue is expected too late, because the
seconds it ran are taken for device-seconds.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec
import numpy as np

from bough.core.cluster import Cluster
from bough.core.model import INFINITY, Event
from bough.core.policy import Bools, Floats, Ints, Plan, Policy, View
from bough.core.share import fit_in_order
from bough.sim.engine import Engine
from bough.sim.options import Options, Tools
from bough.sim.reproduce.lists import Memory
from bough.sim.reproduce.slots import SLACK_SECONDS, Clock
from bough.sim.trace import Trace

#: From so many devices on, start-up takes longer.
LARGE_DEVICES: Final = 256
LIMITS: Final = np.array((3250.0, 7200.0, INFINITY))


def start_up_seconds(size: Ints, devices: int, restart: bool) -> Floats:
    """What jobs of these sizes owe when they start."""
    large = devices >= LARGE_DEVICES
    base = (7.0 if large else 2.0) + ((47.0 if large else 27.0) if restart else 0.0)
    return base + 2.0 * (np.log2(size) + 1.0)


class Accounts(Memory):
    """Besides the lists: seconds each job made progress for, and what it owes."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.decisions = 0
        self.restarted = False
        self.ran: Floats = np.zeros(0)
        self.owes: Floats = np.zeros(0)
        self.checked: Floats = np.zeros(0)

    def recall(self, serial: Ints) -> None:
        alive = np.isin(self.serial, serial)
        rows = serial.searchsorted(self.serial[alive])
        for name in ("ran", "owes", "checked"):
            column = np.zeros(len(serial))
            column[rows] = getattr(self, name)[alive]
            setattr(self, name, column)
        super().recall(serial)

    def progress(self, runs: Bools, now: float) -> None:
        """Whole seconds since the last event, less what was owed."""
        passed = np.floor(now - self.checked + SLACK_SECONDS)
        ran = np.floor(self.ran + np.maximum(passed - self.owes, 0.0))
        self.ran = np.where(runs, ran, self.ran)
        self.owes[runs] = 0.0
        self.checked[:] = now

    def owe(self, started: Bools, runs: Bools, size: Ints, devices: int, every: int) -> None:
        """Who starts owes; every so many decisions all that run do."""
        self.restarted = self.decisions > 0 and self.decisions % every == 0
        self.decisions += 1
        who = runs if self.restarted else started
        self.owes[who] = start_up_seconds(size[who], devices, self.restarted)


class ElasticFlowLas(Policy, frozen=True):
    """Least attained service as ElasticFlow's released baseline has it."""

    slot_seconds: float
    accounts: Accounts = msgspec.field(default_factory=Accounts)

    def plan(self, view: View) -> Plan:
        jobs, accounts = view.jobs, self.accounts
        before = accounts.clock.last
        wait = accounts.clock.wait_until(view.now, self.slot_seconds)
        if wait is not None:
            return Plan(jobs.size.copy(), wake_at=wait)
        now, size = accounts.clock.last, jobs.wish
        accounts.recall(jobs.serial)
        runs = jobs.size > 0
        if now > before:
            accounts.progress(runs, now)
            over = runs & (accounts.ran * size >= LIMITS[accounts.level])
            fallen = over.nonzero()[0]
            accounts.fall(fallen[np.lexsort((fallen, -size[fallen]))])
        sizes = fit_in_order(size, view.devices, accounts.order(), skip=True)
        if now > before:
            every = int(self.slot_seconds)
            accounts.owe((sizes > 0) & ~runs, sizes > 0, size, view.devices, every)
        accounts.park(sizes > 0)
        return Plan(sizes, wake_at=now + self.next_fall(sizes))

    def next_fall(self, sizes: Ints) -> float:
        """Seconds until they look for a fall, at least a slot."""
        runs = sizes.nonzero()[0]
        ahead = LIMITS[self.accounts.level[runs]] - self.accounts.ran[runs]
        return max(float(np.ceil(ahead / sizes[runs]).min(initial=INFINITY)), self.slot_seconds)


class OwingEngine(Engine):
    """A replay whose truth follows the accounts of the policy."""

    def __init__(
        self, trace: Trace, cluster: Cluster, policy: ElasticFlowLas, options: Options
    ) -> None:
        self.accounts = policy.accounts
        self.slot_seconds = policy.slot_seconds
        super().__init__(trace, cluster, policy, options, Tools())

    def step(self, batch: list[Event]) -> None:
        before = self.accounts.decisions
        super().step(batch)
        if self.accounts.decisions > before:
            self.settle()
        elif self.record.jobs and not self.world.jobs and self.accounts.clock.last < self.now:
            # No job is left to ask the policy about; to them it is a decision all the same.
            clock = self.accounts.clock
            clock.last = clock.wait_until(self.now, self.slot_seconds) or clock.last
            self.accounts.decisions += 1

    def settle(self) -> None:
        """Set progress back to what the accounts say; after a restart it goes on later."""
        accounts, now = self.accounts, self.now
        row = {serial: i for i, serial in enumerate(accounts.serial.tolist())}
        for id, job in self.world.jobs.items():
            if job.size:
                i = row[self.scheduler.state.jobs[id].serial]
                self.world.advance(job, now)
                job.done = float(accounts.ran[i]) * job.rate
                job.ready = now + math.floor(accounts.owes[i]) if accounts.restarted else now
                self.world.set_rate(job, now)

"""One decision on a full cluster: how long `handle` takes, against plain objects.

2,000 devices with 1,000 live jobs, and 80,000 with 10,000. Whenever a job ends another arrives, so
that their number stays; which one ends follows from the work they have and the devices they hold.
A decision is all that follows from one arrival, end or moment the scheduler asked for, until its
last command is out: the answers of the bodies are handled in it where commands wait for them. For
`max_min` and `greedy` all jobs are elastic, for the others none is. The same stream of events is
decided with the plain objects of bench/plain.py, which place without regard for topology; on nodes
of one device, where that does not matter, whole replays of both must agree on the mean completion
time. Prints milliseconds of CPU; exits with 1 when they do not agree, or when the 99th percentile
passes a limit.
"""

from __future__ import annotations

import argparse
import heapq
import os
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import plain
from bough.core import model as m
from bough.core.cluster import Cluster, parse_short
from bough.core.queues import QueueTree
from bough.core.scheduler import Scheduler
from bough.core.speedup import SpeedBook
from bough.policies import find
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.synthetic import RIGID_SIZES, Mix, generate
from bough.sim.trace import TraceJob

POLICIES = ("max_min", "greedy", "las", "srtf", "fifo")
ELASTIC = ("max_min", "greedy")
SEED = 5
#: Decisions before any is measured.
WARM_UP = 300
SAME = 1e-9


class Setting(NamedTuple):
    """How large, how many decisions, and how long the slowest of a hundred may take."""

    cluster: str
    live: int
    decisions: int
    plain_decisions: int
    limit_ms: float
    #: Rigid jobs that together want more than there is; elastic ones whose leasts leave some of it.
    rigid_sizes: tuple[tuple[int, float], ...]
    elastic_least: int


LARGER = ((1, 0.30), (2, 0.10), (4, 0.10), (8, 0.30), (16, 0.10), (32, 0.06), (64, 0.04))
SETTINGS = (
    Setting("5 racks of 50x8xa100", 1_000, 2_000, 500, 50.0, RIGID_SIZES, 2),
    Setting("20 blocks of 25 racks of 20x8xa100", 10_000, 500, 60, 500.0, LARGER, 8),
)


class Running(NamedTuple):
    """A job as the body knows it: what it has left was so at a moment, and falls at a rate."""

    left: float
    at: float
    rate: float
    epoch: int


class Body:
    """Carries out commands at once, and lets jobs end when their work is done."""

    def __init__(self, scheduler: Scheduler, cluster: Cluster) -> None:
        self.scheduler = scheduler
        self.now = 0.0
        self.jobs: dict[str, Running] = {}
        self.speeds: dict[str, dict[int, float]] = {}
        #: (when, id, its state then): void when its state is another by now.
        self.ends: list[tuple[float, str, Running]] = []
        self.quiet: list[m.Event] = []
        self.commands = 0
        self.decide(cluster.events(0.0))

    def decide(self, events: Sequence[m.Event]) -> float:
        """Seconds until the last command of a decision is out."""
        batch, seconds = [*self.quiet, *events], 0.0
        self.quiet = []
        while batch:
            began = time.process_time()
            commands = self.scheduler.handle(batch)
            seconds += time.process_time() - began
            self.commands += len(commands)
            batch = [answer for c in commands if (answer := self.execute(c)) is not None]
            if not self.scheduler.state.pending:
                self.quiet, batch = batch, []
        return seconds

    def execute(self, command: m.Command) -> m.Event | None:
        """The answer to a command."""
        id, epoch, now = command.id, command.epoch, self.now
        match command:
            case m.Start(place=place):
                self.run(id, epoch, place)
                return m.Started(at=now, id=id, epoch=epoch)
            case m.Resize(place=place, step=step):
                self.run(id, epoch, place)
                return m.Resized(at=now, id=id, epoch=epoch, step=step)
            case m.Stop():
                self.run(id, epoch, ())
                return m.Exited(at=now, id=id, epoch=epoch, why="stopped")
        del self.jobs[id], self.speeds[id]
        return None

    def run(self, id: str, epoch: int, place: m.Place) -> None:
        """From now on it holds these devices."""
        before = self.jobs[id]
        left = max(before.left - before.rate * (self.now - before.at), 0.0)
        rate = self.speeds[id].get(sum(len(devices) for _, devices in place), 0.0)
        self.jobs[id] = after = Running(left, self.now, rate, epoch)
        if rate:
            heapq.heappush(self.ends, (self.now + left / rate, id, after))

    def next_end(self) -> float:
        """When the next job is done."""
        while self.jobs.get(self.ends[0][1]) is not self.ends[0][2]:
            heapq.heappop(self.ends)
        return self.ends[0][0]


class PlainBody:
    """The same jobs as plain objects, decided on in the plain way."""

    def __init__(self, policy: str, cluster: Cluster, live: list[plain.Job], now: float) -> None:
        self.decide_sizes = plain.POLICIES[policy]
        self.free = [node.devices for node in cluster.nodes]
        self.devices, self.live, self.now = sum(self.free), live, now
        plain.settle(live, self.decide_sizes(live, self.devices), self.free, now)

    def decide(self, now: float, ended: str | None, arrived: plain.Job | None) -> float:
        """Seconds of one decision; what ended here ends there too, whether it ran or not."""
        began = time.process_time()
        plain.advance(self.live, now - self.now)
        self.now = now
        if ended is not None:
            gone = next(job for job in self.live if job.id == ended)
            self.live.remove(gone)
            plain.vacate(gone, gone.size, self.free)
        if arrived is not None:
            self.live.append(arrived)
        plain.settle(self.live, self.decide_sizes(self.live, self.devices), self.free, now)
        return time.process_time() - began


class Stream:
    """Ends and arrivals in turn, and moments the scheduler asks for."""

    def __init__(self, policy: str, setting: Setting) -> None:
        self.policy, self.setting = policy, setting
        self.cluster = parse_short(setting.cluster)
        self.book = SpeedBook("a100")
        scheduler = Scheduler(
            find(policy), self.cluster.tree(), queues=QueueTree(), speedups=self.book
        )
        self.draw = np.random.default_rng(SEED)
        needed = setting.live + WARM_UP + setting.decisions
        trace = generate(
            needed, self.cluster.devices, elastic=float(policy in ELASTIC), seed=SEED,
            mix=Mix(rigid_sizes=setting.rigid_sizes, elastic_least=setting.elastic_least),
        )  # fmt: skip
        self.waiting = iter(trace.jobs)
        self.body = Body(scheduler, self.cluster)
        self.plain: PlainBody | None = None
        self.next_arrival = m.INFINITY
        #: Seconds of each decision measured.
        self.ours: list[float] = []
        self.theirs: list[float] = []
        first = [next(self.waiting) for _ in range(setting.live)]
        self.body.decide([self.submit(job) for job in first])

    def submit(self, job: TraceJob) -> m.Event:
        """A job that arrives now."""
        made = self.make(job)
        self.body.jobs[job.id] = Running(made.left, self.body.now, 0.0, 0)
        self.body.speeds[job.id] = made.speeds
        return m.Submitted(at=self.body.now, id=job.id, spec=job.spec)

    def make(self, job: TraceJob) -> plain.Job:
        """The job as a plain object."""
        curve = self.book.curve(job.spec.model, job.spec.batch, "a100")
        work = job.seconds * curve.at(job.devices)
        return plain.make_job(job.id, self.body.now, job.spec, curve, work)

    def measure(self) -> None:
        """All decisions of the setting."""
        for _ in range(WARM_UP):
            self.step()
        self.ours.clear()
        self.body.commands = 0
        live = [self.mirrored(id) for id in self.body.scheduler.state.jobs]
        self.plain = PlainBody(self.policy, self.cluster, live, self.body.now)
        for number in range(self.setting.decisions):
            if number == self.setting.plain_decisions:
                self.plain = None
            self.step()

    def mirrored(self, id: str) -> plain.Job:
        """A live job as a plain object that holds nothing yet."""
        job, body = self.body.scheduler.state.jobs[id], self.body
        known, table = body.jobs[id], body.scheduler.state.table
        curve = self.book.curve(job.spec.model, job.spec.batch, "a100")
        left = max(known.left - known.rate * (body.now - known.at), 0.0)
        made = plain.make_job(id, body.now, job.spec, curve, left)
        made.used = float(table.attained()[table.row(job)])
        return made

    def step(self) -> None:
        """What happens next, and what is decided on it."""
        body, ended, arrived = self.body, None, None
        end, wake = body.next_end(), body.scheduler.wake_at
        body.now = min(end, self.next_arrival, max(wake, body.now))
        events: list[m.Event] = []
        if self.next_arrival <= body.now:
            job = next(self.waiting)
            arrived, self.next_arrival = self.make(job), m.INFINITY
            events.append(self.submit(job))
        elif end <= body.now:
            _, ended, known = heapq.heappop(body.ends)
            events.append(m.Exited(at=body.now, id=ended, epoch=known.epoch))
        else:
            events.append(m.Tick(at=body.now))
        self.ours.append(body.decide(events))
        if ended is not None:
            gap = body.next_end() - body.now
            self.next_arrival = body.now + float(self.draw.random()) * gap
        if self.plain is not None:
            self.theirs.append(self.plain.decide(body.now, ended, arrived))


def show(policy: str, setting: Setting) -> bool:
    """One line; whether the limit is kept."""
    stream = Stream(policy, setting)
    stream.measure()
    ours, theirs = np.array(stream.ours) * 1e3, np.array(stream.theirs) * 1e3
    p50, p99 = np.percentile(ours, [50, 99])
    base50, base99 = np.percentile(theirs, [50, 99])
    commands = stream.body.commands / len(ours)
    print(
        f"{policy:10} {len(ours):9} {commands:8.1f} {p50:8.3f} {p99:8.3f} {ours.max():8.3f} "
        f"{base50:9.3f} {base99:9.3f} {theirs.mean() / ours.mean():6.1f}"
        f"{'' if p99 < setting.limit_ms else '  TOO SLOW'}",
        flush=True,
    )
    return bool(p99 < setting.limit_ms)


def agree(policy: str) -> bool:
    """Whether plain objects decide the same: the same mean completion time on nodes of one."""
    elastic = policy in ELASTIC
    trace = generate(800, 200, load=1.1 if elastic else 0.9, elastic=float(elastic), seed=SEED)
    cluster = parse_short("200x1xa100")
    record = simulate(trace, cluster, find(policy), Options())
    ours = sum(job.end - job.submit for job in record.jobs) / len(record.jobs)
    theirs = plain.simulate(trace, cluster, policy)
    if abs(ours / theirs - 1.0) >= SAME:
        print(f"{policy}: mean completion {ours:.6f} s, plain {theirs:.6f} s: THEY DISAGREE")
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--policy", choices=POLICIES, action="append", help="only this one")
    policies = parser.parse_args().policy or POLICIES
    kept = all(agree(policy) for policy in policies)
    if kept:
        print("plain objects decide the same where places do not matter\n")
    for setting in SETTINGS:
        devices = parse_short(setting.cluster).devices
        print(
            f"{devices} devices, {setting.live} live jobs; limit {setting.limit_ms:g} ms at p99; "
        )
        print(f"{'ms of CPU':10} {'decisions':>9} {'commands':>8} {'p50':>8} {'p99':>8}", end="")
        print(f" {'most':>8} {'plain p50':>9} {'plain p99':>9} {'ratio':>6}")
        for policy in policies:
            kept &= show(policy, setting)
        print()
    print(f"ratio: of the means; load average of this machine {os.getloadavg()[0]:.1f}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())

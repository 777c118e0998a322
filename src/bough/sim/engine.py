"""The loop of the simulator: deliver what happens next, carry out what the scheduler commands."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from copy import deepcopy

import msgspec

from bough.core import model as m
from bough.core.cluster import Cluster
from bough.core.policy import Policy
from bough.core.queues import QueueTree
from bough.core.scheduler import Scheduler
from bough.core.speedup import SpeedBook
from bough.sim import faults
from bough.sim.accounts import open_accounts
from bough.sim.belief import mistaken
from bough.sim.options import Options, Tools
from bough.sim.record import JobRecord, RunRecord
from bough.sim.story import Story
from bough.sim.trace import Trace, TraceJob
from bough.sim.waits import Waits
from bough.sim.world import ACK, CRASH, FINISH, Running, World

USAGE_MAX = 20_000
#: Nothing runs, and so many failures and repairs have not changed that: they never will.
IDLE_FAULTS_MAX = 10_000
INFINITY = m.INFINITY


def simulate(
    trace: Trace,
    cluster: Cluster,
    policy: Policy,
    options: Options | None = None,
    tools: Tools | None = None,
    *,
    policy_name: str = "",
    cluster_name: str = "",
) -> RunRecord:
    """Replay a trace on a cluster under a policy."""
    engine = Engine(trace, cluster, policy, options or Options(), tools or Tools())
    engine.record.policy = policy_name or type(policy).__name__.lower()
    engine.record.cluster = cluster_name
    return engine.run()


class Engine:
    """One replay."""

    def __init__(
        self, trace: Trace, cluster: Cluster, policy: Policy, options: Options, tools: Tools
    ) -> None:
        self.arrivals: Sequence[TraceJob] = trace.jobs[: options.jobs or None]
        start = self.arrivals[0].submit if self.arrivals else 0.0
        options = options.beginning(start)
        self.options, self.tools, self.cluster = options, tools, cluster
        kind = cluster.nodes[0].kind if cluster.nodes else ""
        # Its own copy, because it learns: runs must not teach each other.
        speedups = deepcopy(tools.speedups) or SpeedBook(trace.kind or kind)
        self.scheduler = Scheduler(
            policy, cluster.tree(), queues=QueueTree(), speedups=speedups,
            settings=options.settings(
                learns=policy.learns
                or any(job.spec.estimate_seconds is None for job in self.arrivals)
            ),
        )  # fmt: skip
        self.world = World(options, speedups, trace, kind)
        self.world.watch_places(cluster, self.scheduler.state.topology)
        self.record = RunRecord(
            "", "", trace.name, options.seed, sum(n.devices for n in cluster.nodes),
            node_names=[n.name for n in cluster.nodes],
            node_devices=[n.devices for n in cluster.nodes],
        )  # fmt: skip
        self.world.accounts = open_accounts(cluster, options, policy)
        #: Answers that ride with the next events; jobs whose speed is to be measured before that.
        self.quiet: list[m.Event] = []
        self.changed: list[Running] = []
        self.story = Story(options.explain)
        self.waits = Waits()
        #: Whether a job was told to end for good, which is to be in the books at once.
        self.ending = False
        self.idle_faults = 0
        self.sampled_at = -INFINITY
        self.usage_gap = trace.span_seconds() / USAGE_MAX
        self.now = start
        self.step(cluster.events(self.now))
        self.step([m.QueueSet(at=self.now, queue=queue) for queue in options.queues])
        faults.plan(self.world, cluster, self.now)

    # ------------------------------------------------------------------ the loop

    def run(self) -> RunRecord:
        """Until everything has ended, or nothing will happen any more."""
        clock, record = self.tools.clock, self.record
        began = clock() if clock else 0.0
        # Nothing here refers to itself, so there is nothing for the cycle collector to find; on
        # a long trace looking for it costs a fifth of the time.
        collecting = gc.isenabled()
        gc.disable()
        try:
            self.replay()
        finally:
            if collecting:
                gc.enable()
        record.cpu_seconds = clock() - began if clock else 0.0
        return record

    def replay(self) -> None:
        """The loop itself."""
        record = self.record
        record.started = self.now
        arrived, count = 0, len(self.arrivals)
        next_arrival = self.arrivals[0].submit if count else INFINITY
        world, scheduler, until = self.world, self.scheduler, self.options.until
        told = 0
        while True:
            due = world.next_at()
            at = min(next_arrival, due, scheduler.wake_at)
            if at == INFINITY or at > until or (arrived == count and not world.jobs):
                break
            if arrived == count and self.is_stuck():
                break
            # What was due before is due now.
            self.now = at = max(at, self.now)
            batch = self.quiet
            self.quiet = []
            if due <= at:
                self.happen(at, batch)
            while next_arrival <= at:
                batch.append(self.arrive(self.arrivals[arrived]))
                arrived += 1
                next_arrival = self.arrivals[arrived].submit if arrived < count else INFINITY
            if scheduler.wake_at <= at and not batch:
                batch.append(m.Tick(at=at))
            self.step(batch)
            if self.tools.on_progress and arrived - told >= 256:
                told = arrived
                self.tools.on_progress((arrived - len(world.jobs)) / count)
        if until < INFINITY and (arrived < count or world.jobs):
            self.now = max(until, self.now)
        self.close()
        if self.tools.on_progress:
            self.tools.on_progress(1.0)

    def happen(self, at: float, batch: list[m.Event]) -> None:
        """Everything the world has in store for this moment, which is something."""
        world = self.world
        while True:
            _, what, _, _, payload = world.pop()
            if what == FINISH:
                batch.append(self.finish(payload, at))
            elif what == CRASH:
                batch.append(self.crash(payload, at))
            elif what == ACK:
                self.left(payload, at)
                batch.append(payload)
            else:
                batch.extend(faults.happen(world, what, payload, at))
            if world.next_at() > at:
                return

    def step(self, batch: list[m.Event]) -> None:
        """Let the scheduler decide, and carry out its commands until it waits for the world."""
        watch, record, scheduler = self.tools.stopwatch, self.record, self.scheduler
        while batch:
            began = watch() if watch else 0.0
            commands = scheduler.handle(batch)
            if watch:
                record.decision_seconds.append(watch() - began)
            record.events += len(batch)
            if self.options.round_seconds:
                self.waits.turn(scheduler, self.world.jobs, self.now)
            if scheduler.state.causes:
                self.waits.note(scheduler, self.world.jobs, self.story)
            batch = []
            for command in commands:
                answer = self.execute(command)
                if answer is not None:
                    batch.append(answer)
            if self.changed:
                self.quiet += [self.measure(job) for job in self.changed]
                self.changed = []
            if batch and not scheduler.state.pending and not self.ending:
                self.quiet += batch
                batch = []
            self.ending = False
        if self.now - self.sampled_at >= self.usage_gap:
            self.sample()

    def is_stuck(self) -> bool:
        """Whether nothing runs, and nothing would if all that is broken were mended."""
        if self.scheduler.wake_at < INFINITY or not self.world.idles():
            self.idle_faults = 0
            return False
        self.idle_faults += 1
        if self.idle_faults > 1:
            return self.idle_faults > IDLE_FAULTS_MAX
        return not faults.would_start(self.scheduler, self.cluster, self.world, self.quiet)

    # ------------------------------------------------------------------ what happens to jobs

    def arrive(self, job: TraceJob) -> m.Event:
        """A submission, with the truth of it kept in the world."""
        spec = job.spec
        record = JobRecord(job.id, spec.user, spec.queue, spec.service, job.devices, job.submit)
        if spec.deadline is not None:
            record.deadline = spec.deadline
        if spec.deadline_after is not None:
            record.deadline = min(record.deadline, job.submit + spec.deadline_after)
        running = self.world.add(job, record)
        self.record.jobs.append(record)
        if job.curve is not None:
            name = self.world.name_of(job.curve, spec.model)
            spec = msgspec.structs.replace(spec, model=name, batch=0)
        if self.options.speed_error:
            spec = mistaken(self.world, running, self.options)
        self.story.tell(record, job.submit, "submitted")
        return m.Submitted(at=self.now, id=job.id, spec=spec)

    def finish(self, job: Running, at: float) -> m.Event:
        """Its work is done."""
        self.world.leave(job, at)
        job.done = job.work
        return m.Exited(at=at, id=job.job.id, epoch=job.epoch)

    def crash(self, job: Running, at: float) -> m.Event:
        """It fails by its own fault; what is tried again goes on from the last checkpoint."""
        self.world.lose(job, at)
        self.world.leave(job, at)
        job.crash_at = INFINITY
        self.world.draw_crash(job, self.world.draw_later)
        job.record.restarts += 1
        self.story.tell(job.record, at, "crashed by its own fault")
        return m.Exited(at=at, id=job.job.id, epoch=job.epoch, why="failed", code=1)

    # ------------------------------------------------------------------ commands

    def execute(self, command: m.Command) -> m.Event | None:
        """Carry out one command; the answer, unless it comes later or there is none."""
        kind = type(command)
        if kind is m.Ended:
            self.ended(command)  # type: ignore[arg-type]
            return None
        job = self.world.jobs.get(command.id)
        assert job is not None, f"command for a job that is gone: {command!r}"
        if kind is m.Start:
            return self.start(job, command)  # type: ignore[arg-type]
        if kind is m.Resize:
            return self.resize(job, command)  # type: ignore[arg-type]
        if kind is m.Clock:
            self.world.set_clock(job, command.clock, self.now)  # type: ignore[attr-defined]
            return None
        return self.stop(job, command)  # type: ignore[arg-type]

    def start(self, job: Running, command: m.Start) -> m.Event | None:
        """Begin, or go on from where it was parked."""
        now, record = self.now, job.record
        cost = self.options.start_seconds + self.world.carry_seconds(job, command.place)
        if record.begin != record.begin:
            record.begin = now
        self.world.seat(job, command)
        self.waits.stop(command.id, record, now)
        if self.options.straggler_share:
            faults.draw_straggler(self.world, job)
        self.world.set_place(job, command.place, size_of(command.place), now, cost)
        record.kind = self.world.kind_at(command.place)
        self.story.tell_start(record, now, command, self.scheduler)
        if self.options.speed_error:
            self.changed.append(job)
        return self.answer(m.Started(at=now + cost, id=command.id, epoch=command.epoch), cost)

    def resize(self, job: Running, command: m.Resize) -> m.Event | None:
        """Go on with more or fewer devices; what it leaves it holds until it has left it."""
        now, cost, before = self.now, self.options.resize_seconds, job.size
        size = size_of(command.place)
        job.record.resizes += 1
        if size < before and cost > 0.0:
            self.world.pause(job, now, now + cost)
            job.shrinks_to = command.place
        else:
            self.world.set_place(job, command.place, size, now, cost)
            if self.options.speed_error:
                self.changed.append(job)
        self.story.tell_resize(job.record, now, before, command)
        answer = m.Resized(at=now + cost, id=command.id, epoch=command.epoch, step=command.step)
        return self.answer(answer, cost)

    def stop(self, job: Running, command: m.Stop) -> m.Event | None:
        """Leave all devices, which it holds until it has left; a planned stop loses nothing."""
        now, cost, record = self.now, self.options.park_seconds, job.record
        lost = faults.is_lost(self.world, job)
        moving = bool(self.scheduler.state.jobs[command.id].place)
        if lost:
            faults.lose(self.world, job, now)
            record.restarts += 1
        elif moving:
            record.migrations += 1
        elif command.park:
            record.preemptions += 1
        if cost > 0.0:
            self.world.pause(job, now, INFINITY)
            job.shrinks_to = ()
        else:
            self.world.leave(job, now)
            self.waits.begin(command.id, now)
        if not command.park:
            self.ending = True
        word = "moved" if moving else "parked" if command.park else "stopped"
        self.story.tell(record, now, word)
        answer = m.Exited(at=now + cost, id=command.id, epoch=command.epoch, why="stopped")
        return self.answer(answer, cost)

    def left(self, event: m.Event, at: float) -> None:
        """What it was told to leave it has left."""
        if type(event) is m.Exited:
            self.world.leave(self.world.jobs[event.id], at)
            self.waits.begin(event.id, at)
        elif type(event) is m.Resized:
            job = self.world.jobs.get(event.id)
            if job is not None and job.shrinks_to and job.epoch == event.epoch:
                self.world.set_place(job, job.shrinks_to, size_of(job.shrinks_to), at, 0.0)
                job.shrinks_to = ()
                if self.options.speed_error:
                    self.quiet.append(self.measure(job))

    def answer(self, event: m.Event, cost: float) -> m.Event | None:
        """The answer now, or on the heap for later."""
        if cost <= 0.0:
            return event
        self.world.push(event.at, ACK, event)
        return None

    def measure(self, job: Running) -> m.Event:
        """What a job reports of its progress, in the scheduler's unit of work."""
        share = job.believed / job.work
        return m.Progressed(
            at=self.now, id=job.job.id, epoch=job.epoch, left=(job.work - job.done) * share,
            rate=job.rate * share if job.rate else None, size=job.size,
        )  # fmt: skip

    def ended(self, command: m.Ended) -> None:
        """Close the record."""
        job = self.world.jobs.pop(command.id, None)
        if job is None:
            return
        record = job.record
        job.version += 1
        if job.size:
            self.world.leave(job, self.now)
        self.waits.stop(command.id, record, self.now)
        record.end = self.now
        record.state = command.state
        if command.state == "rejected":
            record.admitted = False
        if command.state == "failed":
            record.restarts -= 1
        reason = f": {command.reason}" if command.reason else ""
        self.story.tell(record, self.now, f"{command.state}{reason}")

    # ------------------------------------------------------------------ the records

    def sample(self) -> None:
        """How full the cluster is; thinned to a bounded number of points."""
        usage, topology = self.record.usage, self.scheduler.state.topology
        self.sampled_at = self.now
        pools = range(len(topology.kinds))
        free, usable = sum(map(topology.free, pools)), sum(map(topology.usable, pools))
        largest = max(map(topology.largest_free, pools), default=0)
        usage.append((self.now, usable - free, free, largest))
        if len(usage) > USAGE_MAX:
            del usage[::2]
            self.usage_gap = (usage[-1][0] - usage[0][0]) / USAGE_MAX * 2

    def close(self) -> None:
        """What is still unfinished stays so, with its wait up to now."""
        self.record.ended = self.now
        for id, job in self.world.jobs.items():
            self.world.advance(job, self.now)
            if not job.size:
                self.waits.stop(id, job.record, self.now)
            self.story.tell_last(job.record, self.now, id, self.scheduler)
        accounts = self.world.accounts
        if accounts is not None:
            accounts.close(self.now)
            self.record.windows, self.record.accounted = accounts.windows(), accounts.known


def size_of(place: m.Place) -> int:
    """Devices of a place."""
    if len(place) == 1:
        return len(place[0][1])
    return sum([len(devices) for _, devices in place])


def encode_commands(commands: Sequence[m.Command]) -> bytes:
    """For comparing runs byte for byte."""
    return msgspec.json.encode(commands)

"""What is true of running jobs: their progress, what costs them time, and when they end."""

from __future__ import annotations

import heapq
from typing import Any, Final

import numpy as np

from bough.core.cluster import Cluster
from bough.core.known_models import state_bytes
from bough.core.model import INFINITY, Place, Start
from bough.core.speedup import Curve, SpeedBook
from bough.core.topology import Topology
from bough.errors import InputError
from bough.sim.accounts import Accounts, true_pace
from bough.sim.options import Options
from bough.sim.record import JobRecord
from bough.sim.trace import Trace, TraceJob

#: Kinds of future events on the heap, in the order in which simultaneous ones happen.
FINISH, CRASH, ACK, NODE_DOWN, NODE_UP, DEVICE_DOWN, DEVICE_UP = range(7)


class Running:
    """The truth about one job."""

    __slots__ = (
        "at", "at_risk", "believed", "clock", "crash_at", "curve", "done", "epoch", "job", "place",
        "price", "rate", "ready", "record", "saved", "saved_at", "shrinks_to", "sits", "size",
        "slow", "version", "was_on", "watts", "work",
    )  # fmt: skip

    def __init__(self, job: TraceJob, record: JobRecord, curve: Curve, work: float) -> None:
        self.job = job
        self.record = record
        self.curve = curve
        #: Work in all, done so far, and safe from failures.
        self.work = work
        self.done = 0.0
        self.saved = 0.0
        #: What the scheduler believes the work to be.
        self.believed = work
        self.crash_at = job.fails_at * work if job.fails_at is not None else INFINITY
        self.epoch = 0
        self.place: Place = ()
        self.size = 0
        #: Where it goes on once it has left the rest of its place; empty: it keeps all of it.
        self.shrinks_to: Place = ()
        #: Progress is at `rate` since `at`, or since `ready` if that is later.
        self.rate = 0.0
        self.at = -INFINITY
        self.ready = -INFINITY
        #: The last checkpoint, and the device-seconds of the work done since.
        self.saved_at = -INFINITY
        self.at_risk = 0.0
        self.slow = 1.0
        #: The part of their full clock at which its devices go; watts and money that they draw.
        self.clock = 1.0
        #: Nodes of its last place, which have its state.
        self.was_on: frozenset[str] = frozenset()
        #: Nodes on which workers of a gang sit, those without devices too.
        self.sits: frozenset[str] = frozenset()
        self.watts = self.price = 0.0
        #: Counts changes of rate; older finishes on the heap are void.
        self.version = 0


class World:
    """All running jobs, and the heap of what will happen to them."""

    def __init__(self, options: Options, speedups: SpeedBook, trace: Trace, kind: str) -> None:
        self.options = options
        self.speedups = speedups
        self.kind = trace.kind or kind
        # Two streams: what jobs bring with them is drawn in order of submission, and so the same
        # under every policy; what happens to them later depends on the policy.
        self.draw: Final = np.random.default_rng([options.seed, 1])
        self.draw_later: Final = np.random.default_rng([options.seed, 4])
        failures = options.failures
        often = (
            failures.node_mtbf_seconds, failures.device_mtbf_seconds, failures.job_mtbf_seconds
        )  # fmt: skip
        #: Whether work can be lost at all, so that checkpoints matter.
        self.fragile = min(often) < INFINITY or any(j.fails_at is not None for j in trace.jobs)
        self.heap: list[tuple[float, int, int, int, Any]] = []
        self.counter = 0
        self.jobs: dict[str, Running] = {}
        self.broken: set[Any] = set()
        #: Nodes that were taken away, rather than broken.
        self.evicted: set[str] = set()
        #: What jobs draw and cost; None where nobody asks.
        self.accounts: Accounts | None = None
        self._names: dict[int, str] = {}
        #: What jobs could do alone, by what they accept and their curve, which is kept with it.
        self._ideals: dict[Any, tuple[float, float, Curve]] = {}

    def watch_places(self, cluster: Cluster, topology: Topology) -> None:
        """Where nodes are and what they are, for speeds that depend on it."""
        self.topology = topology
        kinds = {n.name: n.kind for n in cluster.nodes}
        self.kind_of = kinds if set(kinds.values()) != {self.kind} else {}
        self.nodes = {n.name: n for n in cluster.nodes}
        #: Nodes that lie behind a slow link, and its bytes per second.
        self.links = {n.name: n.terms.link for n in cluster.nodes if n.terms.link}
        self.fragile |= any(n.terms.evictions_per_hour for n in cluster.nodes)
        self.node_devices = {n.name: n.devices for n in cluster.nodes}
        self.widest = max(self.node_devices.values(), default=1)
        self.jobs_on: dict[str, dict[str, int]] = {n.name: {} for n in cluster.nodes}

    def seat(self, job: Running, command: Start) -> None:
        """A new epoch begins, at full clock."""
        job.epoch, job.clock = command.epoch, 1.0
        seats = command.seats
        job.sits = frozenset([node for _, node, _ in seats]) if seats else frozenset()

    def carry_seconds(self, job: Running, place: Place) -> float:
        """How long its state is on its way to where it starts, over the slowest link there."""
        if not self.links:
            return 0.0
        before, job.was_on = job.was_on, frozenset(name for name, _ in place)
        links = [self.links[name] for name in before | job.was_on if name in self.links]
        if not links or before == job.was_on:
            return 0.0
        return state_bytes(job.job.spec.model) / min(links)

    def curve_at(self, job: Running) -> Curve:
        """Its curve on the kind of its place."""
        if self.kind_of:
            kind = self.kind_of[job.place[0][0]]
            if kind != self.kind:
                return self.on_other_kind(job, kind)
        return job.curve

    def rate(self, job: Running, curve: Curve) -> float:
        """Work per second on the present place."""
        rate = curve.at(job.size) * job.slow
        if job.clock != 1.0:
            rate *= true_pace(job, curve)
        if len(job.place) > 1 and curve.span_factor:
            rate *= curve.spread(self.levels_too_wide(job))
        if self.options.interference:
            rate *= 1.0 - self.options.interference * self.crowding(job)
        return rate

    def kind_at(self, place: Place) -> str:
        """The kind of device there."""
        return self.kind_of.get(place[0][0], self.kind)

    def on_other_kind(self, job: Running, kind: str) -> Curve:
        """The job's curve on a kind it was not measured on."""
        spec = job.job.spec
        if job.job.curve is None and not self.options.speed_error:
            return self.speedups.curve(spec.model, spec.batch, kind)
        return job.curve.scaled(self.speedups.ratio(kind, self.kind))

    def levels_too_wide(self, job: Running) -> int:
        """Levels its place spans beyond what so many devices need."""
        topology = self.topology
        if len(topology.levels) == 1:
            return int(job.size <= self.widest)
        span = topology.span(topology.slots(job.place))
        needed = topology.spans.index("node") + (job.size > self.widest)
        return max(span - needed, 0)

    def crowding(self, job: Running) -> float:
        """Mean share of its nodes' devices that other jobs hold."""
        shares = []
        for node, devices in job.place:
            others = sum(self.jobs_on[node].values()) - len(devices)
            shares.append(max(others, 0) / self.node_devices[node])
        return sum(shares) / len(shares) if shares else 0.0

    def crowd(self, job: Running, before: Place, after: Place, now: float) -> None:
        """Neighbours on the nodes that were left or joined go on at another speed."""
        id = job.job.id
        for node, _ in before:
            self.jobs_on[node].pop(id, None)
        for node, devices in after:
            self.jobs_on[node][id] = len(devices)
        nodes = {node for node, _ in before + after}
        for other in sorted({i for node in nodes for i in self.jobs_on[node]} - {id}):
            neighbour = self.jobs[other]
            self.advance(neighbour, now)
            self.set_rate(neighbour, now)

    def push(self, at: float, what: int, payload: Any, version: int = 0) -> None:
        """Something will happen."""
        self.counter += 1
        heapq.heappush(self.heap, (at, what, self.counter, version, payload))

    def next_at(self) -> float:
        """When the next thing happens that is still to happen."""
        heap = self.heap
        while heap:
            at, what, _, version, payload = heap[0]
            if what <= CRASH and payload.version != version:
                heapq.heappop(heap)
            else:
                return at
        return float("inf")

    def pop(self) -> tuple[float, int, int, int, Any]:
        """What happens next; call next_at first."""
        return heapq.heappop(self.heap)

    def idles(self) -> bool:
        """Whether no job holds anything, so that only what breaks or is mended is to come."""
        heap = self.heap
        return bool(heap) and heap[0][1] > ACK and not any(j.size for j in self.jobs.values())

    # ------------------------------------------------------------------ jobs

    def add(self, job: TraceJob, record: JobRecord) -> Running:
        """The truth of a job that was submitted."""
        spec = job.spec
        curve = job.curve or self.speedups.curve(spec.model, spec.batch, self.kind)
        work = job.seconds * curve.at(job.devices)
        if work <= 0:
            raise InputError(
                f"job {job.id} ran on {job.devices} devices in the trace, "
                f"but its speed-up curve is 0 there"
            )
        running = self.jobs[job.id] = Running(job, record, curve, work)
        record.ideal_seconds = job.seconds
        self.judge(running)
        self.draw_crash(running, self.draw)
        return running

    def draw_crash(self, job: Running, draw: np.random.Generator) -> None:
        """The work at which it crashes next: after so much device time at the trace's size."""
        mean = self.options.failures.job_mtbf_seconds
        if mean < INFINITY:
            per_device_second = job.work / (job.job.seconds * job.job.devices)
            crash_at = job.done + float(draw.exponential(mean)) * per_device_second
            job.crash_at = min(job.crash_at, crash_at)

    def judge(self, job: Running) -> None:
        """Note how well the job could do alone, on the best kind it accepts, by its true curve."""
        spec = job.job.spec
        # The curve is kept: bent ones die with their jobs, and an id may then be another's.
        key = (spec.devices, spec.roles, spec.kinds, id(job.curve))
        ideal = self._ideals.get(key)
        if ideal is None:
            there = set(self.kind_of.values()) or {self.kind}
            kinds = [k for k in there if not spec.kinds or k in spec.kinds] or [self.kind]
            curves = [job.curve if k == self.kind else self.on_other_kind(job, k) for k in kinds]
            sizes = [(s, c.at(s)) for c in curves for s in spec.sizes() if c.at(s) > 0]
            if not sizes:
                raise InputError(
                    f"job {job.job.id} cannot run on any of its sizes {list(spec.sizes())}: "
                    f"its speed-up curve is 0 there"
                )
            fastest, cheapest = max(v for _, v in sizes), min(s / v for s, v in sizes)
            ideal = self._ideals[key] = (1 / fastest, cheapest, job.curve)
        job.record.fastest_seconds = job.work * ideal[0]
        job.record.least_device_seconds = job.work * ideal[1]

    def name_of(self, curve: Curve, model: str) -> str:
        """The name under which the scheduler finds a curve that came with the trace."""
        name = self._names.get(id(curve))
        if name is None:
            name = self._names[id(curve)] = f"curve {len(self._names)} of the trace"
            self.speedups.add(name, 0, self.kind, curve)
            self.speedups.stand_for(name, model)
        return name

    def advance(self, job: Running, now: float) -> None:
        """Bring progress up to now."""
        if job.rate:
            begin = job.ready if job.ready > job.at else job.at
            if now > begin:
                job.done += job.rate * (now - begin)
                if self.fragile:
                    self.save(job, begin, now)
        if job.size:
            job.record.device_seconds += job.size * (now - job.at)
            if self.accounts is not None:
                self.accounts.used(job, now)
        job.at = now

    def save(self, job: Running, begin: float, now: float) -> None:
        """Note its last checkpoint; between begin and now it made progress at its present rate."""
        every, since = self.options.checkpoint_seconds, now - job.saved_at
        if since < every:
            job.at_risk += job.size * (now - begin)
            return
        since = since % every if every > 0 else 0.0
        unsaved = min(since, now - begin)
        job.saved_at = now - since
        job.saved = job.done - job.rate * unsaved
        job.at_risk = job.size * unsaved

    def set_place(self, job: Running, place: Place, size: int, now: float, cost: float) -> None:
        """From now on it holds these devices, and makes progress after the cost."""
        self.advance(job, now)
        before = job.place
        job.place, job.size = place, size
        job.ready = max(now + cost, job.ready)
        if not before:
            job.saved_at, job.at_risk = job.ready, 0.0
        record = job.record
        record.sizes.append((now, size))
        if self.options.detail:
            record.places.append((now, place))
        if self.options.interference:
            self.crowd(job, before, place, now)
        if self.accounts is not None:
            self.accounts.move(job, before, place, now)
        self.set_rate(job, now)

    def set_clock(self, job: Running, clock: float, now: float) -> None:
        """From now on its devices go at this part of their clock."""
        self.advance(job, now)
        job.clock = clock
        self.set_rate(job, now)

    def set_rate(self, job: Running, now: float) -> None:
        """Renew the speed and with it the end."""
        job.version += 1
        if not job.size:
            job.rate = 0.0
            return
        curve = self.curve_at(job)
        if self.accounts is not None:
            self.accounts.rate(job, curve, now)
        job.rate = rate = self.rate(job, curve)
        target, what = job.work, FINISH
        if job.crash_at <= target:
            target, what = job.crash_at, CRASH
        if not rate:
            return
        begin = job.ready if job.ready > now else now
        left = target - job.done
        self.counter += 1
        heapq.heappush(
            self.heap,
            (begin + (left / rate if left > 0 else 0.0), what, self.counter, job.version, job),
        )

    def lose(self, job: Running, now: float) -> None:
        """What was done since the last checkpoint is lost."""
        self.advance(job, now)
        job.record.lost_device_seconds += job.at_risk
        job.done, job.at_risk = job.saved, 0.0

    def pause(self, job: Running, now: float, until: float) -> None:
        """It makes no progress until then, but holds what it holds."""
        self.advance(job, now)
        job.ready = max(until, job.ready)
        self.set_rate(job, now)

    def leave(self, job: Running, now: float) -> None:
        """It holds nothing; its state is kept."""
        self.advance(job, now)
        if self.options.interference:
            self.crowd(job, job.place, (), now)
        place, job.place, job.size, job.rate = job.place, (), 0, 0.0
        if self.accounts is not None:
            self.accounts.move(job, place, (), now)
            self.accounts.rate(job, job.curve, now)
        job.version += 1
        job.saved, job.ready, job.shrinks_to = job.done, -INFINITY, ()
        job.record.sizes.append((now, 0))
        if self.options.detail:
            job.record.places.append((now, ()))

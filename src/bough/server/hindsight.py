"""What a journal tells of how things stood at its end, and of all that had come until then."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from bough.core.cluster import Cluster
from bough.core.expected import Arrival, Past
from bough.core.model import (
    INFINITY,
    Ended,
    Exited,
    Node,
    NodeUp,
    Place,
    Resize,
    Resized,
    Start,
    Started,
    Submitted,
)
from bough.core.scheduler import Scheduler
from bough.errors import InputError
from bough.server.journal import Journal, steps_of
from bough.server.replay import Replay
from bough.server.rows import Conditions, Step
from bough.sim.options import Options, Tools
from bough.sim.record import JobRecord, RunRecord
from bough.sim.runs import Setting
from bough.sim.trace import Trace, TraceJob

#: A job that never ran and has no estimate is taken for so long.
LEAST_SECONDS: Final = 1.0


class Standing(NamedTuple):
    """How things stood."""

    at: float
    scheduler: Scheduler
    past: Past


class Tale(NamedTuple):
    """All that came, as a trace on the cluster that there was; and what became of it."""

    setting: Setting
    policy: str
    really: RunRecord


def standing(journal: Journal) -> Standing:
    """Everything that happened, decided once more up to the end."""
    return _standing(journal)[0]


def retold(journal: Journal) -> Tale:
    """The jobs of a journal as a trace: who came when, and how much work it turned out to be."""
    there, watch, conditions = _standing(journal)
    trace, really = _trace(there, watch)
    nodes = tuple(watch.nodes.values())
    if not nodes or not trace.jobs:
        raise InputError("no job was submitted in the time that the journal tells of")
    cluster = Cluster(
        levels=conditions.levels, nodes=nodes, bandwidth=conditions.bandwidth,
        inner=conditions.inner,
    )  # fmt: skip
    settings, tree = conditions.settings, there.scheduler.state.queues
    options = Options(
        queues=() if tree.trivial else tuple(tree.get(i) for i in range(len(tree.names))),
        locality_seconds=settings.locality_seconds, damp_seconds=settings.damp_seconds,
        moving_share=settings.moving_share,
    )  # fmt: skip
    setting = Setting(
        trace=trace, cluster=cluster, cluster_name="here", options=options,
        tools=Tools(speedups=there.scheduler.state.speedups),
    )  # fmt: skip
    devices = cluster.devices
    record = RunRecord("really", "here", "journal", 0, devices, trace.jobs[0].submit, there.at)
    record.jobs = really
    return Tale(setting, conditions.policy, record)


def _standing(journal: Journal) -> tuple[Standing, Watch, Conditions]:
    header = journal.header
    if header.begins_after and header.snapshot is None:
        raise InputError("its beginning is gone, and no snapshot tells how things stood then")
    held = header.snapshot
    start = None if held is None else (held.seq, base64.b64decode(held.data))
    replay = Replay([(each.seq, each.conditions) for each in header.conditions], start)
    watch = Watch()
    for book in replay.scheduler.state.nodes.values():
        watch.nodes[book.node.name] = book.node
    replay.run(watch.all(steps_of(journal.entries)), to_the_end=True)
    at = max(watch.at, replay.scheduler.state.now)
    arrivals = [Arrival(life.submitted, life.spec) for life in watch.lives.values()]
    begin = arrivals[0].at if arrivals else at
    there = Standing(at, replay.scheduler, Past(begin, at, arrivals))
    return there, watch, header.conditions[-1].conditions


class Life:
    """What became of one job."""

    def __init__(self, event: Submitted) -> None:
        self.id, self.submitted, self.spec = event.id, event.at, event.spec
        #: Devices it was told to hold, and held: from when until when, how many.
        self.told: dict[int, int] = {}
        self.size, self.since = 0, event.at
        self.held: list[tuple[float, float, int]] = []
        self.begun = INFINITY
        self.ended = INFINITY
        self.state = ""

    def holds(self, size: int, at: float) -> None:
        """From now on so many."""
        if self.size:
            self.held.append((self.since, at, self.size))
        self.size, self.since = size, at


class Watch:
    """Follows the lives of all jobs through the steps of a journal."""

    def __init__(self) -> None:
        self.lives: dict[str, Life] = {}
        self.nodes: dict[str, Node] = {}
        self.at = 0.0

    def all(self, steps: Iterable[Step]) -> Iterator[Step]:
        """The same steps, each noted."""
        for step in steps:
            self.at = max(self.at, step.at)
            for event in step.events:
                if isinstance(event, Submitted):
                    self.lives[event.id] = Life(event)
                elif isinstance(event, NodeUp):
                    self.nodes[event.node.name] = event.node
                elif isinstance(event, Started | Resized | Exited) and event.id in self.lives:
                    self.happened(self.lives[event.id], event)
            for command in step.commands:
                life = self.lives.get(command.id)
                if life is not None and isinstance(command, Start | Resize):
                    life.told[command.epoch] = _count(command.place)
                elif life is not None and isinstance(command, Ended):
                    life.holds(0, step.at)
                    life.ended, life.state = step.at, command.state
            yield step

    def happened(self, life: Life, event: Started | Resized | Exited) -> None:
        """It began, changed its size, or left."""
        if isinstance(event, Exited):
            life.holds(0, event.at)
            return
        life.begun = min(life.begun, event.at)
        life.holds(life.told.get(event.epoch, 0), event.at)


def _trace(there: Standing, watch: Watch) -> tuple[Trace, list[JobRecord]]:
    jobs, records = [], []
    for life in watch.lives.values():
        life.holds(life.size, there.at)
        job = _job(there, life)
        jobs.append(job)
        records.append(_record(life, job))
    jobs.sort(key=lambda job: job.submit)
    kind = there.scheduler.state.speedups.reference
    return Trace(name="journal", jobs=tuple(jobs), kind=kind), records


def _job(there: Standing, life: Life) -> TraceJob:
    """With as much work as it did, and has left to do by what is believed."""
    state, spec = there.scheduler.state, life.spec
    pool = (state.pools_for(spec) or (0,))[0]
    curve = state.curve_for(spec, pool)
    done = sum((until - since) * curve.at(size) for since, until, size in life.held)
    size = life.held[-1][2] if life.held else spec.estimate_devices or spec.sizes()[-1]
    live = state.jobs.get(life.id)
    if live is not None:
        state.table.now = there.at
        done += float(state.table.left_or_guess()[state.table.row(live)])
    elif not done and spec.estimate_seconds is not None:
        done = spec.estimate_seconds * curve.at(size)
    seconds = max(done / (curve.at(size) or 1.0), LEAST_SECONDS)
    # What it comes after is over here at another time than there; what policies may know is known.
    spec = msgspec.structs.replace(spec, after=())
    return TraceJob(id=life.id, submit=life.submitted, spec=spec, seconds=seconds, devices=size)


def _record(life: Life, job: TraceJob) -> JobRecord:
    """What really became of it."""
    spec = life.spec
    found = JobRecord(life.id, spec.user, spec.queue, spec.service, job.devices, job.submit)
    found.ideal_seconds = job.seconds
    if life.begun < INFINITY:
        found.begin = life.begun
    if life.ended < INFINITY:
        found.end, found.state = life.ended, life.state
    if spec.deadline is not None:
        found.deadline = spec.deadline
    if spec.deadline_after is not None:
        found.deadline = min(found.deadline, job.submit + spec.deadline_after)
    found.device_seconds = sum((until - since) * size for since, until, size in life.held)
    return found


def _count(place: Place) -> int:
    return sum(len(devices) for _, devices in place)

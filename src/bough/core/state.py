"""What the scheduler knows: nodes, queues, live jobs and the books kept on each of them."""

from __future__ import annotations

import heapq
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from bough.core.classes import ClassTable
from bough.core.fitting import OnlineFit
from bough.core.gangs import Gang, RoleAsk
from bough.core.jobs import FloatColumn, IntColumn, Job, Jobs, JobTable, Seats, Slots
from bough.core.meter import Meter
from bough.core.model import INFINITY, Command, JobSpec, Node
from bough.core.past import Farewells
from bough.core.places import merge
from bough.core.queues import QueueTree
from bough.core.reason import BUSY
from bough.core.recent import account
from bough.core.speedup import Curve, SpeedBook
from bough.core.supply import Supply
from bough.core.topology import Topology

INTS: Final = {name: c.row for name, c in vars(Jobs).items() if isinstance(c, IntColumn)}
FLOATS: Final = {name: c.row for name, c in vars(Jobs).items() if isinstance(c, FloatColumn)}
SIZE, CLS, LO, HI, MIN, MAX, MUST = (
    INTS[n] for n in ("size", "cls", "lo", "hi", "min", "max", "must")
)
POOL, WISH, READY, CAUSE, QUEUE, PRIORITY = (
    INTS[n] for n in ("pool", "wish", "ready", "cause", "queue", "priority")
)
SINCE, BEGUN, RUN_SINCE, ATTAINED = (
    FLOATS[n] for n in ("since", "begun", "run_since", "attained_until")
)
LEFT, RATE, RAN, WISH_SPEED, DONE = (
    FLOATS[n] for n in ("left_at", "rate", "ran_until", "wish_speed", "done_until")
)
DEADLINE, MAX_RUN = (FLOATS[n] for n in ("deadline", "max_run"))
CHANGES, GUARANTEED, MEASURED = (INTS[n] for n in ("changes", "guaranteed", "measured"))
NAN = float("nan")
#: Speed of a job that, as far as we know, cannot run at any of its sizes.
TINY = 1e-9


class NodeBook:
    """A node as it was announced, and what has befallen it since."""

    __slots__ = ("down", "drained", "node", "unhealthy")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.down = False
        self.drained = False
        #: Devices that cannot be used, and in words why, if that was said.
        self.unhealthy: dict[int, str] = {}


@dataclass(slots=True)
class State:
    """Everything the scheduler decides from; changed only through `Scheduler.handle`."""

    topology: Topology
    queues: QueueTree
    speedups: SpeedBook
    now: float = 0.0
    #: The same tree with nothing running on it: what could ever be placed.
    empty: Topology = field(init=False)
    classes: ClassTable = field(default_factory=ClassTable)
    #: What was asked of the speed-ups before, and the class that came of it.
    known_classes: dict[Any, int] = field(default_factory=dict)
    table: JobTable = field(default_factory=JobTable)
    #: Corrections of the curves of jobs that reported their rates, by serial number.
    fits: dict[int, OnlineFit] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    nodes: dict[str, NodeBook] = field(default_factory=dict)
    #: How jobs ended, for those that depend on them.
    ended: dict[str, str] = field(default_factory=dict)
    #: What is to be said of those that ended otherwise than done.
    farewells: Farewells = field(default_factory=Farewells)
    #: job id -> jobs that wait for its end.
    dependents: dict[str, set[str]] = field(default_factory=dict)
    users: dict[str, int] = field(default_factory=dict)
    next_serial: int = 0
    #: Devices told to be left but perhaps not left yet: node index -> bit mask.
    leaving: dict[int, int] = field(default_factory=dict)
    #: Jobs whose place differs from what their body was told, in the order they became so.
    pending: dict[int, Job] = field(default_factory=dict)
    #: Rows that may not run now (held, dependencies, too big): how many.
    unready: int = 0
    #: Rows bound by min_run_seconds or damping: (until, serial), and how many cannot be parked.
    locks: list[tuple[float, int]] = field(default_factory=list)
    musts: int = 0
    #: Ends of maximum run times: (when, serial, epoch).
    limits: list[tuple[float, int, int]] = field(default_factory=list)
    #: Ends of waits of jobs that failed: (when, serial); first and longest wait (0: none).
    backoffs: list[tuple[float, int]] = field(default_factory=list)
    backoff_seconds: float = 0.0
    backoff_max_seconds: float = INFINITY
    #: Rows with a priority other than 0.
    priorities: int = 0
    #: Whether ends of jobs are to teach how much work such jobs need.
    learns: bool = True
    #: Whether all jobs that may run have all they want (content.py), and who came since.
    content: bool = False
    fresh: list[Job] = field(default_factory=list)
    #: Whether something happened that may change the plan.
    replan: bool = False
    #: When plans are made next, where they are made in rounds.
    round_at: float = 0.0
    #: Commands of the present step, in order.
    out: list[Command] = field(default_factory=list)
    #: (job id, when, cause code) for every change of cause since it was last emptied.
    causes: list[tuple[str, float, int]] = field(default_factory=list)
    #: (queue, pool) -> devices it was entitled to when the present plan was made.
    entitled: dict[tuple[int, int], int] = field(default_factory=dict)
    #: Whether some row waits for another cause than that others are served first.
    special_causes: bool = False
    #: Why the last plan was refused; empty when it was good.
    refused: str = ""
    #: Whether a job that waited long enough accepts to be scattered.
    locality_relaxes: bool = True
    #: Elastic jobs are not grown again within this time of a change of size.
    damp_seconds: float = 0.0
    #: Nor within so many times the seconds that the change cost them.
    calm_times: float = 0.0
    #: Where power comes from, what was used of its budgets, and jobs (serials) at lower clocks.
    supply: Supply | None = None
    meter: Meter | None = None
    slowed: set[int] = field(default_factory=set)
    #: Half-life of the seconds that jobs are known to have run on each kind; 0: not counted.
    memory_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.empty = deepcopy(self.topology)

    # ------------------------------------------------------------------ rows

    def set_size(self, row: int, size: int) -> None:
        """Close the books on the present size and open them on the new one."""
        table, now = self.table, self.now
        wi, wf = table.wi, table.wf
        old = int(wi[SIZE, row])
        elapsed = now - float(wf[SINCE, row])
        if elapsed and old and self.table.items[row].held:
            wf[ATTAINED, row] += old * elapsed
            wf[RAN, row] += elapsed
            done = float(wf[RATE, row]) * elapsed
            wf[DONE, row] += done
            left = float(wf[LEFT, row]) - done
            wf[LEFT, row] = left if left > 0.0 else 0.0
        if self.memory_seconds:
            self.account(row)
        if size and size != old:
            wi[CHANGES, row] += 1
        wf[SINCE, row] = now
        wi[SIZE, row] = size
        wf[RATE, row] = self.classes.speed(int(wi[CLS, row]), size)

    def account(self, row: int) -> None:
        """Count up to now on which kind it ran."""
        wi, job = self.table.wi, self.table.items[row]
        pool = int(wi[POOL, row]) if wi[SIZE, row] and job.held else None
        account(job, pool, self.now, self.memory_seconds)

    def set_ready(self, row: int, ready: bool, cause: int = BUSY) -> None:
        """Let the job run, or keep it from running for a cause."""
        wi = self.table.wi
        if bool(wi[READY, row]) != ready:
            wi[READY, row] = ready
            self.unready += -1 if ready else 1
        self.set_cause(row, cause)

    def set_cause(self, row: int, cause: int) -> None:
        """Note why it waits from now on."""
        wi = self.table.wi
        if wi[CAUSE, row] != cause:
            wi[CAUSE, row] = cause
            self.causes.append((self.table.items[row].id, self.now, cause))

    def set_bounds(self, row: int, job: Job) -> None:
        """lo, hi and must from what the job allows at this moment."""
        wi, wf = self.table.wi, self.table.wf
        lo, hi, must = int(wi[MIN, row]), int(wi[MAX, row]), 0
        size = int(wi[SIZE, row])
        if size and not job.ends_as:
            spec = job.spec
            calm = float(wf[RUN_SINCE, row]) + spec.min_run_seconds
            damped = float(wf[SINCE, row])
            if lo < hi:
                damped += max(self.damp_seconds, job.change_seconds() * self.calm_times)
            if not spec.preemptible or calm > self.now:
                lo, must = size, 1
                if not spec.resize_in_place:
                    hi = size
            if damped > self.now:
                hi = size
            until = min(t for t in (calm, damped, INFINITY) if t > self.now)
            if until < INFINITY:
                heapq.heappush(self.locks, (until, job.serial))
        self.musts += must - int(wi[MUST, row])
        wi[LO, row], wi[HI, row], wi[MUST, row] = lo, hi, must

    def set_most(self, row: int, job: Job, most: int) -> None:
        """Let a job have no more than this, because there is no more for it."""
        wi = self.table.wi
        if wi[MAX, row] != most:
            most = max((s for s in self.classes.sizes(int(wi[CLS, row])) if s <= most), default=0)
            if most in (0, int(wi[MAX, row])):
                return
            wi[MAX, row] = wi[WISH, row] = most
            self.table.wf[WISH_SPEED, row] = self.classes.speed(int(wi[CLS, row]), most)
            self.set_bounds(row, job)

    def set_pool(self, row: int, job: Job, pool: int) -> None:
        """Let a job be planned for on another kind of device, with what is believed there."""
        wi = self.table.wi
        if self.memory_seconds:
            self.account(row)
        self.forget(row, job)
        cls = self.class_for(job.spec, pool)
        sizes = self.classes.sizes(cls)
        wi[POOL, row], wi[CLS, row] = pool, cls
        wi[MIN, row], wi[MAX, row], wi[WISH, row] = sizes[0], sizes[-1], sizes[-1]
        self.table.wf[WISH_SPEED, row] = self.classes.speed(cls, sizes[-1])
        self.set_bounds(row, job)
        self.set_most(row, job, self.most_on(job, pool) or sizes[-1])

    def forget(self, row: int, job: Job) -> None:
        """Drop what a job's own rates have taught: it served only itself, and only there."""
        if self.fits and self.fits.pop(job.serial, None) is not None:
            self.classes.release(int(self.table.wi[CLS, row]))

    def by_serial(self, serial: int) -> int | None:
        """Row of a serial number, None when that job is gone."""
        serials = self.table.serials
        row = int(np.searchsorted(serials, serial)) if serials else 0
        return row if row < len(serials) and serials[row] == serial else None

    def started(self, job: Job) -> None:
        """Open the books of a new epoch."""
        row, wf, now = self.table.row(job), self.table.wf, self.now
        # From the grant until now others were still on the devices.
        wf[RUN_SINCE, row] = wf[SINCE, row] = now
        if wf[BEGUN, row] != wf[BEGUN, row]:
            wf[BEGUN, row] = now
        if job.spec.max_run_seconds < INFINITY:
            end = now + job.spec.max_run_seconds - float(wf[RAN, row])
            heapq.heappush(self.limits, (end, job.serial, job.epoch))
        if job.spec.min_run_seconds:
            self.set_bounds(row, job)

    # ------------------------------------------------------------------ curves and pools

    def pools_for(self, spec: JobSpec) -> tuple[int, ...]:
        """Pools the job accepts and, as far as is known, can run on, best first."""
        kinds = self.topology.kinds
        if not spec.kinds:
            found = tuple(range(len(kinds)))
        else:
            found = tuple(kinds.index(k) for k in spec.kinds if k in kinds)
        if len(found) > 1 and spec.model:
            largest = spec.sizes()[-1]
            found = tuple(p for p in found if self.curve_for(spec, p).at(largest) > 0) or found
        return found

    def curve_for(self, spec: JobSpec, pool: int) -> Curve:
        """What is believed of such jobs on that pool before any of them reported a rate."""
        kinds = self.topology.kinds
        return self.speedups.curve(spec.model, spec.batch, kinds[pool] if pool < len(kinds) else "")

    def class_for(self, spec: JobSpec, pool: int) -> int:
        """The class of the job on that pool: its sizes and how fast we believe it runs on them."""
        kinds = self.topology.kinds
        kind = kinds[pool] if pool < len(kinds) else ""
        key = (spec.devices, spec.roles, spec.model, spec.batch, kind)
        found = self.known_classes.get(key)
        if found is None:
            curve = self.curve_for(spec, pool)
            sizes = tuple(s for s in spec.sizes() if curve.at(s) > 0.0) or spec.sizes()[:1]
            found = self.classes.number(sizes, tuple(curve.at(s) or TINY for s in sizes))
            self.known_classes[key] = found
        return found

    # ------------------------------------------------------------------ devices of a job

    def take(self, job: Job, place: Slots, seats: Seats = ()) -> None:
        """Hold a place for a job that has none."""
        spec = job.spec
        job.place, job.seats = place, seats
        if spec.roles:
            self.topology.take_gang(Gang(place, seats), asks(spec, 0))
        else:
            self.topology.take(place, spec.cpus, spec.memory)

    def give(self, job: Job) -> None:
        """Give its whole place back."""
        spec = job.spec
        if spec.roles and job.place:
            self.topology.give_gang(Gang(job.place, job.seats), asks(spec, 0))
        elif job.place:
            self.topology.give(job.place, spec.cpus, spec.memory)
        job.place, job.seats = (), ()

    def retake(self, job: Job, place: Slots, seats: Seats) -> None:
        """Undo a give, even where nothing new may be put."""
        spec = job.spec
        job.place, job.seats = place, seats
        if spec.roles and place:
            self.topology.retake(place)
            self.topology.charge_gang(Gang(place, seats), asks(spec, 0), 1)
        elif place:
            self.topology.retake(place, spec.cpus, spec.memory)

    def most_for(self, job: Job) -> int:
        """The largest size the cluster could ever give the job; 0 if there is none."""
        pools = job.pools
        if len(pools) == 1:
            return self.most_on(job, pools[0])
        return max((self.most_on(job, pool) for pool in pools), default=0)

    def most_on(self, job: Job, pool: int) -> int:
        """The largest size it could be placed at on that kind if nothing else ran; 0: none."""
        sizes, anywhere = job.spec.sizes(), job.plain and self.locality_relaxes
        if pool >= len(self.topology.kinds):  # no node has joined
            return 0
        if anywhere and self.topology.usable(pool) >= sizes[-1]:
            return sizes[-1]
        relaxed = job.spec.topology.mode == "prefer" and self.locality_relaxes
        usable = self.empty.usable(pool)
        for size in reversed(sizes):
            if size <= usable and (
                anywhere or self.find(job, pool, size, relaxed=relaxed, tree=self.empty) is not None
            ):
                return size
        return 0

    def find(
        self,
        job: Job,
        pool: int,
        size: int,
        near: Slots = (),
        relaxed: bool = False,
        tree: Topology | None = None,
    ) -> tuple[Slots, Seats] | None:
        """Ask the tree for what this job needs."""
        spec, topology = job.spec, tree or self.topology
        if job.plain and not relaxed:
            found = topology.find(pool, size, near=near)
        elif spec.roles:
            gang = topology.find_gang(pool, asks(spec, size), wish=job.where(), relaxed=relaxed)
            return None if gang is None else (gang.slots, gang.workers)
        else:
            found = topology.find(
                pool, size, wish=job.where(), cpus=spec.cpus, memory=spec.memory, near=near,
                relaxed=relaxed,
            )  # fmt: skip
        return None if found is None else (found, ())

    # ------------------------------------------------------------------ devices being left

    def mark_leaving(self, job: Job, slots: Slots) -> None:
        """These devices are free in the books but perhaps not yet in the world."""
        leaving = self.leaving
        for node, mask in slots:
            leaving[node] = leaving.get(node, 0) | mask
        job.leaving = merge(job.leaving, slots) if job.leaving else slots

    def clear_leaving(self, job: Job) -> None:
        """The world has confirmed that the job left what it was told to leave."""
        leaving = self.leaving
        for node, mask in job.leaving:
            rest = leaving.get(node, 0) & ~mask
            if rest:
                leaving[node] = rest
            else:
                leaving.pop(node, None)
        job.leaving = ()

    def blocked(self, slots: Slots) -> bool:
        """Whether somebody may still be on one of these devices."""
        leaving = self.leaving
        return bool(leaving) and any(leaving.get(node, 0) & mask for node, mask in slots)


def asks(spec: JobSpec, size: int) -> list[RoleAsk]:
    """What the workers of a gang of so many devices need."""
    counts = spec.workers(size) if size else [0] * len(spec.roles)
    return [
        RoleAsk(role.devices, count, role.cpus, role.memory)
        for role, count in zip(spec.roles, counts, strict=True)
    ]

"""A scheduler's state as bytes, from which an equal one goes on with equal commands."""

from __future__ import annotations

import heapq
from copy import copy
from typing import Any

import msgspec

from bough.core.fitting import OnlineFit
from bough.core.jobs import Job, Seats, Trouble
from bough.core.learning import adopt
from bough.core.model import JobSpec, Node, Place
from bough.core.past import PastImage, image_of, past_of
from bough.core.prior import Mean
from bough.core.state import CLS, MUST, POOL, READY, NodeBook, State

VERSION = 2


class JobImage(msgspec.Struct, frozen=True):
    """One job with its row."""

    id: str
    serial: int
    spec: JobSpec
    state: str
    epoch: int
    step: int
    place: Place
    held: Place
    leaving: Place
    seats: Seats
    failures: int
    trouble: Trouble | None
    held_by_user: bool
    ends_as: str
    waits_for: tuple[str, ...]
    lost_to: str
    lost_by: str
    told_at: float
    begins: float
    leaves: float
    ints: tuple[int, ...]
    floats: tuple[float, ...]
    #: Rates seen, by size, if the job reported any.
    rates: dict[int, Mean] | None
    #: Seconds it ran lately on each pool, up to a moment.
    recent: dict[int, float] = {}
    recent_at: float = 0.0
    clock: float = 1.0


class NodeImage(msgspec.Struct, frozen=True):
    """One node with what has befallen it."""

    node: Node
    down: bool
    drained: bool
    unhealthy: tuple[tuple[int, str], ...]


class Image(msgspec.Struct, frozen=True):
    """The whole state."""

    version: int
    now: float
    plan_wake_at: float
    next_serial: int
    replan: bool
    special_causes: bool
    refused: str
    #: Kinds of device in the order of their pools.
    kinds: tuple[str, ...]
    nodes: tuple[NodeImage, ...]
    jobs: tuple[JobImage, ...]
    pending: tuple[int, ...]
    past: PastImage
    entitled: tuple[tuple[int, int, int], ...]
    users: dict[str, int]
    locks: tuple[tuple[float, int], ...]
    limits: tuple[tuple[float, int, int], ...]
    queues: Any
    prior: Any
    #: What was used of budgets.
    meter: Any = None


def encode(state: State, plan_wake_at: float) -> bytes:
    """Freeze."""
    return msgspec.msgpack.encode(picture(state, plan_wake_at))


def picture(state: State, plan_wake_at: float, past: bool = True) -> Image:
    """The state as plain data; without the `past`, how jobs ended is left out."""
    place = state.topology.place
    table = state.table
    ints = table.wi[:, : table.n].copy()
    ints[CLS] = 0  # classes are numbered anew when the state is restored
    jobs = tuple(
        JobImage(
            job.id, job.serial, job.spec, job.state, job.epoch, job.step, place(job.place),
            place(job.held), place(job.leaving), job.seats, job.failures, job.trouble,
            job.held_by_user, job.ends_as, tuple(sorted(job.waits_for)), job.lost_to, job.lost_by,
            job.told_at, job.begins, job.leaves,
            tuple(ints[:, row].tolist()), tuple(table.wf[:, row].tolist()),
            state.fits[job.serial].seen if job.serial in state.fits else None,
            job.recent, job.recent_at, job.clock,
        )
        for row, job in enumerate(table.items)
    )  # fmt: skip
    nodes = tuple(
        NodeImage(b.node, b.down, b.drained, tuple(sorted(b.unhealthy.items())))
        for b in state.nodes.values()
    )
    return Image(
        VERSION, state.now, plan_wake_at, state.next_serial, state.replan, state.special_causes,
        state.refused, tuple(state.topology.kinds), nodes, jobs, tuple(state.pending),
        image_of(state.ended, state.farewells) if past else PastImage({}),
        tuple((*key, n) for key, n in state.entitled.items()), state.users,
        tuple(state.locks), tuple(state.limits), state.queues.state(),
        state.speedups.prior.state(), state.meter.state() if state.meter is not None else None,
    )  # fmt: skip


def restore(state: State, data: bytes) -> float:
    """Thaw into an empty state; returns when the plan ages."""
    return follow(state, msgspec.msgpack.decode(data, type=Image))


def follow(state: State, image: Image) -> float:
    """Let an empty state become what the picture shows, and share nothing that changes with it."""
    if image.version != VERSION:
        raise ValueError(f"snapshot of version {image.version}, this program reads {VERSION}")
    assert not state.nodes, "only an empty scheduler can be restored"
    state.now, state.next_serial = image.now, image.next_serial
    state.replan, state.refused = image.replan, image.refused
    state.special_causes = image.special_causes
    state.users = dict(image.users)
    state.ended, state.farewells = past_of(image.past)
    state.entitled = {(queue, pool): n for queue, pool, n in image.entitled}
    state.queues.restore(image.queues)
    state.speedups.prior.restore(image.prior)
    if state.meter is not None and image.meter is not None:
        state.meter.restore(image.meter)
    for kind in image.kinds:
        state.topology.pool(kind)
        state.empty.pool(kind)
    for n in image.nodes:
        _restore_node(state, n)
    for j in image.jobs:
        _restore_job(state, j)
    for n in image.nodes:  # last, because devices held on them were taken while they were up
        for tree in (state.topology, state.empty):
            if n.drained:
                tree.drain(n.node.name, True)
            if n.down:
                tree.remove(n.node.name)
    by_serial = {job.serial: job for job in state.table.items}
    state.pending = {serial: by_serial[serial] for serial in image.pending}
    state.locks, state.limits = list(image.locks), list(image.limits)
    return image.plan_wake_at


def _restore_node(state: State, image: NodeImage) -> None:
    """A node with its health, drained or down."""
    book = state.nodes[image.node.name] = NodeBook(image.node)
    book.down, book.drained, book.unhealthy = image.down, image.drained, dict(image.unhealthy)
    for tree in (state.topology, state.empty):
        tree.add(image.node)
        for device, _ in image.unhealthy:
            tree.health(image.node.name, device, False)


def _restore_job(state: State, image: JobImage) -> None:
    """A job with its devices and its row."""
    job = Job(image.id, image.serial, image.spec)
    slots = state.topology.slots
    job.state, job.epoch, job.step = image.state, image.epoch, image.step
    job.held = slots(image.held)
    job.failures, job.held_by_user = image.failures, image.held_by_user
    job.ends_as, job.waits_for = image.ends_as, set(image.waits_for)
    job.lost_to, job.lost_by, job.told_at = image.lost_to, image.lost_by, image.told_at
    job.trouble = copy(image.trouble)
    if job.trouble is not None and job.trouble.again_at > state.now:
        heapq.heappush(state.backoffs, (job.trouble.again_at, job.serial))
    job.begins, job.leaves = image.begins, image.leaves
    job.pools = state.pools_for(job.spec)
    for other in job.waits_for:
        state.dependents.setdefault(other, set()).add(job.id)
    job.clock = image.clock
    if job.clock != 1.0:
        state.slowed.add(job.serial)
    job.recent, job.recent_at = dict(image.recent), image.recent_at
    # Columns that came later than the snapshot begin at 0.
    ints = image.ints + (0,) * (state.table.INTS - len(image.ints))
    row = state.table.add(job, ints, image.floats)
    wi = state.table.wi
    wi[CLS, row] = state.class_for(job.spec, int(wi[POOL, row]))
    if image.rates is not None:
        fit = state.fits[job.serial] = OnlineFit(state.curve_for(job.spec, int(wi[POOL, row])))
        fit.seen = {size: copy(mean) for size, mean in image.rates.items()}
        adopt(state, job, row)
    state.unready += int(not wi[READY, row])
    state.musts += int(wi[MUST, row])
    state.priorities += job.spec.priority != 0
    state.jobs[job.id] = job
    if image.place:
        state.take(job, slots(image.place), image.seats)
    if image.leaving:
        state.mark_leaving(job, slots(image.leaving))

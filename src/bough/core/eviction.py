"""Room for a job of higher priority that was granted devices but found no place for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.core.jobs import Job
from bough.core.offers import Victim
from bough.core.preempt import Request, make_room
from bough.core.state import CLS, LO, MUST, POOL, SIZE, asks

if TYPE_CHECKING:
    from bough.core.settle import Settlement

#: What disturbing a job is believed to cost it, in seconds of all its devices.
RESTART_SECONDS = 60.0
RESIZE_SECONDS = 5.0


def make_place(trial: Settlement, row: int, want: int) -> bool:
    """Shrink or park jobs of lower priority (or rank), if that surely gives this one its place."""
    state = trial.state
    table = state.table
    job, pool = table.items[row], int(table.wi[POOL, row])
    rank = table.priority if trial.ranks is None else trial.ranks
    rows = {
        other.id: i
        for i, other in enumerate(table.items)
        if other.place
        and rank[i] < rank[row]
        and not table.wi[MUST, i]
        and table.wi[POOL, i] == pool
    }
    if not rows:
        return False
    spec = job.spec
    request = Request(
        pool=pool, size=want, wish=job.where(), cpus=spec.cpus, memory=spec.memory,
        roles=tuple(asks(spec, want)) if spec.roles else (),
    )  # fmt: skip
    victims = [victim(trial, table.items[i], i) for i in rows.values()]
    room = make_room(state.topology, request, victims)
    if room is None:
        return False
    for step in room.steps:
        at = rows[step.victim.id]
        trial.hold(at, table.items[at], step.keep)
        trial.taken_by[at] = job.id
    trial.hold(row, job, room.place, room.gang.workers if room.gang else ())
    return True


def victim(trial: Settlement, job: Job, row: int) -> Victim:
    """A running job as preemption sees it; it is checkpointed before it is parked."""
    state = trial.state
    wi = state.table.wi
    sizes = state.classes.sizes(int(wi[CLS, row])) if job.in_place else ()
    weight = float(wi[SIZE, row])
    return Victim(
        id=job.id, pool=int(wi[POOL, row]), slots=job.place, sizes=sizes,
        lowest=int(wi[LO, row]), restart_seconds=RESTART_SECONDS * weight,
        resize_seconds=RESIZE_SECONDS * weight, parkable=True,
        preemptible=job.spec.preemptible, cpus=job.spec.cpus, memory=job.spec.memory,
    )  # fmt: skip

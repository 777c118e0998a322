"""A live job asks for something else: its row, its class and its bounds follow."""

from __future__ import annotations

import heapq
from contextlib import suppress
from typing import Any

import msgspec

from bough.core.ending import stop_for_good
from bough.core.jobs import Job
from bough.core.learning import adopt
from bough.core.model import INFINITY, Amended, JobSpec
from bough.core.places import minus
from bough.core.settle import reconcile
from bough.core.standing import seconds_run, stand, vacate
from bough.core.state import CLS, DEADLINE, MAX_RUN, POOL, PRIORITY, QUEUE, SIZE, State

#: Priorities beyond this are nonsense, and would not fit into a column.
TOO_MUCH = 1 << 31


def amended(state: State, event: Amended) -> None:
    """A user wants something else of it; what cannot be meant is left as it is."""
    job = state.jobs.get(event.id)
    if job is None or job.ends_as:
        return
    before, spec = job.spec, wished(state, job.spec, event)
    if spec == before:
        return
    row, table = state.table.row(job), state.table
    state.priorities += (spec.priority != 0) - (before.priority != 0)
    table.wi[PRIORITY, row] = spec.priority
    if spec.deadline != before.deadline:
        table.wf[DEADLINE, row] = INFINITY if spec.deadline is None else spec.deadline
    respec(state, job, spec)
    if not job.place:
        stand(state, job)
    state.replan = True
    if spec.max_run_seconds != before.max_run_seconds:
        limit(state, job)


def wished(state: State, spec: JobSpec, event: Amended) -> JobSpec:
    """The job as it is to be."""
    new: dict[str, Any] = {}
    devices, deadline, longest = event.devices, event.deadline, event.max_run_seconds
    if devices is not None and not spec.roles and devices.min > 0:
        new["devices"] = devices
    if event.priority is not None and abs(event.priority) < TOO_MUCH:
        new["priority"] = event.priority
    if deadline is not None and deadline == deadline:
        new |= {"deadline": deadline if 0 < deadline < INFINITY else None, "deadline_after": None}
    if longest is not None and longest >= 0:
        new["max_run_seconds"] = longest or INFINITY
    if event.queue is not None and is_queue(state, event.queue):
        new["queue"] = event.queue
    for name, value in new.items():
        with suppress(ValueError):
            spec = msgspec.structs.replace(spec, **{name: value})
    return spec


def is_queue(state: State, name: str) -> bool:
    """Whether jobs can be in it; a name not seen before becomes a queue."""
    try:
        state.queues.index(name)
    except ValueError:
        return False
    return True


def respec(state: State, job: Job, spec: JobSpec) -> None:
    """Let a job ask for this from now on, without losing its turn or what was learnt of it."""
    row, wi = state.table.row(job), state.table.wi
    fit = state.fits.get(job.serial)
    job.ask(spec)
    wi[QUEUE, row] = 0 if state.queues.trivial else state.queues.index(spec.queue)
    job.pools = state.pools_for(spec)
    pool = int(wi[POOL, row])
    if not (job.place or job.held or pool in job.pools):
        pool = (job.pools or (0,))[0]
    state.set_pool(row, job, pool)
    if fit is not None:
        state.fits[job.serial] = fit
        adopt(state, job, row)
    if job.place:
        fit_place(state, job, row)


def fit_place(state: State, job: Job, row: int) -> None:
    """Keep what it holds as far as that is a size it allows now; else it starts anew."""
    size = int(state.table.wi[SIZE, row])
    allowed = state.classes.sizes(int(state.table.wi[CLS, row]))
    if size in allowed:
        return
    keep = max((s for s in allowed if s < size), default=0)
    if keep and job.in_place:
        place = state.topology.shrink(job.place, keep)
        state.topology.give(minus(job.place, place), job.spec.cpus, job.spec.memory)
        job.place = place
        state.set_size(row, keep)
        state.set_bounds(row, job)
    else:
        vacate(state, job)
    reconcile(state, job)


def limit(state: State, job: Job) -> None:
    """Count its longest run time anew, from when it first ran."""
    row, longest = state.table.row(job), job.spec.max_run_seconds
    state.table.wf[MAX_RUN, row] = longest
    state.limits = [entry for entry in state.limits if entry[1] != job.serial]
    heapq.heapify(state.limits)
    left = longest - seconds_run(state, job)
    if left <= 0:
        stop_for_good(state, job, "timed-out")
    elif job.held and longest < INFINITY:
        heapq.heappush(state.limits, (state.now + left, job.serial, job.epoch))

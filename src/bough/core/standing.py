"""Whether a job may run at all, and how it loses its devices: shared by all that changes jobs."""

from __future__ import annotations

from bough.core.jobs import Job
from bough.core.reason import (
    BUSY,
    DEPENDENCY,
    HELD,
    KIND,
    LOST,
    PARKED,
    PREEMPTED,
    RESOURCES,
    RETRY,
    TOO_BIG,
    TOPOLOGY,
)  # fmt: skip
from bough.core.state import CAUSE, POOL, RAN, SINCE, SIZE, State

#: Words for how a job came to wait that stay true however others fare.
LASTING = (PARKED, PREEMPTED, LOST, RETRY)


def may_run(state: State, job: Job) -> tuple[bool, int]:
    """Whether the job may be planned for at all, and what keeps it from it.

    Its largest size is limited to what the cluster could ever give it.
    """
    if job.held_by_user or job.ends_as:
        return False, HELD
    if job.waits_for:
        return False, DEPENDENCY
    if not job.pools:
        return False, KIND
    level = job.spec.topology.level
    if level and level not in state.topology.spans:
        return False, TOPOLOGY
    most = state.most_for(job)
    if not most:
        if max(map(state.topology.usable, job.pools)) < job.spec.sizes()[0]:
            return False, TOO_BIG
        lean = job.lean()
        lean.pools = job.pools
        return False, RESOURCES if lean is not job and state.most_for(lean) else TOPOLOGY
    row = state.table.row(job)
    if len(job.pools) > 1:
        most = state.most_on(job, int(state.table.wi[POOL, row]))
    if most:
        state.set_most(row, job, most)
    else:  # not on this kind, but on another
        state.set_pool(row, job, next(p for p in job.pools if state.most_on(job, p)))
    if job.trouble is not None and job.trouble.again_at > state.now:
        return False, RETRY
    return True, BUSY


def stand(state: State, job: Job, off: int = BUSY) -> None:
    """Let the job run if it may; `off` (or what it was before) says why it does not yet."""
    row = state.table.row(job)
    before = int(state.table.wi[CAUSE, row])
    ready, cause = may_run(state, job)
    if ready:
        cause = before if off == BUSY and before in LASTING else off
    state.set_ready(row, ready, cause)


def seconds_run(state: State, job: Job) -> float:
    """How long it has run so far, in all its epochs."""
    row, table = state.table.row(job), state.table
    ran = float(table.wf[RAN, row])
    on = job.held and table.wi[SIZE, row]
    return ran + (state.now - float(table.wf[SINCE, row]) if on else 0.0)


def vacate(state: State, job: Job, cause: int = BUSY) -> None:
    """Take all devices from a job in the books; what its body must do is told at the end."""
    row = state.table.row(job)
    if job.place:
        state.give(job)
        state.set_size(row, 0)
        state.set_cause(row, cause)
        state.set_bounds(row, job)
    state.replan = True

"""Why jobs wait that were granted devices, or that the policy lets wait."""

from __future__ import annotations

from bough.core.jobs import Job
from bough.core.planning import Draft
from bough.core.reason import BUSY, FRAGMENTATION, RESOURCES, TOPOLOGY
from bough.core.state import State


def cause_of_failure(state: State, job: Job, pool: int, size: int) -> int:
    """What kept a granted job from being placed."""
    if job.plain:
        return FRAGMENTATION
    if job.lean() is not job and state.find(job.lean(), pool, size) is not None:
        return RESOURCES
    return TOPOLOGY if job.spec.topology.mode != "prefer" else FRAGMENTATION


def note_causes(state: State, draft: Draft, failed: dict[int, int]) -> None:
    """Why rows wait, where it is for another reason than that others are served first."""
    table = state.table
    special = draft.causes | failed if draft.causes else failed
    if state.special_causes:
        for row in ((table.cause > BUSY) & (table.size == 0) & (table.ready == 1)).nonzero()[0]:
            if int(row) not in special:
                state.set_cause(int(row), BUSY)
    state.special_causes = bool(special)
    for row, cause in special.items():
        if not table.size[row]:
            state.set_cause(row, cause)

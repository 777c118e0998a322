"""When all jobs have all they want: ends change nothing, and who comes just takes a place.

What is decided is what the policy would decide if it were asked (``Policy.content_with``); not
asking is most of the work of a cluster that is not full.
"""

from __future__ import annotations

import numpy as np

from bough.core.policy import Policy
from bough.core.settle import enter, reconcile, retry_pending
from bough.core.share import peaks
from bough.core.state import CLS, HI, LO, POOL, READY, SIZE, WISH, State

#: After so many plans in which somebody wanted more, at most, it is looked again.
PAUSE_MAX = 16


def can_be_content(state: State, policy: Policy) -> bool:
    """Whether plans are simple enough: one kind, no queues, nobody bound for a time."""
    return bool(
        policy.content_with
        and not (policy.meters and state.meter is not None)
        and state.queues.trivial
        and len(state.topology.kinds) == 1
        and not (state.locks or state.musts or state.refused)
        and state.classes.widest <= state.topology.usable(0)
    )


def all_have_what_they_want(state: State, policy: Policy) -> bool:
    """Whether every row that may run has the size with which it wants no more."""
    table = state.table
    wi, n = table.wi, table.n
    if policy.content_with == "peak":
        most = peaks(state.classes.table())[wi[CLS, :n]]
    else:
        most = wi[WISH, :n]
    wanted = np.maximum(np.minimum(most, wi[HI, :n]), wi[LO, :n])
    if state.unready:
        wanted = wanted * wi[READY, :n]
    return bool(np.array_equal(wanted, wi[SIZE, :n]))


def seat_newcomer(state: State, policy: Policy) -> bool:
    """Let the only job that came have all it wants; False, and nothing done, if it cannot."""
    if len(state.fresh) != 1 or state.classes.widest > state.topology.usable(0):
        return False
    job = state.fresh[0]
    if job.id not in state.jobs or job.place:
        return True
    row, wi = state.table.row(job), state.table.wi
    cls, lo, hi = int(wi[CLS, row]), int(wi[LO, row]), int(wi[HI, row])
    wanted = state.classes.peak(cls) if policy.content_with == "peak" else int(wi[WISH, row])
    wanted = lo if wanted < lo else hi if wanted > hi else wanted
    if wanted > state.topology.free(0) or wanted not in state.classes.sizes(cls):
        return False
    found = state.find(job, int(wi[POOL, row]), wanted)
    if found is None:
        return False
    state.take(job, *found)
    enter(state, row, job)
    reconcile(state, job)
    if state.pending:
        retry_pending(state)
    return True

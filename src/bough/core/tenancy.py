"""One pool among queues: what each is entitled to, what it makes of it, and who gets the rest.

A gang may be larger than its queue's share while others leave theirs unused, because theirs is
too small for them as well. So what is left over after every queue was asked is offered again:
first to queues that would otherwise lose running jobs, then to those that got least for their
weight, then to those that have waited longest. Limits hold throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bough.core.dominance import taken_with_a_device
from bough.core.policy import Floats, Ints
from bough.core.reason import BUDGET, PAUSED, QUOTA
from bough.core.state import State

#: Asks the policy: rows of one queue, devices it may use -> a size for each row.
AskQueue = Callable[[Ints, int], Ints]
CAUSES = {"paused": PAUSED, "budget": BUDGET}


@dataclass(slots=True)
class Claims:
    """What each queue has of a pool and wants of it; arrays are by queue."""

    pool: str
    #: queue -> which of the rows are its.
    members: dict[int, Ints]
    held: Ints
    #: Devices its jobs hold of other pools.
    elsewhere: Ints
    demand: Ints
    #: What it cannot give back now.
    floor: Ints
    #: What its jobs take of each resource with a device in the mean, where that counts.
    takes: Floats | None = None


def claims_on(state: State, rows: Ints, sizes: Ints) -> Claims:
    """The claims of the queues of these rows, which are all of one pool.

    `sizes` are those of all rows: planned ones of pools that were shared out before, else held.
    """
    table, count = state.table, len(state.queues.names)
    queue = table.queue[rows]

    def total(devices: Ints) -> Ints:
        return np.bincount(queue, weights=devices, minlength=count).astype(np.int64)

    held = total(table.size[rows])
    everywhere = np.bincount(table.queue, weights=sizes, minlength=count).astype(np.int64)
    return Claims(
        pool=state.topology.kinds[int(table.pool[rows[0]])],
        members={q: (queue == q).nonzero()[0] for q in np.unique(queue).tolist()},
        held=held,
        elsewhere=everywhere - held,
        demand=total(table.hi[rows]),
        floor=total(table.must[rows] * table.lo[rows]),
        takes=taken(state, rows, queue) if state.queues.looks_at_resources() else None,
    )


def taken(state: State, rows: Ints, queue: Ints) -> Floats:
    """What the jobs of each queue take of each resource with a device, in the mean."""
    wants, count = state.table.hi[rows], len(state.queues.names)
    each = taken_with_a_device(state, rows) * wants[:, None]
    sums = np.stack([np.bincount(queue, part, count) for part in each.T], axis=1)
    found: Floats = sums / np.maximum(sums[:, :1], 1.0)
    return found


def share_pool(
    state: State, rows: Ints, devices: int, sizes: Ints, ask: AskQueue
) -> tuple[Ints, dict[int, int]]:
    """Sizes for these rows of one pool, and why rules of their queues hold some back."""
    queues, claims = state.queues, claims_on(state, rows, sizes)
    members, demand = claims.members, claims.demand

    def entitle(demand: Ints) -> Ints:
        return queues.entitle(
            state.now, claims.pool, devices, demand, claims.floor, claims.elsewhere, claims.takes
        )

    want, got = np.zeros(len(rows), np.int64), np.zeros_like(demand)
    entitled = entitle(demand)
    for q, at in members.items():
        want[at] = ask(rows[at], int(entitled[q]))
        got[q] = want[at].sum()

    def rank(q: int) -> tuple[bool, float, int]:
        return got[q] >= claims.held[q], float(got[q]) / queues.weight(q), int(members[q][0])

    for q in sorted((q for q in members if got[q] < demand[q]), key=rank):
        if got.sum() >= devices:
            break
        asked = got.copy()
        asked[q] = demand[q]
        more = entitle(asked)[q]
        if more > entitled[q]:
            entitled[q], at = more, members[q]
            want[at] = ask(rows[at], int(more))
            got[q] = want[at].sum()
    pool = int(state.table.pool[rows[0]])
    state.entitled |= {(q, pool): int(entitled[q]) for q in members}
    return want, _held_back(state, rows, want, claims)


def _held_back(state: State, rows: Ints, want: Ints, claims: Claims) -> dict[int, int]:
    """Waiting rows whose queue has what a rule or the wants of others allow it, by their cause."""
    causes: dict[int, int] = {}
    total, pool = int(want.sum()), int(state.table.pool[rows[0]])
    count = len(state.queues.names)
    planned = np.bincount(state.table.queue[rows], weights=want, minlength=count).astype(np.int64)
    for q, at in claims.members.items():
        waiting = at[want[at] == 0]
        if not len(waiting):
            continue
        used = int(want[at].sum())
        needs = used + state.table.min[rows[waiting]]
        if used < total:
            share = state.entitled[q, pool]
            causes |= dict.fromkeys(rows[waiting[needs > share]].tolist(), QUOTA)
        for row, need in zip(rows[waiting].tolist(), needs.tolist(), strict=True):
            binding = state.queues.broken_by(q, claims.pool, planned, need - used, claims.elsewhere)
            if binding is not None:
                causes[row] = CAUSES.get(binding.code, QUOTA)
    return causes

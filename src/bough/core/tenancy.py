"""One pool among queues: what each is entitled to, what it makes of it, and who gets the rest.

A gang may be larger than its queue's share while others leave theirs unused, because theirs is
too small for them as well. So what is left over after every queue was asked is offered again:
first to queues that would otherwise lose running jobs, then to those that got least for their
weight, then to those that have waited longest. Limits hold throughout.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bough.core.policy import Ints
from bough.core.reason import BUDGET, PAUSED, QUOTA
from bough.core.state import State

#: Asks the policy: rows of one queue, devices it may use -> a size for each row.
AskQueue = Callable[[Ints, int], Ints]
CAUSES = {"paused": PAUSED, "budget": BUDGET}


def share_pool(
    state: State, rows: Ints, devices: int, ask: AskQueue
) -> tuple[Ints, dict[int, int]]:
    """Sizes for these rows of one pool, and why rules of their queues hold some back."""
    table, queues = state.table, state.queues
    count = len(queues.names)
    queue = table.queue[rows]
    number = int(table.pool[rows[0]])
    pool = state.topology.kinds[number]

    def total(weights: Ints) -> Ints:
        return np.bincount(queue, weights=weights, minlength=count).astype(np.int64)

    held, demand = total(table.size[rows]), total(table.hi[rows])
    floor = total(table.must[rows] * table.lo[rows])
    everywhere = np.bincount(table.queue, weights=table.size, minlength=count).astype(np.int64)
    elsewhere = everywhere - held
    members = {q: (queue == q).nonzero()[0] for q in np.unique(queue).tolist()}
    want = np.zeros(len(rows), np.int64)
    entitled = queues.entitle(state.now, pool, devices, demand, floor, elsewhere)
    for q, at in members.items():
        want[at] = ask(rows[at], int(entitled[q]))
    got = total(want)
    left = devices - int(got.sum())

    def rank(q: int) -> tuple[bool, float, int]:
        return got[q] >= held[q], float(got[q]) / queues.weight(q), int(members[q][0])

    for q in sorted((q for q in members if got[q] < demand[q]), key=rank):
        if left <= 0:
            break
        asked = got.copy()
        asked[q] = demand[q]
        more = int(queues.entitle(state.now, pool, devices, asked, floor, elsewhere)[q])
        if more > entitled[q]:
            entitled[q] = more
            at = members[q]
            want[at] = ask(rows[at], more)
            left -= int(want[at].sum()) - int(got[q])
            got[q] = int(want[at].sum())
    state.entitled |= {(q, number): int(entitled[q]) for q in members}
    return want, _held_back(state, rows, want, members, pool, elsewhere)


def _held_back(
    state: State, rows: Ints, want: Ints, members: dict[int, Ints], pool: str, elsewhere: Ints
) -> dict[int, int]:
    """Waiting rows whose queue has what a rule or the wants of others allow it, by their cause."""
    causes: dict[int, int] = {}
    total = int(want.sum())
    for q, at in members.items():
        waiting = at[want[at] == 0]
        if not len(waiting):
            continue
        binding = state.queues.binding(q, pool, elsewhere)
        used = int(want[at].sum())
        needs = used + state.table.min[rows[waiting]]
        if used < total:
            share = state.entitled[q, int(state.table.pool[rows[0]])]
            causes |= dict.fromkeys(rows[waiting[needs > share]].tolist(), QUOTA)
        if binding is not None:
            cause = CAUSES.get(binding.code, QUOTA)
            causes |= dict.fromkeys(rows[waiting[needs > binding.devices]].tolist(), cause)
    return causes

"""From state to wishes: build the views, ask the policy, check what it says."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from bough.core import share
from bough.core.dominance import taken_with_a_device
from bough.core.drawing import power_view
from bough.core.jobs import Job, Jobs, Slots
from bough.core.links import links_view
from bough.core.model import INFINITY
from bough.core.policy import NOTHING, Bools, Floats, Ints, Plan, Policy, QueueShare, View
from bough.core.reason import BUDGET
from bough.core.recent import ran_on
from bough.core.remarks import BadPlan, note, note_reasons
from bough.core.state import CLS, HI, LO, MIN, MUST, POOL, READY, WISH, State
from bough.core.survey import survey
from bough.core.tenancy import share_pool


@dataclass(slots=True)
class Draft:
    """What the policy wants, over all rows of the table."""

    want: Ints
    #: (row, devices held, devices wanted) for every row whose size it changes.
    changes: list[Change]
    #: Running rows that go on with devices of another kind: row -> pool.
    moved: dict[int, int] = field(default_factory=dict)
    #: Rows in the order in which they are to be granted, scope by scope, and whether to pass over.
    orders: list[tuple[Ints, Ints, int, bool]] = field(default_factory=list)
    wake_at: float = INFINITY
    #: Whether smaller jobs may be moved for the sake of larger ones.
    moves: bool = True
    #: row -> the part of its full clock, where that is not all of it.
    clocks: dict[int, float] = field(default_factory=dict)
    #: row -> where it is to go if it starts or grows, where the policy says so.
    places: dict[int, Slots] = field(default_factory=dict)
    #: row -> cause, where the policy or a quota says why a job waits.
    causes: dict[int, int] = field(default_factory=dict)
    #: Whose place may be taken by whom, where the policy says so; else priorities decide.
    ranks: Ints | None = None


Change = tuple[int, int, int]
#: Rows that compete (None: all), and for how many devices.
Part = tuple[Ints | None, int]
#: So few rows are read faster one by one.
FEW = 8
NOBODY: Ints = np.zeros(0, np.int64)


def expire_locks(state: State) -> None:
    """Bounds that time has lifted."""
    locks = state.locks
    while locks and locks[0][0] <= state.now:
        _, serial = heapq.heappop(locks)
        row = state.by_serial(serial)
        if row is not None:
            state.set_bounds(row, state.table.items[row])


def draft(state: State, policy: Policy, blocked: Bools | None = None) -> Draft:
    """Ask the policy for every scope; rows that are blocked get nothing new this time."""
    table = state.table
    table.now = state.now
    table.flat = not (state.musts or state.priorities)
    if state.meter is not None and state.meter.is_used_up:
        return used_up(state)
    if policy.scope == "cluster":
        return draft_matrix(state, policy, blocked)
    if len(state.topology.kinds) > 1:
        choose_pools(state)
    parts = pool_parts(state, blocked)
    if not state.queues.trivial and policy.scope != "pool":
        return draft_queues(state, policy, parts)
    if len(parts) == 1 and parts[0][0] is None and table.n:
        result = Draft(NOBODY, [])
        result.want, result.changes = ask(state, policy, result, *parts[0])
        return result
    result = Draft(np.zeros(table.n, np.int64), [])
    for rows, devices in parts:
        if table.n and (rows is None or len(rows)):
            sizes, _ = ask(state, policy, result, rows, devices)
            result.want[slice(None) if rows is None else rows] = sizes
    result.changes = differences(table.size, result.want)
    return result


def used_up(state: State) -> Draft:
    """While a budget is used up nobody is asked: what may not be parked stays, and nothing else."""
    table = state.table
    want = np.where(table.must != 0, table.size, 0)
    result = Draft(want, differences(table.size, want))
    result.causes = dict.fromkeys(((want == 0) & (table.ready == 1)).nonzero()[0].tolist(), BUDGET)
    return result


def draft_queues(state: State, policy: Policy, parts: list[Part]) -> Draft:
    """Ask the policy for each queue of each pool."""
    table = state.table
    result = Draft(np.zeros(table.n, np.int64), [])
    sizes = table.size.copy()
    for rows, devices in parts:
        index = np.arange(table.n) if rows is None else rows
        if not len(index):
            continue

        def ask_queue(members: Ints, entitled: int) -> Ints:
            mine = members[0]
            result.orders = [o for o in result.orders if mine not in o[0]]
            return ask(state, policy, result, members, entitled)[0]

        result.want[index], causes = share_pool(state, index, devices, sizes, ask_queue)
        sizes[index] = result.want[index]
        result.causes.update(causes)
    result.changes = differences(table.size, result.want)
    return result


def pool_parts(state: State, blocked: Bools | None) -> list[Part]:
    """One part for each pool: its runnable rows (None: all) and all its devices."""
    table, topology = state.table, state.topology
    pools = len(topology.kinds)
    if pools == 1 and not state.unready and blocked is None:
        return [(None, topology.usable(0))]
    ready = table.ready.astype(bool)
    if blocked is not None:
        ready = ready & ~blocked
    return [(((table.pool == p) & ready).nonzero()[0], topology.usable(p)) for p in range(pools)]


def ask(
    state: State, policy: Policy, result: Draft, rows: Ints | None, devices: int
) -> tuple[Ints, list[Change]]:
    """Ask the policy about one part and check its answer: sizes, and what they change in it."""
    table = state.table
    jobs: Jobs = table if rows is None else table.rows(rows)
    if state.classes.widest > devices:
        jobs = attainable(state, jobs, devices)
    view = View(
        state.now, devices, jobs, state.classes.table(), (devices,), (),
        () if state.queues.trivial else shares(state, devices), history(state, policy),
        doubt=state.speedups.prior.doubt(),
        takes=taken_with_a_device(state, rows) if policy.weighs else NOTHING,
        power=power_view(state, rows, int(jobs.pool[0])) if policy.meters else None,
        links=links_view(state, rows, int(jobs.pool[0])) if policy.surveys else None,
        ground=survey(state, rows, int(jobs.pool[0])) if policy.places else None,
    )  # fmt: skip
    answer = policy.plan(view)
    if not isinstance(answer, Plan):
        return answer, check(state, answer, jobs, devices)
    sizes = answer.sizes
    if answer.order is not None:
        order, wished = answer.order, sizes
        check_order(wished, order, jobs)
        sizes = share.fit_in_order(wished, devices, order, answer.skip)
        if rows is not None:
            order, part = rows[order], wished
            wished = np.zeros(table.n, np.int64)
            wished[rows] = part
        result.orders.append((order, wished, devices, answer.skip))
    result.moves &= answer.moves
    if answer.wake_at < result.wake_at:
        result.wake_at = answer.wake_at
    note(state, result, answer, rows, jobs)
    return sizes, check(state, sizes, jobs, devices)


def check_order(wished: Ints, order: Ints, jobs: Jobs) -> None:
    """Refuse an order of rows that are not there, or that are there twice."""
    if len(wished) != jobs.n:
        raise BadPlan(f"{len(wished)} sizes for {jobs.n} jobs")
    if not len(order):
        return
    if int(order.min()) < 0 or int(order.max()) >= jobs.n:
        raise BadPlan(f"an order with rows that are not among the {jobs.n} jobs")
    if len(order) > 1 and int(np.bincount(order).max()) > 1:
        raise BadPlan("an order that names a job twice")


def attainable(state: State, jobs: Jobs, devices: int) -> Jobs:
    """The same rows; none wishes or keeps more than all there is if it can do with less."""
    over = (np.maximum(jobs.wish, jobs.hi) > devices).nonzero()[0]
    if not len(over):
        return jobs
    lowered = Jobs(jobs.ints[:, jobs.pick].copy(), jobs.floats[:, jobs.pick], slice(None), jobs.n)
    lowered.now = jobs.now
    for row in over.tolist():
        sizes = state.classes.sizes(int(jobs.cls[row]))
        most = max((s for s in sizes if jobs.lo[row] <= s <= devices), default=0)
        if most:
            lowered.ints[WISH, row] = min(most, int(jobs.wish[row]))
            lowered.ints[HI, row] = min(most, int(jobs.hi[row]))
    lowered.ints.flags.writeable = False
    return lowered


def history(state: State, policy: Policy) -> Floats:
    """What jobs that ended lately used, for policies that ask."""
    return state.speedups.prior.history() if policy.learns else NOTHING


def shares(state: State, devices: int) -> tuple[QueueShare, ...]:
    """Queues as a policy of scope "pool" sees them."""
    queues = state.queues
    used = np.bincount(state.table.queue, weights=state.table.size, minlength=len(queues.names))
    asked = [queues.get(i) for i in range(len(queues.names))]
    below = Counter[str]()
    for queue in asked:
        below[queue.parent] += queue.guarantee
    return tuple(
        QueueShare(
            queue.name, devices, float(used[i]), queue.weight,
            max(queue.guarantee - below[queue.name], 0),
        )
        for i, queue in enumerate(asked)
    )  # fmt: skip


def differences(size: Ints, want: Ints) -> list[Change]:
    """Where two columns differ, and by what."""
    rows = (size != want).nonzero()[0]
    if len(rows) < FEW:
        return [(row, int(size[row]), int(want[row])) for row in rows.tolist()]
    return list(zip(rows.tolist(), size[rows].tolist(), want[rows].tolist(), strict=True))


def check(state: State, sizes: Ints, jobs: Jobs, devices: int) -> list[Change]:
    """Refuse a plan that breaks a range, a lock or the capacity; what it changes."""
    if len(sizes) != jobs.n:
        raise BadPlan(f"{len(sizes)} sizes for {jobs.n} jobs")
    changes = differences(jobs.size, sizes)
    if not changes:
        return changes
    more = 0
    # Few rows are looked at, so they are read from the whole columns, one by one.
    ints, pick = jobs.ints, None if isinstance(jobs.pick, slice) else jobs.pick
    for row, held, size in changes:
        more += size - held
        at = row if pick is None else pick[row]
        if not size:
            if ints[MUST, at]:
                raise BadPlan(f"job row {row} may not be parked now")
            continue
        allowed = state.classes.sizes(int(ints[CLS, at]))
        if size not in allowed:
            raise BadPlan(f"{size} is not a size of job row {row}: {allowed}")
        if not ints[LO, at] <= size <= ints[HI, at]:
            raise BadPlan(f"{size} is outside {ints[LO, at]}..{ints[HI, at]} of job row {row}")
    if more > 0 and (total := int(np.add.reduce(sizes))) > devices:
        raise BadPlan(f"{total} devices planned where there are {devices}")
    return changes


def choose_pools(state: State) -> None:
    """Give each waiting job that accepts several kinds the best one that has room for it."""
    table, topology = state.table, state.topology
    kinds = len(topology.kinds)
    waiting = ((table.size == 0) & (table.ready == 1)).nonzero()[0]
    load = np.bincount(table.pool, weights=table.size, minlength=kinds)
    room = [topology.usable(p) - int(load[p]) for p in range(kinds)]
    for row in waiting.tolist():
        job, least = table.items[row], int(table.wi[MIN, row])
        if len(job.pools) > 1:
            fitting = [p for p in job.pools if room[p] >= least and fits_now(state, job, p, least)]
            possible = [p for p in job.pools if state.most_on(job, p) >= least]
            pool = (fitting or possible or job.pools)[0]
            if pool != table.wi[POOL, row]:
                state.set_pool(row, job, pool)
        room[int(table.wi[POOL, row])] -= least


def fits_now(state: State, job: Job, pool: int, size: int) -> bool:
    """Whether one who is particular about places finds one there."""
    if job.plain and state.locality_relaxes:
        return True
    relaxed = job.spec.topology.mode == "prefer"
    return state.find(job, pool, size, relaxed=relaxed) is not None


def draft_matrix(state: State, policy: Policy, blocked: Bools | None) -> Draft:
    """Ask a policy that looks at all kinds at once; each job gets devices of one kind."""
    table, topology = state.table, state.topology
    result = Draft(np.zeros(table.n, np.int64), [])
    ready = table.wi[READY, : table.n].astype(bool)
    pools = np.array([topology.usable(p) for p in range(len(topology.kinds))], np.int64)
    if blocked is not None:
        # What runs and could not be moved stays as it is.
        stays = (blocked & (table.size > 0)).nonzero()[0]
        result.want[stays] = table.size[stays]
        np.subtract.at(pools, table.pool[stays], table.size[stays])
        ready &= ~blocked
    rows = ready.nonzero()[0]
    if not len(rows):
        result.changes = differences(table.size, result.want)
        return result
    jobs, devices = table.rows(rows), int(pools.sum())
    on = classes_on(state, rows)  # may find classes that nobody had before
    view = View(
        now=state.now, devices=devices, jobs=jobs, classes=state.classes.table(),
        pools=tuple(pools.tolist()), pool_names=tuple(topology.kinds),
        queues=shares(state, devices), history=history(state, policy),
        classes_on=on, doubt=state.speedups.prior.doubt(),
        ran_on=ran_on(table, rows, len(pools), state.memory_seconds),
        ground=survey(state, rows, None) if policy.places else None,
    )  # fmt: skip
    answer = policy.plan(view)
    plan = answer if isinstance(answer, Plan) else Plan(sizes=answer)
    sizes, chosen = check_matrix(state, plan.sizes, view)
    moves = ((sizes > 0) & (chosen != jobs.pool)).nonzero()[0]
    for row, pool in zip(rows[moves].tolist(), chosen[moves].tolist(), strict=True):
        if table.size[row]:
            result.moved[row] = pool
        else:
            state.set_pool(row, table.items[row], pool)
    note_reasons(result, plan, rows, jobs)
    result.want[rows] = sizes
    result.changes = differences(table.size, result.want)
    result.wake_at = plan.wake_at
    return result


def classes_on(state: State, rows: Ints) -> Ints:
    """The class of each of these jobs on each pool; -1 where it cannot run."""
    table, pools = state.table, len(state.topology.kinds)
    found = np.full((len(rows), pools), -1)
    for i, row in enumerate(rows.tolist()):
        job = table.items[row]
        for pool in job.pools:
            if job.plain or state.most_on(job, pool):
                found[i, pool] = state.class_for(job.spec, pool)
    # What a job has taught of itself holds where it is.
    found[np.arange(len(rows)), table.pool[rows]] = table.cls[rows]
    found.flags.writeable = False
    return found


def check_matrix(state: State, matrix: Ints, view: View) -> tuple[Ints, Ints]:
    """Refuse a plan over kinds that breaks a rule; sizes, and the pool of each row."""
    jobs, pools = view.jobs, view.pools
    if matrix.shape != (jobs.n, len(pools)):
        raise BadPlan(f"a plan of {matrix.shape} for {jobs.n} jobs and {len(pools)} pools")
    if ((matrix > 0).sum(axis=1) > 1).any():
        raise BadPlan("a job may hold devices of one kind only")
    if (matrix.sum(axis=0) > np.array(pools)).any():
        raise BadPlan(f"{matrix.sum(axis=0).tolist()} devices planned where there are {pools}")
    sizes: Ints = matrix.sum(axis=1)
    chosen: Ints = matrix.argmax(axis=1)
    moved = (sizes > 0) & (chosen != jobs.pool)
    check(state, np.where(moved, jobs.size, sizes), jobs, sum(pools))
    for i in moved.nonzero()[0].tolist():
        job, pool = state.table.items[state.by_serial(int(jobs.serial[i])) or 0], int(chosen[i])
        if pool not in job.pools:
            raise BadPlan(f"job row {i} does not accept {state.topology.kinds[pool]}")
        if jobs.must[i]:
            raise BadPlan(f"job row {i} may not be moved now")
        allowed = state.classes.sizes(int(view.classes_on[i, pool]))
        if sizes[i] not in allowed:
            kind = state.topology.kinds[pool]
            raise BadPlan(f"{sizes[i]} is not a size of job row {i} on {kind}: {allowed}")
    return sizes, chosen

"""Why a job waits or runs: a code, the numbers behind it, one sentence, the cheapest remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from bough.core.model import INFINITY
from bough.core.units import format_duration, format_size

if TYPE_CHECKING:
    from bough.core.jobs import Job
    from bough.core.meter import Meter
    from bough.core.state import State

#: Codes of waiting, by the number kept in the column `cause`. Up to `busy`: others are served
#: first, and how it came to that; beyond: something else stands in the way. `moving` (others still
#: have to leave the devices it was granted) and `round` are no causes kept in the column.
CODES: Final = (
    "none", "parked", "preempted", "lost", "retry", "busy", "fragmentation", "topology",
    "resources", "quota", "paused", "budget", "dependency", "held", "kind", "too-big", "deadline",
    "policy", "moving", "round",
)  # fmt: skip
(
    NONE, PARKED, PREEMPTED, LOST, RETRY, BUSY, FRAGMENTATION, TOPOLOGY,
    RESOURCES, QUOTA, PAUSED, BUDGET, DEPENDENCY, HELD, KIND, TOO_BIG, DEADLINE,
    POLICY, MOVING, ROUND,
) = range(len(CODES))  # fmt: skip
NUMBER: Final = {code: i for i, code in enumerate(CODES)}

Facts = dict[str, int | float | str]


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """The same object in the CLI, the API, the web page and the simulator."""

    #: Machine-readable word.
    code: str
    #: The numbers and names the sentence is made from.
    facts: Facts = {}
    #: One plain sentence.
    text: str
    #: The cheapest thing that would change it; empty when there is nothing to do but wait.
    remedy: str = ""


def explain(state: State, id: str) -> Reason:
    """Why the job is where it is, from the state alone (without a remedy)."""
    job = state.jobs.get(id)
    if job is None:
        how = state.ended.get(id)
        if how is None:
            return Reason(code="unknown", text=f"No job is called {id}.")
        return state.farewells.get(id) or Reason(code=how, text=f"{ENDINGS[how]}.")
    row = state.table.row(job)
    if job.held or job.place:
        return running(state, job, row)
    if job.ends_as:
        return Reason(code="stopping", text=f"It is being stopped: {job.ends_as}.")
    code = CODES[int(state.table.cause[row])]
    if state.table.ready[row] and state.refused:
        text = f"The policy's last plan was refused ({state.refused}); nothing new starts by it."
        return Reason(code="policy", facts={"refused": state.refused}, text=text)
    if state.table.ready[row] and state.replan and state.round_at > state.now:
        wait = format_duration(state.round_at - state.now)
        facts: Facts = {"round_in_seconds": state.round_at - state.now}
        return Reason(code="round", facts=facts, text=f"The next round of planning is in {wait}.")
    return _WAITING[code](state, job, row)


#: How a job ended, in a few words.
ENDINGS: Final = {
    "done": "It finished its work",
    "failed": "It failed",
    "cancelled": "It was cancelled",
    "rejected": "It was rejected",
    "timed-out": "It reached its longest run time",
}


def farewell(how: str, detail: str = "", facts: Facts | None = None) -> Reason:
    """The reason kept of a job that is over."""
    joint = " " if detail.startswith("by ") else ": "
    text = f"{ENDINGS[how]}{joint}{detail}." if detail else f"{ENDINGS[how]}."
    return Reason(code=how, facts=facts or {}, text=text)


def running(state: State, job: Job, row: int) -> Reason:
    """A job that holds devices, or is about to."""
    held = sum(mask.bit_count() for _, mask in job.held)
    size, most = int(state.table.size[row]), int(state.table.max[row])
    if not job.place:
        why = job.ends_as or CODES[int(state.table.cause[row])]
        return Reason(code="stopping", facts={"why": why}, text=f"It is being stopped: {why}.")
    where = nodes(state, job)
    facts: Facts = {"devices": size, "nodes": len(job.place), "most": most}
    if not held and job.state == "stopping":
        text = f"It goes on with {many(size)} of {where} when its processes have ended."
        return Reason(code="moving", facts=facts, text=text)
    if not held:
        text = f"It was granted {many(size)} of {where}, and starts when others have left them."
        return Reason(code="moving", facts=facts, text=text)
    more = f", and could use up to {most}" if most > held else ""
    if held < size:
        more = f", and takes {size - held} more when others have left them"
    facts |= {"devices": held}
    return Reason(code="running", facts=facts, text=f"It runs on {many(held)} of {where}{more}.")


def nodes(state: State, job: Job) -> str:
    """Names of the first nodes of its place."""
    names = [name for name, _ in state.topology.place(job.place)]
    beyond = f" and {len(names) - 3} more nodes" if len(names) > 4 else ""
    return ", ".join(names[:3] if beyond else names) + beyond


def many(count: int, kind: str = "") -> str:
    """A number of devices, in words that agree with it."""
    kind = f" {kind}" if kind else ""
    return f"{count}{kind} device{'' if count == 1 else 's'}"


def needed(f: Facts) -> str:
    """What the job needs, as most sentences begin."""
    least = "at least " if f["most"] != f["needs"] else ""
    return f"It needs {least}{many(int(f['needs']), str(f['kind']))}"


def is_are(count: int | float | str) -> str:
    """The verb that agrees."""
    return "is" if count == 1 else "are"


def facts_of(state: State, job: Job, row: int) -> Facts:
    """The numbers most sentences need."""
    table, topology = state.table, state.topology
    pool = int(table.pool[row])
    known = pool < len(topology.kinds)
    waits = (table.size == 0) & (table.ready == 1) & (table.pool == pool)
    found: Facts = {
        "needs": int(table.min[row]),
        "most": int(table.max[row]),
        "kind": topology.kinds[pool] if known else "",
        "free": topology.free(pool) if known else 0,
        "usable": topology.usable(pool) if known else 0,
        "largest_block": topology.largest_free(pool) if known else 0,
        "ahead": int(waits[:row].sum()),
        "waited_seconds": float(state.now - table.since[row]),
    }
    deadline = float(table.deadline[row])
    if deadline < INFINITY:
        found["deadline_in_seconds"] = deadline - state.now
    return found


def free_of(f: Facts) -> str:
    """How much is free."""
    return f"{f['free']} of {f['usable']} {is_are(f['free'])} free"


def _busy(state: State, job: Job, row: int) -> Reason:
    f = facts_of(state, job, row)
    ahead = int(f["ahead"])
    others = f"; {ahead} {'job' if ahead == 1 else 'jobs'} submitted earlier {wait(ahead)} too"
    text = f"{needed(f)} and {free_of(f)}{others if ahead else ''}."
    if int(f["free"]) >= int(f["needs"]) < int(f["most"]):
        text = (
            f"It accepts {f['needs']} to {many(int(f['most']), str(f['kind']))} and {free_of(f)}, "
            f"but the policy does not start it with so few{others if ahead else ''}."
        )
    return Reason(code="busy", facts=f, text=text)


def wait(count: int) -> str:
    """The verb that agrees."""
    return "waits" if count == 1 else "wait"


def _off(state: State, job: Job, row: int) -> Reason:
    """It ran before."""
    code, f = CODES[int(state.table.cause[row])], facts_of(state, job, row)
    if code in ("preempted", "lost"):
        f["by"] = job.lost_to if code == "preempted" else job.lost_by
    waited = float(f["waited_seconds"])
    when = f"{format_duration(waited)} ago" if waited >= 1 else "just now"
    was = {
        "parked": f"It was parked {when}, because the policy serves others first",
        "preempted": f"Job {job.lost_to}, of higher priority, took its devices {when}",
        "lost": f"It lost its devices {when} ({job.lost_by})",
    }[code]
    text = f"{was}; it needs {many(int(f['needs']), str(f['kind']))} and {free_of(f)}."
    return Reason(code=code, facts=f, text=text)


def facts_of_trouble(job: Job) -> Facts:
    """How its last failed try ended; nothing if none has failed."""
    trouble = job.trouble
    if trouble is None or not trouble.kind:
        return {}
    f: Facts = {"exit_code": trouble.code, "exit_kind": trouble.kind, "exit": trouble.text}
    if job.spec.retries:
        f["tries"] = job.spec.retries + 1
    if trouble.quick > 1:
        f["tries_in_a_row"] = trouble.quick
    return f


def _retry(state: State, job: Job, row: int) -> Reason:
    """Its last try failed."""
    trouble, f = job.trouble, facts_of(state, job, row) | facts_of_trouble(job)
    assert trouble is not None, f"job {job.id} is to be tried again, but never failed"
    count, ago = job.failures + trouble.passing + 1, format_duration(float(f["waited_seconds"]))
    again = max(trouble.again_at - state.now, 0.0)
    f |= {"try": count, "failures": job.failures, "again_in_seconds": again}
    text = f"It failed {ago} ago ({trouble.text}); try {count} comes in {format_duration(again)}."
    if not again:
        needs = f"it needs {many(int(f['needs']), str(f['kind']))} for try {count}"
        text = f"It failed {ago} ago ({trouble.text}); {needs} and {free_of(f)}."
    return Reason(code="retry", facts=f, text=text)


def _fragmentation(state: State, job: Job, row: int) -> Reason:
    f = facts_of(state, job, row)
    text = (
        f"{needed(f)} close together; {f['free']} {is_are(f['free'])} free, "
        f"but at most {f['largest_block']} on one node."
    )
    return Reason(code="fragmentation", facts=f, text=text)


def _topology(state: State, job: Job, row: int) -> Reason:
    f, wish = facts_of(state, job, row), job.spec.topology
    f |= {"wish": wish.mode, "level": wish.level or "any"}
    how = {
        "require": f"in one {wish.level}",
        "spread": f"each in another {wish.level or 'node'}",
        "prefer": "with each worker whole on one node" if job.spec.roles else "close together",
    }[wish.mode]
    text = (
        f"{needed(f)}, {how}, and there is no such place now; "
        f"{f['free']} {is_are(f['free'])} free in all."
    )
    return Reason(code="topology", facts=f, text=text)


def _resources(state: State, job: Job, row: int) -> Reason:
    f = facts_of(state, job, row) | {"cpus": job.spec.cpus, "memory": job.spec.memory}
    each = "what its roles ask for"
    if not job.spec.roles:
        parts = [f"{job.spec.cpus:g} CPUs"] * (job.spec.cpus > 0)
        parts += [f"{format_size(job.spec.memory)} of memory"] * (job.spec.memory > 0)
        each = f"the {' and '.join(parts)} it asks for beside each"
    text = f"{needed(f)}; {f['free']} {is_are(f['free'])} free, but not with {each}."
    return Reason(code="resources", facts=f, text=text)


def _quota(state: State, job: Job, row: int) -> Reason:
    import numpy as np  # not above: whoever only reads reasons does without

    f, table, queues = facts_of(state, job, row), state.table, state.queues
    q = int(table.queue[row])
    here, count = table.pool == table.pool[row], len(queues.names)
    mine = np.bincount(table.queue, table.size * here, count).astype(np.int64)
    elsewhere = np.bincount(table.queue, table.size * ~here, count).astype(np.int64)
    used = int(mine[q])
    f |= {"queue": job.spec.queue, "queue_uses": used}
    binding = queues.broken_by(q, str(f["kind"]), mine, int(f["needs"]), elsewhere)
    if binding is not None:
        f |= {"rule": binding.code, "allowed": binding.devices, "by": binding.queue}
        used = queues.with_those_below(binding.queue, mine)
        f |= {"queue_uses": used}
        rule = {
            "guarantee": f"queue {binding.queue} may not borrow beyond its {binding.devices}",
            "kind-limit": f"queue {binding.queue} may use {binding.devices} of that kind",
        }.get(binding.code, f"queue {binding.queue} may use {binding.devices}")
    else:
        entitled = state.entitled.get((q, int(table.pool[row])), 0)
        f |= {"rule": "share", "allowed": entitled, "by": job.spec.queue}
        rule = f"the share of queue {job.spec.queue} is {entitled} now, while others want theirs"
    text = f"{needed(f)}, but {rule}, and it uses {used}."
    return Reason(code="quota", facts=f, text=text)


def _queue(state: State, job: Job, row: int) -> Reason:
    code, queues = CODES[int(state.table.cause[row])], state.queues
    kind = state.topology.kinds[int(state.table.pool[row])]
    binding = queues.binding(int(state.table.queue[row]), kind)
    queue = binding.queue if binding is not None else job.spec.queue
    if code == "budget" and state.meter is not None and binding is None:
        return _used_up(state.meter)
    why = "is paused" if code == "paused" else "has used up its budget"
    return Reason(code=code, facts={"queue": queue}, text=f"Queue {queue} {why}.")


def _used_up(meter: Meter) -> Reason:
    """Nothing runs for a while, so that a budget of the cluster is kept."""
    account = next((a for a in meter.accounts if a.is_used_up), meter.accounts[0])
    of, wait = account.budget.of, account.ends - meter.now
    facts: Facts = {"budget": of, "had": account.had, "spent": account.spent}
    text = f"The cluster has used up its {of} budget"
    if wait < INFINITY:
        facts["window_in_seconds"] = wait
        text += f"; the next window begins in {format_duration(wait)}"
    return Reason(code="budget", facts=facts, text=f"{text}.")


def _dependency(state: State, job: Job, row: int) -> Reason:
    names = ", ".join(sorted(job.waits_for))
    text = f"It waits for {names} to end."
    return Reason(code="dependency", facts={"after": names}, text=text)


def _held(state: State, job: Job, row: int) -> Reason:
    return Reason(code="held", text="It was parked by a user.", remedy="Let it go on")


def _kind(state: State, job: Job, row: int) -> Reason:
    usable = [k for p, k in enumerate(state.topology.kinds) if state.topology.usable(p)]
    wanted, there = ", ".join(job.spec.kinds), ", ".join(usable)
    text = f"It accepts only {wanted}; the cluster has {there or 'no devices'}."
    if not wanted:
        text = "The cluster has no devices."
    return Reason(code="kind", facts={"accepts": wanted, "cluster": there}, text=text)


def _too_big(state: State, job: Job, row: int) -> Reason:
    f = facts_of(state, job, row)
    broken = ailing(state, int(state.table.pool[row]))
    text = f"{needed(f)}; the cluster has {f['usable']} in working order"
    if broken:
        f["broken"] = len(broken)
        beyond = "; …" if len(broken) > 3 else ""
        verb = is_are(len(broken))
        text += f", and {len(broken)} that {verb} not ({'; '.join(broken[:3])}{beyond})"
    return Reason(code="too-big", facts=f, text=f"{text}.")


def ailing(state: State, pool: int) -> list[str]:
    """Devices of that kind that cannot be used, and what ails them, if that was said."""
    return [
        f"device {device} of {book.node.name}{': ' if note else ''}{note}"
        for book in state.nodes.values()
        if not book.down and state.topology.kinds.index(book.node.kind) == pool
        for device, note in sorted(book.unhealthy.items())
    ]


def _deadline(state: State, job: Job, row: int) -> Reason:
    f = facts_of(state, job, row)
    left = float(f.get("deadline_in_seconds", 0.0))
    when = f"is in {format_duration(left)}" if left > 0 else f"was {format_duration(-left)} ago"
    text = f"Its deadline {when} and can no longer be met; others are served first."
    return Reason(code="deadline", facts=f, text=text)


def _policy(state: State, job: Job, row: int) -> Reason:
    f = facts_of(state, job, row)
    return Reason(code="policy", facts=f, text="The policy lets it wait in favour of others.")


_WAITING: Final[dict[str, Callable[[State, Job, int], Reason]]] = {
    "none": _busy, "parked": _off, "preempted": _off, "lost": _off, "retry": _retry,
    "busy": _busy, "fragmentation": _fragmentation, "topology": _topology,
    "resources": _resources, "quota": _quota, "paused": _queue, "budget": _queue,
    "dependency": _dependency, "held": _held, "kind": _kind, "too-big": _too_big,
    "deadline": _deadline, "policy": _policy,
}  # fmt: skip

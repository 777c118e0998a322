"""Why a job waits or runs: a code, the numbers behind it, one sentence, the cheapest remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from bough.core.jobs import Job
    from bough.core.state import State

#: Codes of waiting, by the number kept in the column `cause`.
CODES: Final = (
    "none", "busy", "fragmentation", "topology", "resources", "quota", "paused", "budget",
    "dependency", "held", "kind", "too-big", "policy", "moving",
)  # fmt: skip
(
    NONE, BUSY, FRAGMENTATION, TOPOLOGY, RESOURCES, QUOTA, PAUSED, BUDGET,
    DEPENDENCY, HELD, KIND, TOO_BIG, POLICY, MOVING,
) = range(len(CODES))  # fmt: skip
NUMBER: Final = {code: i for i, code in enumerate(CODES)}


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """The same object in the CLI, the API, the web page and the simulator."""

    #: Machine-readable word.
    code: str
    #: The numbers and names the sentence is made from.
    facts: dict[str, int | float | str] = {}
    #: One plain sentence.
    text: str
    #: The cheapest thing that would change it; empty when there is nothing to do but wait.
    remedy: str = ""


def explain(state: State, id: str) -> Reason:
    """Why the job is where it is, from the state alone."""
    job = state.jobs.get(id)
    if job is None:
        how = state.ended.get(id)
        if how is None:
            return Reason(code="unknown", text=f"No job is called {id}.")
        return Reason(code=how, text=f"The job ended: {how}.")
    row = state.table.row(job)
    size = int(state.table.size[row])
    if job.held or job.place:
        return _running(state, job, size)
    code = CODES[int(state.table.cause[row])]
    return _WAITING[code](state, job, row)


def _running(state: State, job: Job, size: int) -> Reason:
    """A job that holds devices, or is about to."""
    place = state.topology.place(job.place)
    nodes = ", ".join(name for name, _ in place[:3]) + (" …" if len(place) > 3 else "")
    facts: dict[str, int | float | str] = {"devices": size, "nodes": len(place)}
    if not job.place:
        return Reason(code="stopping", facts=facts, text="It is being stopped.")
    if job.serial in state.pending:
        text = f"It has {size} devices on {nodes} and starts when others have left them."
        return Reason(code="moving", facts=facts, text=text)
    text = f"It runs on {size} {'device' if size == 1 else 'devices'} on {nodes}."
    return Reason(code="running", facts=facts, text=text)


def _facts(state: State, job: Job, row: int) -> dict[str, int | float | str]:
    """The numbers most sentences need."""
    table, topology = state.table, state.topology
    pool = int(table.pool[row])
    known = pool < len(topology.kinds)
    ready = (table.size == 0) & (table.ready == 1) & (table.pool == pool)
    return {
        "needs": int(table.min[row]),
        "free": topology.free(pool) if known else 0,
        "usable": topology.usable(pool) if known else 0,
        "largest_block": topology.largest_free(pool) if known else 0,
        "ahead": int(ready[:row].sum()),
        "kind": topology.kinds[pool] if known else "",
        "waited_seconds": float(state.now - table.since[row]),
    }


def _busy(state: State, job: Job, row: int) -> Reason:
    f = _facts(state, job, row)
    text = (
        f"It needs {f['needs']} {f['kind']} and {f['free']} of {f['usable']} are free; "
        f"{f['ahead']} jobs submitted earlier wait too."
    )
    least = int(state.table.min[row])
    remedy = f"Accept {f['free']} devices" if 0 < int(f["free"]) < least else ""
    return Reason(code="busy", facts=f, text=text, remedy=remedy)


def _fragmentation(state: State, job: Job, row: int) -> Reason:
    f = _facts(state, job, row)
    text = (
        f"It needs {f['needs']} {f['kind']} close together; {f['free']} are free, "
        f"but at most {f['largest_block']} on one node."
    )
    remedy = f"Accept {f['largest_block']} devices" if f["largest_block"] else ""
    return Reason(code="fragmentation", facts=f, text=text, remedy=remedy)


def _topology(state: State, job: Job, row: int) -> Reason:
    f = _facts(state, job, row)
    wish = job.spec.topology
    f |= {"wish": wish.mode, "level": wish.level or "any"}
    text = (
        f"It must have {f['needs']} {f['kind']} ({wish.mode} {wish.level or 'placement'}), "
        f"and no such place is free; {f['free']} are free elsewhere."
    )
    remedy = "Ask for `prefer` instead of `require`" if wish.mode == "require" else ""
    return Reason(code="topology", facts=f, text=text, remedy=remedy)


def _resources(state: State, job: Job, row: int) -> Reason:
    f = _facts(state, job, row) | {"cpus": job.spec.cpus, "memory": job.spec.memory}
    text = (
        f"{f['free']} {f['kind']} are free, but no node has besides them the CPUs and memory it "
        f"asks for ({job.spec.cpus:g} CPUs and {job.spec.memory} bytes for each device)."
    )
    return Reason(code="resources", facts=f, text=text, remedy="Ask for fewer CPUs or less memory")


def _quota(state: State, job: Job, row: int) -> Reason:
    f = _facts(state, job, row)
    used = int(state.table.size[state.table.queue == state.table.queue[row]].sum())
    f |= {"queue": job.spec.queue, "queue_uses": used}
    text = (
        f"Queue {job.spec.queue} uses {used} devices, all it is entitled to now; "
        f"the job needs {f['needs']} more."
    )
    return Reason(code="quota", facts=f, text=text, remedy="Submit to another queue")


def _queue(state: State, job: Job, row: int) -> Reason:
    code = CODES[int(state.table.cause[row])]
    why = "is paused" if code == "paused" else "has used up its budget"
    facts: dict[str, int | float | str] = {"queue": job.spec.queue}
    return Reason(code=code, facts=facts, text=f"Queue {job.spec.queue} {why}.",
                  remedy="Submit to another queue")  # fmt: skip


def _dependency(state: State, job: Job, row: int) -> Reason:
    names = ", ".join(sorted(job.waits_for))
    text = f"It waits for {names} to end."
    return Reason(code="dependency", facts={"after": names}, text=text)


def _held(state: State, job: Job, row: int) -> Reason:
    return Reason(code="held", text="It was parked by a user.", remedy="Let it go on")


def _kind(state: State, job: Job, row: int) -> Reason:
    wanted, there = ", ".join(job.spec.kinds), ", ".join(state.topology.kinds)
    text = f"It accepts only {wanted}; the cluster has {there or 'no devices'}."
    facts: dict[str, int | float | str] = {"accepts": wanted, "cluster": there}
    return Reason(code="kind", facts=facts, text=text, remedy=f"Accept {there}")


def _too_big(state: State, job: Job, row: int) -> Reason:
    f = _facts(state, job, row)
    text = f"It needs at least {f['needs']} {f['kind']}; the cluster has {f['usable']} usable."
    return Reason(code="too-big", facts=f, text=text, remedy=f"Accept {f['usable']} devices")


def _policy(state: State, job: Job, row: int) -> Reason:
    f = _facts(state, job, row)
    return Reason(code="policy", facts=f, text="The policy lets it wait in favour of others.")


_WAITING: Final[dict[str, Callable[[State, Job, int], Reason]]] = {
    "none": _busy, "busy": _busy, "fragmentation": _fragmentation, "topology": _topology,
    "resources": _resources, "quota": _quota, "paused": _queue, "budget": _queue,
    "dependency": _dependency, "held": _held, "kind": _kind, "too-big": _too_big,
    "policy": _policy, "moving": _busy,
}  # fmt: skip

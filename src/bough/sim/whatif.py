"""The same jobs under a change: other nodes, another policy, other queues; and who gains by it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np

from bough.core.cluster import Cluster, parse_short
from bough.core.model import Frozen, Node, Queue
from bough.core.units import parse_duration
from bough.errors import InputError, nearest
from bough.sim import parallel
from bough.sim.record import JobRecord, RunRecord
from bough.sim.runs import Setting, run
from bough.sim.trace import Trace

#: A week is looked at after as long a time before it has filled the cluster.
WARM_UP: Final = 1.0
#: Fields of a queue that `--set` may change.
SETTABLE: Final = (
    "guarantee", "limit", "weight", "borrow", "half_life", "budget_device_hours", "paused",
)  # fmt: skip


class Change(NamedTuple):
    """What is otherwise."""

    add: Sequence[str] = ()
    remove: Sequence[str] = ()
    #: None: the same.
    policy: str | None = None
    #: As `queue.vision.guarantee=64`.
    sets: Sequence[str] = ()


class Difference(Frozen, frozen=True):
    """What the jobs of one queue or user had before the change, and after it."""

    who: str  #: The queue or the user; empty: all.
    jobs: int  #: Submitted in the time that is looked at.
    done: tuple[int, int]  #: How many of them were done.
    mean_jct_seconds: tuple[float | None, float | None]  #: Of those done both before and after.
    mean_wait_seconds: tuple[float | None, float | None]  #: The same, until they first began.
    in_time: tuple[float | None, float | None]  #: Part of those with a deadline that kept it.
    device_hours: tuple[float, float]  #: Used by all of them.


# ----------------------------------------------------------------------------------- the change


def changed(setting: Setting, change: Change) -> Setting:
    """The same with all of the change but its policy."""
    cluster = setting.cluster
    for text in change.remove:
        cluster = without(cluster, text)
    for text in change.add:
        cluster = with_more(cluster, text)
    queues = setting.options.queues
    if change.sets:
        known = {job.spec.queue for job in setting.trace.jobs}
        queues = with_sets(queues, change.sets, known)
    options = msgspec.structs.replace(setting.options, queues=queues)
    return msgspec.structs.replace(setting, cluster=cluster, options=options)


def with_more(cluster: Cluster, text: str) -> Cluster:
    """With nodes that are written in the short form; they stand beside the others."""
    try:
        more = parse_short(text)
    except ValueError as error:
        raise InputError(str(error), field="--add") from None
    depth = max((len(node.path) for node in cluster.nodes), default=0)
    taken = {node.name for node in cluster.nodes}
    fresh: list[Node] = []
    for node in more.nodes:
        name = next(n for n in names_like(f"added-{node.name}") if n not in taken)
        taken.add(name)
        path = tuple(f"added-{part}" for part in node.path)[-depth:] if depth else ()
        path = ("added",) * (depth - len(path)) + path
        fresh.append(msgspec.structs.replace(node, name=name, path=path))
    return msgspec.structs.replace(cluster, nodes=(*cluster.nodes, *fresh))


def names_like(name: str) -> Iterable[str]:
    """The name, and others like it, without end."""
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def without(cluster: Cluster, name: str) -> Cluster:
    """Without a node, or all nodes of a domain of that name."""
    asked = plain(name)
    left = tuple(n for n in cluster.nodes if asked not in map(plain, (n.name, *n.path)))
    if len(left) == len(cluster.nodes):
        known = {n.name for n in cluster.nodes} | {part for n in cluster.nodes for part in n.path}
        hint = nearest(name, known)
        if not hint.startswith("did"):  # a cluster has too many to name them all
            hint = f"the first is {min(known)!r}"
        raise InputError(f"no node or domain is called {name!r}", field="--remove", hint=hint)
    if not left:
        raise InputError("no node would be left", field="--remove")
    names = {node.name for node in left}
    return msgspec.structs.replace(
        cluster, nodes=left, drained=tuple(n for n in cluster.drained if n in names),
        unhealthy={n: d for n, d in cluster.unhealthy.items() if n in names},
    )  # fmt: skip


def plain(name: str) -> str:
    """rack3 is rack-3."""
    return name.replace("-", "").lower()


def with_sets(
    queues: Sequence[Queue], sets: Sequence[str], in_trace: set[str]
) -> tuple[Queue, ...]:
    """With fields of some queues set anew."""
    found = {queue.name: queue for queue in queues}
    for text in sets:
        where, equals, value = text.partition("=")
        parts = where.split(".")
        if not equals or len(parts) < 3 or parts[0] != "queue":
            hint = "write queue.NAME.FIELD=VALUE, as queue.vision.guarantee=64"
            raise InputError(f"{text!r} cannot be set", field="--set", hint=hint)
        name, field = ".".join(parts[1:-1]), parts[-1]
        if name not in found and name not in in_trace:
            hint = nearest(name, {*found, *in_trace})
            raise InputError(f"no queue is called {name!r}", field="--set", hint=hint)
        if field not in SETTABLE:
            hint = nearest(field, SETTABLE)
            raise InputError(f"a queue has no {field!r}", field="--set", hint=hint)
        queue = found.get(name) or Queue(name=name)
        found[name] = with_field(queue, field, value)
    return tuple(found.values())


def with_field(queue: Queue, field: str, text: str) -> Queue:
    """A queue with one field set from a text."""
    given: dict[str, Any] = msgspec.to_builtins(queue)
    try:
        if field == "half_life":
            given["half_life_seconds"] = parse_duration(text)
        else:
            given[field] = None if text == "none" else text
        return msgspec.convert(given, Queue, strict=False)
    except (ValueError, msgspec.ValidationError) as error:
        raise InputError(str(error), field=f"--set queue.{queue.name}.{field}") from None


# ----------------------------------------------------------------------------------- the week


def last(trace: Trace, seconds: float) -> tuple[Trace, float]:
    """The last part of a trace with as long a time before it; and when the last part begins."""
    since = max(trace.jobs[-1].submit - seconds, trace.jobs[0].submit)
    begin = since - WARM_UP * seconds
    jobs = tuple(job for job in trace.jobs if job.submit >= begin)
    return msgspec.structs.replace(trace, jobs=jobs), since


def differences(
    before: RunRecord, after: RunRecord, by: Literal["queue", "user", ""], since: float = -math.inf
) -> list[Difference]:
    """By queue or by user, those first whose completion times change most; by "": one for all."""
    was = {job.id: job for job in before.jobs if job.submit >= since}
    will = {job.id: job for job in after.jobs if job.submit >= since}
    groups: dict[str, list[tuple[JobRecord, JobRecord]]] = {}
    for id, job in was.items():
        if id in will:
            groups.setdefault(getattr(job, by) if by else "", []).append((job, will[id]))
    found = [difference(who, pairs) for who, pairs in groups.items()]
    return sorted(found, key=lambda one: (-abs(gain(one)), one.who))


def difference(who: str, pairs: Sequence[tuple[JobRecord, JobRecord]]) -> Difference:
    """One group."""
    both = [pair for pair in pairs if all(job.state == "done" for job in pair)]
    dated = [pair for pair in pairs if pair[0].deadline < math.inf]

    def two(values: Any, pairs: Sequence[tuple[JobRecord, JobRecord]]) -> Any:
        return tuple(
            float(np.mean([values(pair[i]) for pair in pairs])) if pairs else None for i in (0, 1)
        )

    return Difference(
        who=who,
        jobs=len(pairs),
        done=tuple(sum(pair[i].state == "done" for pair in pairs) for i in (0, 1)),  # type: ignore[arg-type]
        mean_jct_seconds=two(lambda job: job.end - job.submit, both),
        mean_wait_seconds=two(lambda job: job.begin - job.submit, both),
        in_time=two(lambda job: job.state == "done" and job.end <= job.deadline, dated),
        device_hours=tuple(sum(p[i].device_seconds for p in pairs) / 3600.0 for i in (0, 1)),  # type: ignore[arg-type]
    )


def gain(one: Difference) -> float:
    """Seconds of completion that all jobs of a group gain."""
    before, after = one.mean_jct_seconds
    return 0.0 if before is None or after is None else (before - after) * one.jobs


def replayed(_: None, what: tuple[Setting, str], tell: parallel.Tell) -> RunRecord:
    """One of the two runs."""
    setting, policy = what
    return run(setting, policy, tell)

"""The cheapest change of a waiting job that would let it start now, proved by trying it out.

The present state is forked, the job is changed in the fork, and the policy is asked: what is
then started there would be started here. Nothing is promised that was not seen to work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from bough.core.amend import respec
from bough.core.model import JobSpec, Range, Tick, Wish
from bough.core.reason import CODES, many
from bough.core.standing import stand
from bough.core.state import CAUSE, State
from bough.core.units import format_size

if TYPE_CHECKING:
    from bough.core.jobs import Job
    from bough.core.scheduler import Scheduler

#: A change in words, and the job after it.
Change = tuple[str, JobSpec]

#: What may help against each cause, the cheapest for the user first.
HELP: Final[dict[str, tuple[str, ...]]] = {
    "busy": ("kinds", "fewer"),
    "parked": ("kinds", "fewer"),
    "preempted": ("kinds", "fewer"),
    "lost": ("kinds", "fewer"),
    "retry": ("kinds", "fewer"),
    "fragmentation": ("kinds", "fewer"),
    "topology": ("looser", "kinds", "fewer"),
    "resources": ("leaner", "kinds", "fewer"),
    "quota": ("queues", "fewer"),
    "paused": ("queues",),
    "budget": ("queues",),
    "kind": ("kinds",),
    "too-big": ("kinds", "fewer"),
    "policy": ("kinds", "fewer"),
}
#: How often CPUs and memory are halved on trial.
HALVINGS: Final = 6


def cheapest(scheduler: Scheduler, job: Job) -> str:
    """The first change that works; empty when none of those tried does."""
    row = scheduler.state.table.row(job)
    code = CODES[int(scheduler.state.table.wi[CAUSE, row])]
    if job.trouble is not None and job.trouble.again_at > scheduler.state.now:
        return ""  # it failed, and is not tried again before that
    if would_start(scheduler, job.id, job.spec):
        return ""  # it only waits for the next plan
    for words, spec in changes(scheduler.state, job, code):
        if would_start(scheduler, job.id, spec):
            return f"{words}, and it starts now"
    return ""


def would_start(scheduler: Scheduler, id: str, spec: JobSpec) -> bool:
    """Whether the waiting job would be given devices at once if this were asked instead."""
    fork = scheduler.fork()
    fork.settings = msgspec.structs.replace(fork.settings, round_seconds=0.0)
    state = fork.state
    job = state.jobs[id]
    respec(state, job, spec)
    stand(state, job)
    state.replan = True
    fork.handle([Tick(at=state.now)])
    return bool(job.place)


def changes(state: State, job: Job, code: str) -> Iterator[Change]:
    """What might help against this cause of waiting."""
    for way in HELP.get(code, ()):
        yield from WAYS[way](state, job.spec)


def fewer(state: State, spec: JobSpec) -> Iterator[Change]:
    """Accept fewer devices: what is free, what is free on one node, a power of two."""
    least = spec.sizes()[0]
    if spec.roles:
        return
    if len(spec.sizes()) > 1:
        rigid = msgspec.structs.replace(spec, devices=Range(min=least, max=least))
        yield f"Ask for {many(least)} only", rigid
    topology = state.topology
    pools = range(len(topology.kinds))
    found = {1 << p for p in range(least.bit_length())}
    found |= {topology.free(p) for p in pools} | {topology.largest_free(p) for p in pools}
    for size in sorted((s for s in found if 0 < s < least), reverse=True):
        devices = Range(min=size, max=spec.devices.max, steps=spec.devices.sizes())
        yield f"Accept {many(size)}", msgspec.structs.replace(spec, devices=devices)
        rigid = msgspec.structs.replace(spec, devices=Range(min=size, max=size))
        yield f"Ask for {many(size)} only", rigid


def looser(state: State, spec: JobSpec) -> Iterator[Change]:
    """Prefer a place instead of insisting on it."""
    if spec.topology.mode != "prefer":
        wish = Wish(mode="prefer", level=spec.topology.level)
        words = f"Ask for `prefer` instead of `{spec.topology.mode}`"
        yield words, msgspec.structs.replace(spec, topology=wish)


def leaner(state: State, spec: JobSpec) -> Iterator[Change]:
    """Ask for less beside each device."""
    for part in range(1, HALVINGS + 1):
        cpus, memory = spec.cpus / 2**part, spec.memory // 2**part
        words = [f"{cpus:g} CPUs"] * (cpus > 0) + [f"{format_size(memory)} of memory"] * (
            memory > 0
        )
        if words and not spec.roles:
            changed = msgspec.structs.replace(spec, cpus=cpus, memory=memory)
            yield f"Ask for only {' and '.join(words)} with each device", changed


def kinds(state: State, spec: JobSpec) -> Iterator[Change]:
    """Accept another kind of device too."""
    if spec.kinds:
        for kind in state.topology.kinds:
            if kind not in spec.kinds:
                changed = msgspec.structs.replace(spec, kinds=(*spec.kinds, kind))
                yield f"Accept {kind} too", changed


def queues(state: State, spec: JobSpec) -> Iterator[Change]:
    """Submit it elsewhere."""
    for name in state.queues.names:
        if name != spec.queue:
            yield f"Submit it to queue {name}", msgspec.structs.replace(spec, queue=name)


WAYS: Final = {
    "fewer": fewer, "looser": looser, "leaner": leaner, "kinds": kinds, "queues": queues,
}  # fmt: skip

"""A plain simulator of jobs, one object for each, as one writes it first: the baseline."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from bough.core.cluster import Cluster
from bough.core.model import JobSpec
from bough.core.speedup import Curve, SpeedBook
from bough.sim.trace import Trace

INFINITY = float("inf")
LAS_LIMIT = 3250.0
SLACK = 1e-6


@dataclass(eq=False)
class Job:
    """One job with everything about it."""

    id: str
    submit: float
    #: Sizes it allows, and those up to the one at which it is fastest.
    sizes: list[int]
    useful: list[int]
    speeds: dict[int, float]
    left: float
    size: int = 0
    place: dict[int, int] = field(default_factory=dict)
    #: Device-seconds used, and when it last started.
    used: float = 0.0
    started: float = INFINITY


#: From the live jobs and the devices to the sizes of those that run.
Decide = Callable[[list[Job], int], dict[str, int]]


def make_job(id: str, submit: float, spec: JobSpec, curve: Curve, work: float) -> Job:
    """A job that waits."""
    speeds = {size: curve.at(size) for size in spec.sizes() if curve.at(size) > 0}
    fastest = max(speeds, key=lambda s: (speeds[s], -s))
    return Job(id, submit, list(speeds), [s for s in speeds if s <= fastest], speeds, work)


# --------------------------------------------------------------------------------- policies


def leasts(jobs: list[Job], devices: int) -> dict[str, int]:
    """Everybody's least in order of arrival, until one does not fit."""
    sizes: dict[str, int] = {}
    for job in jobs:
        if job.sizes[0] > devices:
            break
        sizes[job.id] = job.sizes[0]
        devices -= job.sizes[0]
    return sizes


def max_min(jobs: list[Job], devices: int) -> dict[str, int]:
    """Everybody's least in order of arrival, then the smallest is raised, step by step."""
    sizes = leasts(jobs, devices)
    devices -= sum(sizes.values())
    climbing = jobs[: len(sizes)]
    while devices > 0 and climbing:
        able = []
        for job in climbing:
            above = [s for s in job.useful if s > sizes[job.id]]
            if above and above[0] - sizes[job.id] <= devices:
                able.append((above[0], job))
        if not able:
            break
        level = min(size for size, _ in able)
        climbing = [job for _, job in able]
        for size, job in able:
            if size == level and size - sizes[job.id] <= devices:
                devices -= size - sizes[job.id]
                sizes[job.id] = size
    return sizes


def greedy(jobs: list[Job], devices: int) -> dict[str, int]:
    """Everybody's least, then the step that gains most per device, again and again."""
    sizes = leasts(jobs, devices)
    devices -= sum(sizes.values())
    heap: list[tuple[float, int, int]] = []

    def offer(number: int) -> None:
        job = jobs[number]
        now, room = sizes[job.id], devices
        gains = [
            ((job.speeds[now] - job.speeds[size]) / (size - now), number, size)
            for size in job.useful
            if now < size <= now + room
        ]
        if gains:
            heapq.heappush(heap, min(gains))

    for number in range(len(sizes)):
        offer(number)
    while heap and devices > 0:
        _, number, size = heapq.heappop(heap)
        id = jobs[number].id
        if size - sizes[id] <= devices:
            devices -= size - sizes[id]
            sizes[id] = size
        offer(number)
    return sizes


def in_turn(order: list[Job], devices: int, skip: bool) -> dict[str, int]:
    """Each its largest size while devices last."""
    sizes: dict[str, int] = {}
    for job in order:
        if job.sizes[-1] <= devices:
            sizes[job.id] = job.sizes[-1]
            devices -= job.sizes[-1]
        elif not skip:
            break
    return sizes


def fifo(jobs: list[Job], devices: int) -> dict[str, int]:
    """Those that run, then in order of arrival, until one does not fit."""
    return in_turn(sorted(jobs, key=lambda j: not j.size), devices, skip=False)


def srtf(jobs: list[Job], devices: int) -> dict[str, int]:
    """Those with least time left first."""
    order = sorted(jobs, key=lambda j: j.left / j.speeds[j.sizes[-1]])
    return in_turn(order, devices, skip=True)


def las(jobs: list[Job], devices: int) -> dict[str, int]:
    """Those that used little first; among these, those that run, by when they started."""
    order = sorted(jobs, key=lambda j: (j.used >= LAS_LIMIT - SLACK, not j.size, j.started))
    return in_turn(order, devices, skip=True)


def las_change(jobs: list[Job]) -> float:
    """Seconds until the next job falls to the second queue of `las`."""
    falls = [(LAS_LIMIT - j.used) / j.size for j in jobs if j.size and j.used < LAS_LIMIT - SLACK]
    return min(falls, default=INFINITY)


POLICIES: dict[str, Decide] = {
    "max_min": max_min, "greedy": greedy, "fifo": fifo, "srtf": srtf, "las": las,
}  # fmt: skip

# --------------------------------------------------------------------------------- places


def place(job: Job, more: int, free: list[int]) -> None:
    """Best fit on one node, else on as many as it takes, the emptiest first."""
    fitting = [n for n in range(len(free)) if free[n] >= more]
    if fitting:
        nodes = [min(fitting, key=lambda n: free[n])]
    else:
        nodes = sorted((n for n in range(len(free)) if free[n]), key=lambda n: -free[n])
    for node in nodes:
        part = min(more, free[node])
        free[node] -= part
        job.place[node] = job.place.get(node, 0) + part
        more -= part
        if not more:
            return


def vacate(job: Job, less: int, free: list[int]) -> None:
    """Leave the nodes with fewest devices first."""
    for node in sorted(job.place, key=lambda n: job.place[n]):
        part = min(less, job.place[node])
        free[node] += part
        job.place[node] -= part
        less -= part
        if not job.place[node]:
            del job.place[node]
        if not less:
            return


# --------------------------------------------------------------------------------- the loop


def advance(live: list[Job], seconds: float) -> None:
    """All that run make progress."""
    for job in live:
        if job.size:
            job.left -= job.speeds[job.size] * seconds
            job.used += job.size * seconds


def settle(live: list[Job], want: dict[str, int], free: list[int], now: float) -> None:
    """First all that shrink or stop, then all that grow or start."""
    for job in live:
        size = want.get(job.id, 0)
        if size < job.size:
            vacate(job, job.size - size, free)
            job.size = size
    for job in live:
        size = want.get(job.id, 0)
        if size > job.size:
            if not job.size:
                job.started = now
            place(job, size - job.size, free)
            job.size = size


def read(trace: Trace, cluster: Cluster) -> list[Job]:
    """The jobs of a trace; speeds are looked up where the trace does not tell them."""
    book = SpeedBook(trace.kind or cluster.nodes[0].kind)
    jobs = []
    for row in trace.jobs:
        curve = row.curve or book.curve(row.spec.model, row.spec.batch, cluster.nodes[0].kind)
        work = row.seconds * curve.at(row.devices)
        jobs.append(make_job(row.id, row.submit, row.spec, curve, work))
    return jobs


def simulate(trace: Trace, cluster: Cluster, policy: str = "max_min") -> float:
    """Mean completion time, decided anew at every arrival and end."""
    decide = POLICIES[policy]
    arrivals = read(trace, cluster)
    free = [node.devices for node in cluster.nodes]
    devices, now, arrived, live, ends = sum(free), 0.0, 0, list[Job](), list[float]()
    while arrived < len(arrivals) or live:
        running = [job for job in live if job.size]
        end = now + min((job.left / job.speeds[job.size] for job in running), default=INFINITY)
        at = min(end, arrivals[arrived].submit if arrived < len(arrivals) else INFINITY)
        if policy == "las":
            at = min(at, now + las_change(running))
        advance(live, at - now)
        now = at
        for job in running:
            if job.left <= SLACK * job.speeds[job.size]:
                live.remove(job)
                vacate(job, job.size, free)
                ends.append(now - job.submit)
        while arrived < len(arrivals) and arrivals[arrived].submit <= at:
            live.append(arrivals[arrived])
            arrived += 1
        settle(live, decide(live, devices), free, now)
    return sum(ends) / len(ends)

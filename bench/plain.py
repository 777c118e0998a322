"""A plain simulator of elastic jobs, one object for each, as one writes it first: the baseline."""

from __future__ import annotations

from dataclasses import dataclass, field

from bough.core.cluster import Cluster
from bough.core.speedup import SpeedBook
from bough.sim.trace import Trace


@dataclass
class Job:
    """One job with everything about it."""

    id: str
    submit: float
    sizes: list[int]
    speeds: dict[int, float]
    left: float
    size: int = 0
    place: dict[int, int] = field(default_factory=dict)
    end: float = 0.0


def peak(job: Job) -> list[int]:
    """Sizes up to the fastest."""
    best = max(job.sizes, key=lambda s: (job.speeds[s], -s))
    return [s for s in job.sizes if s <= best]


def max_min(jobs: list[Job], devices: int) -> dict[str, int]:
    """Everybody's least in order of arrival, then the smallest is raised, step by step."""
    sizes: dict[str, int] = {}
    for job in jobs:
        if job.sizes[0] > devices:
            break
        sizes[job.id] = job.sizes[0]
        devices -= job.sizes[0]
    steps = {job.id: peak(job) for job in jobs if job.id in sizes}
    climbing = [job for job in jobs if job.id in sizes]
    while devices > 0 and climbing:
        able = []
        for job in climbing:
            above = [s for s in steps[job.id] if s > sizes[job.id]]
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


def place(job: Job, more: int, free: list[int]) -> None:
    """Best fit on one node, else on as many as it takes, the fullest first."""
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


def simulate(trace: Trace, cluster: Cluster) -> float:
    """Mean completion time under max-min, replanned at every arrival and end."""
    book = SpeedBook(trace.kind or cluster.nodes[0].kind)
    free = [node.devices for node in cluster.nodes]
    devices, now, arrived, live, ends = sum(free), 0.0, 0, list[Job](), list[float]()
    arrivals = []
    for row in trace.jobs:
        curve = row.curve or book.curve(row.spec.model, row.spec.batch, cluster.nodes[0].kind)
        sizes = [s for s in row.spec.sizes() if curve.at(s) > 0]
        work = row.seconds * curve.at(row.devices)
        arrivals.append(Job(row.id, row.submit, sizes, {s: curve.at(s) for s in sizes}, work))
    while arrived < len(arrivals) or live:
        running = [job for job in live if job.size]
        first = min(running, key=lambda j: j.left / j.speeds[j.size], default=None)
        end = now + first.left / first.speeds[first.size] if first else float("inf")
        at = min(end, arrivals[arrived].submit if arrived < len(arrivals) else float("inf"))
        for job in running:
            job.left -= job.speeds[job.size] * (at - now)
        now = at
        if first is not None and end <= at:
            live.remove(first)
            vacate(first, first.size, free)
            ends.append(now - first.submit)
        else:
            live.append(arrivals[arrived])
            arrived += 1
        want = max_min(live, devices)
        for job in live:
            if want.get(job.id, 0) < job.size:
                vacate(job, job.size - want.get(job.id, 0), free)
                job.size = want.get(job.id, 0)
        for job in live:
            if want.get(job.id, 0) > job.size:
                place(job, want[job.id] - job.size, free)
                job.size = want[job.id]
    return sum(ends) / len(ends)

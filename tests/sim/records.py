"""Runs made by hand, small enough to work out every number in the head."""

from __future__ import annotations

from typing import Any

from bough.sim.record import JobRecord, RunRecord


def job(id: str, submit: float, begin: float, end: float, wish: int = 1, **more: Any) -> JobRecord:
    """A job that ran from begin to end on the devices it wished for, and is done."""
    seconds = end - begin
    known: dict[str, Any] = {
        "begin": begin,
        "end": end,
        "state": "done",
        "ideal_seconds": seconds,
        "fastest_seconds": seconds,
        "least_device_seconds": seconds * wish,
        "device_seconds": seconds * wish,
        "waits": {"capacity": begin - submit} if begin > submit else {},
        "sizes": [(begin, wish), (end, 0)],
    }
    return JobRecord(id, "ada", "default", "best-effort", wish, submit, **(known | more))


def run(jobs: list[JobRecord], devices: int = 4, **more: Any) -> RunRecord:
    """A run of these jobs on one node; who held how much is worked out from their sizes."""
    changes = sorted((when, job.id, size) for job in jobs for when, size in job.sizes)
    held: dict[str, int] = {}
    used, usage = 0, [(0.0, 0, devices, devices)]
    for when, name, size in changes:
        used += size - held.get(name, 0)
        held[name] = size
        usage.append((when, used, devices - used, devices - used))
    known: dict[str, Any] = {
        "policy": "fifo",
        "cluster": f"{devices}xcpu",
        "trace": "by hand",
        "seed": 0,
        "devices": devices,
        "ended": max((job.end for job in jobs), default=0.0),
        "usage": usage,
        "node_names": ["node-0"],
        "node_devices": [devices],
        "decision_seconds": [0.001, 0.003],
        "cpu_seconds": 0.5,
        "events": 2 * len(jobs),
    }
    return RunRecord(**(known | {"jobs": jobs} | more))

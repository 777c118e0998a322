"""What a trace is like in numbers: for people who look before they simulate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from bough.core.model import JobSpec
from bough.sim.trace import Trace

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Models, users and queues are told by name up to here.
NAMES_MAX = 10
PERCENTILES = (50, 90, 99)


def facts(trace: Trace) -> dict[str, Any]:
    """Counts, spans, work and shares, as plain data."""
    jobs = trace.jobs
    specs = [job.spec for job in jobs]
    seconds = np.array([job.seconds for job in jobs])
    submit = np.array([job.submit for job in jobs])
    devices = np.array([job.devices for job in jobs])
    span = trace.span_seconds()
    work = trace.device_seconds()
    p50, p90, p99 = np.percentile(seconds, PERCENTILES).tolist()
    return {
        "name": trace.name,
        "format": trace.format,
        "kind": trace.kind,
        "epoch": trace.epoch,
        "jobs": len(jobs),
        "problems": len(trace.problems),
        "first_submit_seconds": float(submit[0]),
        "span_seconds": span,
        "mean_interarrival_seconds": span / (len(jobs) - 1) if len(jobs) > 1 else 0.0,
        "mean_seconds": float(seconds.mean()),
        "p50_seconds": p50,
        "p90_seconds": p90,
        "p99_seconds": p99,
        "max_seconds": float(seconds.max()),
        "device_hours": work / 3600,
        #: Devices that the work would keep busy from the first submission to the last.
        "mean_demand_devices": work / span if span else None,
        "max_devices": int(devices.max()),
        "elastic_share": share(spec.sizes()[0] < spec.sizes()[-1] for spec in specs),
        "deadline_share": share(has_deadline(spec) for spec in specs),
        "guaranteed_share": share(spec.service == "guaranteed" for spec in specs),
        "failing_share": share(job.fails_at is not None for job in jobs),
        "sizes": sizes(devices, seconds),
        "models": most_common(spec.model for spec in specs),
        "users": most_common(spec.user for spec in specs),
        "queues": most_common(spec.queue for spec in specs),
    }


def has_deadline(spec: JobSpec) -> bool:
    """An absolute deadline or one after submission."""
    return spec.deadline is not None or spec.deadline_after is not None


def share(of: Iterable[bool]) -> float:
    """How many of the truths are true."""
    truths = [bool(truth) for truth in of]
    return sum(truths) / len(truths)


def sizes(devices: Ints, seconds: Floats) -> list[dict[str, float]]:
    """Jobs and work by size, in groups up to each power of two."""
    groups = np.ceil(np.log2(devices)).astype(int)
    work = np.bincount(groups, weights=devices * seconds)
    counts = np.bincount(groups)
    return [
        {
            "devices_max": 1 << group,
            "jobs": int(count),
            "jobs_share": count / len(devices),
            "work_share": float(work[group] / work.sum()),
        }
        for group, count in enumerate(counts.tolist())
        if count
    ]


def most_common(names: Iterable[str]) -> dict[str, Any]:
    """How many there are, and the most frequent of those that have a name."""
    counts = Counter(names)
    counts.pop("", None)
    return {"count": len(counts), "most": dict(counts.most_common(NAMES_MAX))}

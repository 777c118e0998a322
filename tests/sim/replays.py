"""Replays small enough to work out in the head, and what must be true of every one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from bough.core.cluster import parse_short
from bough.core.model import JobSpec, Range
from bough.core.speedup import Curve
from bough.policies import find
from bough.sim.engine import simulate
from bough.sim.options import Options, Tools
from bough.sim.record import JobRecord, RunRecord
from bough.sim.trace import Trace, TraceJob

#: Twice the devices, twice the speed.
LINEAR = Curve(sizes=(1, 2, 4, 8), speed=(1.0, 2.0, 4.0, 8.0))


def job(
    id: str,
    submit: float,
    seconds: float,
    devices: int = 1,
    *,
    least: int = 0,
    most: int = 0,
    steps: tuple[int, ...] = (),
    curve: Curve | None = LINEAR,
    fails_at: float | None = None,
    **spec: Any,
) -> TraceJob:
    """A job that takes so long on so many devices; rigid unless it is told otherwise."""
    asked: dict[str, Any] = {
        "devices": Range(min=least or devices, max=most or devices, steps=steps),
        "estimate_seconds": seconds,
        "estimate_devices": devices,
    }
    return TraceJob(
        id=id,
        submit=submit,
        seconds=seconds,
        devices=devices,
        curve=curve,
        fails_at=fails_at,
        spec=JobSpec(name=id, **(asked | spec)),
    )


def replay(
    jobs: Sequence[TraceJob],
    cluster: str = "4xv100",
    policy: str = "fifo",
    tools: Tools | None = None,
    **options: Any,
) -> RunRecord:
    """The jobs under a policy in a world with these options."""
    trace = Trace(name="by hand", jobs=tuple(jobs))
    return simulate(trace, parse_short(cluster), find(policy), Options(**options), tools)


def found(record: RunRecord) -> dict[str, JobRecord]:
    """The records by the jobs' names."""
    return {job.id: job for job in record.jobs}


def held_and_waited(job: JobRecord, until: float) -> tuple[float, float]:
    """Device-seconds, and seconds without any device, as the course of its size tells them."""
    end = until if math.isnan(job.end) else job.end
    held = waited = 0.0
    before, size = job.submit, 0
    for at, after in [*job.sizes, (end, 0)]:
        assert at >= before, f"job {job.id} goes back in time: {job.sizes}"
        held += size * (at - before)
        waited += 0.0 if size else at - before
        before, size = at, after
    return held, waited


def assert_books_agree(record: RunRecord) -> None:
    """Seconds are counted once, work is done or lost, and no device is held twice."""
    for one in record.jobs:
        held, waited = held_and_waited(one, record.ended)
        assert one.device_seconds == pytest.approx(held, abs=1e-4)
        assert math.fsum(one.waits.values()) == pytest.approx(waited, abs=1e-4)
        assert one.lost_device_seconds <= one.device_seconds + 1e-4
        if one.state == "done":
            useful = one.device_seconds - one.lost_device_seconds
            assert useful >= one.least_device_seconds * (1 - 1e-9) - 1e-4
    changes = sorted(
        (at, row, number, size)
        for row, one in enumerate(record.jobs)
        for number, (at, size) in enumerate(one.sizes)
    )
    sizes: dict[int, int] = {}
    for (at, row, _, size), after in zip(changes, [*changes[1:], None], strict=False):
        sizes[row] = size
        if after is None or after[0] > at:
            assert sum(sizes.values()) <= record.devices, f"more than there are at {at}"

"""One published number beside ours, with the reason why they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from bough.errors import InputError
from bough.sim.record import RunRecord

#: Ends this little after a whole second are ends at it: sums of times are rounded.
SLACK_SECONDS = 1e-6


class Row(msgspec.Struct, frozen=True):
    """One number."""

    #: As `peer/trace`.
    trace: str
    policy: str
    metric: str
    ours: float
    theirs: float
    #: Of theirs: 0.01 when ours is one hundredth larger.
    difference: float
    cause: str


class Cause(NamedTuple):
    """What is true when the numbers agree to the last digit that was printed, and when not."""

    agree: str
    differ: str = "not explained: ours was the same when this was written"


def compare(
    trace: str,
    policy: str,
    ours: Mapping[str, float],
    theirs: Mapping[str, str],
    cause: Cause,
) -> Iterator[Row]:
    """A row for each of their numbers, which are given as they printed them."""
    for metric, printed in theirs.items():
        value = float(printed)
        digits = len(printed.partition(".")[2])
        agree = abs(ours[metric] - value) <= 0.5000001 * 10.0**-digits
        yield Row(
            trace,
            policy,
            metric,
            ours[metric],
            value,
            ours[metric] / value - 1.0,
            cause.agree if agree else cause.differ,
        )


def measures(record: RunRecord, *, since: float = 0.0, whole: bool = False) -> dict[str, float]:
    """The metrics that peers print; with `whole`, jobs end at whole seconds.

    Makespans count from `since`. The 99th percentile is the peers': the job at 99 % of the sorted
    list, without interpolation.
    """
    unfinished = [job.id for job in record.jobs if job.state != "done"]
    assert not unfinished, f"jobs that did not end: {unfinished[:3]}"
    end = np.array([job.end for job in record.jobs])
    if whole:
        end = np.ceil(end - SLACK_SECONDS)
    jct = end - np.array([job.submit for job in record.jobs])
    in_time = end <= np.array([job.deadline for job in record.jobs])
    return {
        "mean_jct_seconds": float(jct.mean()),
        "p99_jct_seconds": float(np.sort(jct)[int(0.99 * len(jct))]),
        "makespan_seconds": float(end.max()) - since,
        "deadline_ratio": float(in_time.mean()),
        "jobs_in_time": float(in_time.sum()),
    }


def published(data: Path, name: str) -> Path:
    """A file of the public data, gzipped or not."""
    for path in (data / name, data / f"{name}.gz"):
        if path.exists():
            return path
    hint = "docs/fidelity.md says where it is published"
    raise InputError("this part of the public data is absent", file=str(data / name), hint=hint)

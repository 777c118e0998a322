"""Pollux (OSDI '21): its Tiresias baseline, on workloads of measured applications.

A job's speed depends on where its devices are, by the measured step times of each placement; and
every epoch takes a whole number of seconds, which for short ones is a sizeable rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from bough.core.cluster import parse_short
from bough.core.speedup import Curve
from bough.sim.engine import Engine, simulate
from bough.sim.formats.pollux_profile import Floats, Profile
from bough.sim.options import Options, Tools
from bough.sim.record import RunRecord
from bough.sim.reproduce.lists import ListLas
from bough.sim.reproduce.places import freest_first, place_by
from bough.sim.reproduce.rows import Cause, Row, compare, measures, published
from bough.sim.trace import Reading, Trace, read_trace
from bough.sim.world import Running

CLUSTER: Final = "16x4xt4"
#: 16 device-hours.
LIMITS: Final = (57_600.0,)
OPTIONS: Final = Options(
    round_seconds=60.0, start_seconds=30.0, locality_seconds=0.0, moving_share=0.0
)
#: The odd-numbered workloads of the authors' summary, job by job of which their means are.
THEIRS: Final = {
    "workload-1": "2473.65", "workload-3": "3876.25625", "workload-5": "3501.0125",
    "workload-7": "5479.9125",
}  # fmt: skip

THEIR_PLACES = Cause(
    "the same",
    "places that nobody measured: theirs interpolates between the measured ones in three "
    "dimensions, ours takes the measurement with as many nodes and devices, or the most compact "
    "place (with their interpolation, workload-1 is off by +0.07 %); and a job that changes "
    "places rounds its epochs as if it had always been where it is. On workload-3, 158 of 160 "
    "jobs end within a second of theirs",
)
OUR_PLACES = Cause(
    "the same",
    "theirs takes devices from the node that has most free, so that many a job is spread over "
    "more nodes and slower, and rounds the time of every epoch to whole seconds; ours places "
    "jobs compactly and rounds nothing",
)


def rows(data: Path) -> Iterator[Row]:
    """Both workloads, with their places and speeds and with ours."""
    folder = published(data, "pollux-osdi21/traces")
    for name, printed in THEIRS.items():
        path = published(data, f"pollux-osdi21/workloads/{name}.csv")
        trace = read_trace(path, Reading(profiles=folder))
        theirs = {"mean_jct_seconds": printed}
        ours = measures(with_their_places(trace, folder))
        yield from compare(f"pollux/{name}", "las", ours, theirs, THEIR_PLACES)
        ours = measures(simulate(trace, parse_short(CLUSTER), baseline(), OPTIONS))
        yield from compare(f"pollux/{name}, our places", "las", ours, theirs, OUR_PLACES)


def baseline() -> ListLas:
    """Two queues; nobody is moved behind anybody, and falls are seen at the rounds."""
    return ListLas(limits=LIMITS, whole_seconds=False, running_first=False)


def with_their_places(trace: Trace, folder: Path) -> RunRecord:
    """One replay with devices taken from the freest node, at the speeds measured there."""
    engine = Engine(trace, parse_short(CLUSTER), baseline(), OPTIONS, Tools())
    place_by(engine, freest_first)
    models = {job.spec.model for job in trace.jobs}
    profiles = {model: Profile.read(folder / model) for model in models}

    def rate(job: Running, _: Curve) -> float:
        spec = job.job.spec
        digits = [len(devices) for _, devices in job.place]
        return job.work / whole_seconds(profiles[spec.model], digits, spec.batch)

    vars(engine.world)["rate"] = rate
    return engine.run()


def whole_seconds(profile: Profile, digits: list[int], batch: int) -> float:
    """Run time on a place of so many devices of each node, epoch by epoch in whole seconds."""
    devices = sum(digits)
    local, accumulated = profile.split(devices, batch)
    step, sync = measured(profile, digits, local)
    epochs = worth(profile, devices * local * (accumulated + 1))
    return float(np.round(epochs * (step + (step - sync) * accumulated)).sum())


def worth(profile: Profile, batch: int) -> Floats:
    """Steps of that batch in each epoch: progress over the gain of a step."""
    count = min(len(table) for table in profile.epochs.values())
    progress = np.min([table[:count, 0] for table in profile.epochs.values()], axis=0)
    square, variance = profile.gradient(batch, count)
    scale = batch / min(profile.epochs)
    found: Floats = np.diff(progress, prepend=0.0) * (variance / scale + square)
    return found / (variance + square)


def measured(profile: Profile, digits: list[int], local: int) -> tuple[float, float]:
    """A step's seconds, and those of them that wait, as measured on the most similar place."""
    turns = ["".join(map(str, digits[i:] + digits[:i])) for i in range(len(digits))]
    table = profile.steps.get(min(turns))
    if table is None:
        table = profile.steps.get((len(digits), sum(digits)))
    if table is None:
        return profile.step_seconds(sum(digits), local)
    step, sync = (float(np.interp(local, table[0], table[i])) for i in (1, 2))
    return step, sync

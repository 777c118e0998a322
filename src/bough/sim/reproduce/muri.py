"""Muri (SIGCOMM '22): its fork of Tiresias' simulator, exact to the last printed digit.

Its released code takes a start-up time of 4 to 46 seconds off the progress of every running job at
every event. The numbers of `rows` are from the same code with that time set to zero, which makes
it an oracle: all that remains are the order of jobs and their places.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from bough.core.cluster import parse_short
from bough.core.policy import Policy
from bough.policies import find
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.reproduce.lists import ListLas
from bough.sim.reproduce.places import counted
from bough.sim.reproduce.rows import Cause, Row, compare, measures, published
from bough.sim.trace import Trace, TraceJob, read_text, read_trace

#: An iteration takes so much longer than profiled when jobs are scheduled at all.
SLOWDOWN: Final = 1.015
LIMITS: Final = (3250.0, 7200.0)

#: (trace, policy): mean JCT, 99th percentile and makespan without start-up times.
ORACLE: Final = {
    ("trace1", "srtf"): ("1377148.986", "16839723.955", "26034155.456"),
    ("trace1", "srsf"): ("975401.097", "15395268.839", "26000869.494"),
    ("trace1", "las"): ("3261561.768", "14693288.055", "23513269.183"),
    ("trace3", "srtf"): ("190377.377", "4501678.817", "8173902.669"),
    ("trace3", "srsf"): ("183965.978", "3666482.586", "8173902.669"),
    ("trace3", "las"): ("340306.277", "4957927.362", "8173902.669"),
}
#: The same as the authors print them, with start-up times: the mean JCT.
PRINTED: Final = {
    ("trace1", "srtf"): "1370603.198",
    ("trace1", "srsf"): "980140.570",
    ("trace1", "las"): "3330371.307",
    ("trace3", "srtf"): "193081.796",
    ("trace3", "srsf"): "185021.880",
    ("trace3", "las"): "347213.248",
}
METRICS: Final = ("mean_jct_seconds", "p99_jct_seconds", "makespan_seconds")

PLACED = Cause(
    "the same: at each event all jobs are placed anew, first fit over the nodes in their order, "
    "those that do not fit are passed over"
)
COUNTED = Cause(
    "the same: devices are counted and not placed, queues are lists, and a fall is looked for "
    "after a whole number of seconds (`las` itself lets those that wait go in another order: "
    "`bough reproduce muri-variants`)"
)
START_UP = Cause(
    "the same",
    "their released code takes a start-up time of 4 to 46 s off the progress of every running "
    "job at every event; with that time set to zero it gives our number",
)
OWN_ORDER = Cause(
    "the same",
    "those of a queue that wait go in order of their last start in `las`; in theirs they stand in "
    "a list, those stopped last before those that waited already, and a job that falls joins "
    "behind all of them, after a whole number of seconds. With that list the numbers are the same",
)


def rows(data: Path) -> Iterator[Row]:
    """Both traces under all three policies, on 8 nodes of 8."""
    for (name, policy), numbers in ORACLE.items():
        theirs = dict(zip(METRICS, numbers, strict=True))
        cause = COUNTED if policy == "las" else PLACED
        yield from compare(f"muri/{name}", policy, run(data, name, policy), theirs, cause)


def variants(data: Path) -> Iterator[Row]:
    """What the authors print, and what `las` makes of it with its own order."""
    for (name, policy), printed in PRINTED.items():
        theirs = {"mean_jct_seconds": printed}
        ours = run(data, name, policy)
        yield from compare(f"muri/{name} as printed", policy, ours, theirs, START_UP)
    for name in ("trace1", "trace3"):
        text = f"las(limits=[{','.join(f'{limit:g}' for limit in LIMITS)}])"
        record = simulate(load(data, name), counted(64, "v100"), find(text))
        theirs = {METRICS[0]: ORACLE[name, "las"][0]}
        yield from compare(f"muri/{name}", text, measures(record), theirs, OWN_ORDER)


def run(data: Path, name: str, policy: str) -> dict[str, float]:
    """One replay."""
    trace = load(data, name)
    if policy == "las":
        record = simulate(trace, counted(64, "v100"), ListLas(limits=LIMITS))
    else:
        chosen: Policy = find(policy)
        options = Options(repack="first", locality_seconds=float("inf"))
        record = simulate(trace, parse_short("8x8xv100"), chosen, options)
    return measures(record)


def load(data: Path, name: str) -> Trace:
    """The trace, with run times from iterations: `duration` is not what the simulator uses."""
    path = published(data, f"muri/{name}.csv")
    trace = read_trace(path)
    seconds = {
        row["job_id"]: int(row["iterations"]) * float(row["iteration_time"]) * SLOWDOWN / 1000
        for row in csv.DictReader(read_text(path).splitlines())
    }
    jobs = tuple(lasting(job, seconds[job.id]) for job in trace.jobs)
    return msgspec.structs.replace(trace, jobs=jobs)


def lasting(job: TraceJob, seconds: float) -> TraceJob:
    """The job with another run time, which policies know."""
    spec = msgspec.structs.replace(job.spec, estimate_seconds=seconds)
    return msgspec.structs.replace(job, seconds=seconds, spec=spec)

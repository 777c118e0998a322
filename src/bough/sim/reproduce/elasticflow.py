"""ElasticFlow (ASPLOS '23): the baselines of its simulator, on its figures 8 and 10."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bough.core.speedup import SpeedBook
from bough.policies import find
from bough.sim.engine import Engine, simulate
from bough.sim.options import Options, Tools
from bough.sim.reproduce.overhead import ElasticFlowLas, OwingEngine
from bough.sim.reproduce.places import counted, replay_counted
from bough.sim.reproduce.rows import Cause, Row, compare, measures, published
from bough.sim.reproduce.slots import Slotted
from bough.sim.tables import read_speedups
from bough.sim.trace import Reading, read_trace

#: Most devices a job is ever given there.
LARGEST: Final = 64


class Setting(NamedTuple):
    """One figure's trace and cluster, and what their simulator says of both baselines."""

    name: str
    path: str
    kind: str
    devices: int
    slot_seconds: float
    #: Jobs that ended in time, mean JCT, makespan.
    edf: tuple[str, str, str]
    las: tuple[str, str, str]


SETTINGS: Final = (
    Setting(
        "figure 8a", "elasticflow/traces/elasticVpollux_e.csv", "t4", 64, 60.0,
        ("23", "163563.5", "1153215"), ("56", "136712.2", "892008"),
    ),
    Setting(
        "figure 10, 100 jobs", "elasticflow/traces/generated_fig10_100jobs_1500lam.csv", "a100",
        128, 240.0, ("92", "63318.8", "1358163"), ("100", "51045.4", "740161"),
    ),
    Setting(
        "figure 8b, cluster01", "elasticflow-traces/cluster01.csv", "a100", 512, 60.0,
        ("298", "76696.6", "2938907"), ("787", "12797.9", "2952871"),
    ),
)  # fmt: skip
METRICS: Final = ("deadline_ratio", "mean_jct_seconds", "makespan_seconds")

GREEDY = Cause(
    "the same: each job takes every free device up to the largest size of its table, decisions "
    "are a slot apart, devices are counted, and a resize costs nothing in this baseline"
)
LISTED = Cause(
    "the same: queues are lists, decisions a slot apart, and starts and restarts cost what they "
    "cost there"
)
SANE = Cause(
    "the same",
    "`edf` gives a job as many devices as make it fastest, theirs as many as there are even "
    "where that slows it down, and only at slots",
)


def rows(data: Path) -> Iterator[Row]:
    """Greedy EDF and Tiresias on every setting; EDF as bough has it on the first."""
    for setting in SETTINGS:
        yield from earliest_deadline(data, setting)
        yield from least_attained(data, setting)


def earliest_deadline(data: Path, setting: Setting) -> Iterator[Row]:
    """Their EDF, and ours."""
    tables = published(data, f"elasticflow/throughputs_{setting.kind.upper()}")
    book = read_speedups(tables, SpeedBook(setting.kind))
    reading = Reading(rates=book, kind=setting.kind, elastic_limit=LARGEST)
    trace = read_trace(published(data, setting.path), reading)
    cluster, tools = counted(setting.devices, setting.kind), Tools(speedups=book)
    since = trace.jobs[0].submit
    theirs = printed(setting.edf, len(trace.jobs))
    name = f"elasticflow/{setting.name}"
    greedy = Slotted(find("edf(greedy=true)"), setting.slot_seconds)
    record = replay_counted(Engine(trace, cluster, greedy, Options(), tools))
    ours = measures(record, since=since, whole=True)
    yield from compare(name, "edf(greedy=true)", ours, theirs, GREEDY)
    if setting is SETTINGS[0]:
        record = simulate(trace, cluster, find("edf"), Options(), tools)
        ours = measures(record, since=since, whole=True)
        yield from compare(name, "edf", ours, {METRICS[0]: theirs[METRICS[0]]}, SANE)


def least_attained(data: Path, setting: Setting) -> Iterator[Row]:
    """Tiresias as their baseline has it."""
    trace = read_trace(published(data, setting.path))
    policy = ElasticFlowLas(setting.slot_seconds)
    engine = OwingEngine(trace, counted(setting.devices, setting.kind), policy, Options())
    ours = measures(replay_counted(engine), since=trace.jobs[0].submit, whole=True)
    theirs = printed(setting.las, len(trace.jobs))
    yield from compare(f"elasticflow/{setting.name}", "las", ours, theirs, LISTED)


def printed(numbers: tuple[str, str, str], jobs: int) -> dict[str, str]:
    """Their numbers by metric; the ratio to more digits than they print."""
    in_time, *others = numbers
    return dict(zip(METRICS, (f"{int(in_time) / jobs:.9f}", *others), strict=True))

"""Policies that let devices by the lease, on ElasticFlow's figures: Themis and Chronus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bough.core.cluster import parse_short
from bough.policies import find
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.reproduce.rows import Cause, Row, compare, measures, published
from bough.sim.trace import read_trace

#: About what a restart costs there: 27 s, and 2 s for each doubling of the devices and two more.
START_SECONDS: Final = 30.0


class Case(NamedTuple):
    """One figure's trace and cluster, and what is printed of both: deadline ratio, mean JCT."""

    name: str
    path: str
    cluster: str
    themis: tuple[str, ...]
    chronus: tuple[str, ...] = ()


METRICS: Final = ("deadline_ratio", "mean_jct_seconds")
OTHER_DRAW: Final = (
    ". The published trace is another draw of deadlines than the figure's: their Tiresias keeps "
    ".493 of them on cluster01, the figure prints .478"
)
THEMIS: Final = Cause(
    "the same",
    "theirs solves a convex program for the share of time of each job that makes the worst ratio "
    "least, and serves by share over rounds received; ours has the auction of the paper. Each "
    "start costs 30 s in ours, by size in theirs",
)
CHRONUS: Final = Cause(
    "the same",
    "not taken apart: their version of it needs a commercial solver, ours is greedy. Each start "
    "costs 30 s in ours, by size in theirs",
)
CASES: Final = (
    Case("figure 8a", "elasticflow/traces/elasticVpollux_e.csv", "16x4xt4", (".312",), (".262",)),
    Case(
        "figure 10, 100 jobs", "elasticflow/traces/generated_fig10_100jobs_1500lam.csv",
        "16x8xa100", (".99", "51243"),
    ),
    Case("figure 6b", "elasticflow-traces/195job.csv", "16x8xa100", (".3897",), (".4103",)),
    Case("figure 8b, cluster01", "elasticflow-traces/cluster01.csv", "64x8xa100",
         (".464",), (".474",)),
    Case("figure 8b, cluster03", "elasticflow-traces/cluster03.csv", "64x8xa100",
         (".389",), (".426",)),
    Case("figure 8b, cluster10", "elasticflow-traces/cluster10.csv", "32x8xa100",
         (".431",), (".454",)),
)  # fmt: skip


def rows(data: Path) -> Iterator[Row]:
    """Jobs keep the sizes they ask for, as they do there under these policies."""
    for case in CASES:
        trace = read_trace(published(data, case.path))
        for policy, printed, cause in (
            ("themis", case.themis, THEMIS), ("chronus", case.chronus, CHRONUS),
        ):  # fmt: skip
            if not printed:
                continue
            options = Options(start_seconds=START_SECONDS)
            record = simulate(trace, parse_short(case.cluster), find(policy), options)
            ours = measures(record, since=trace.jobs[0].submit, whole=True)
            theirs = dict(zip(METRICS, printed, strict=False))
            told = cause
            if case.name == "figure 6b":
                told = cause._replace(differ=f"{cause.differ}. The figure is of a real cluster")
            elif case.name.startswith("figure 8b"):
                told = cause._replace(differ=cause.differ + OTHER_DRAW)
            yield from compare(f"elasticflow/{case.name}", policy, ours, theirs, told)

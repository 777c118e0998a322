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
    """One figure's trace and cluster, a policy, and what is printed of it."""

    name: str
    path: str
    cluster: str
    policy: str
    theirs: dict[str, str]


THEMIS: Final = Cause(
    "the same",
    "theirs solves a convex program for the share of time of each job that makes the worst ratio "
    "least, and serves by share over rounds received; ours has the auction of the paper. Each "
    "start costs 30 s in ours, by size in theirs",
)
CHRONUS: Final = Cause(
    "the same",
    "not taken apart: their version of it needs a commercial solver, ours is greedy. Without a "
    "cost of starts ours keeps more deadlines still (.41)",
)
FIGURE_8A: Final = ("figure 8a", "elasticflow/traces/elasticVpollux_e.csv", "16x4xt4")
FIGURE_10: Final = (
    "figure 10, 100 jobs", "elasticflow/traces/generated_fig10_100jobs_1500lam.csv", "16x8xa100",
)  # fmt: skip
CASES: Final = (
    (Case(*FIGURE_8A, "themis", {"deadline_ratio": ".312"}), THEMIS),
    (Case(*FIGURE_8A, "chronus", {"deadline_ratio": ".262"}), CHRONUS),
    (
        Case(*FIGURE_10, "themis", {"deadline_ratio": ".99", "mean_jct_seconds": "51243"}),
        THEMIS,
    ),
)


def rows(data: Path) -> Iterator[Row]:
    """Jobs keep the sizes they ask for, as they do there under these policies."""
    for case, cause in CASES:
        trace = read_trace(published(data, case.path))
        options = Options(start_seconds=START_SECONDS)
        record = simulate(trace, parse_short(case.cluster), find(case.policy), options)
        ours = measures(record, since=trace.jobs[0].submit, whole=True)
        yield from compare(f"elasticflow/{case.name}", case.policy, ours, case.theirs, cause)

"""Tiresias (NSDI '19): the 60 jobs that come with its simulator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bough.core.cluster import parse_short
from bough.policies import find
from bough.sim.engine import Engine, simulate
from bough.sim.options import Options, Tools
from bough.sim.reproduce.lists import ListLas
from bough.sim.reproduce.places import counted, first_fit, place_by
from bough.sim.reproduce.rows import Cause, Row, compare, measures, published
from bough.sim.trace import read_trace

WIDTH: Final = 4
#: Nodes of four: (policy, mean JCT in seconds).
THEIRS: Final = {
    15: (("fifo", "178.42"), ("fifo(skip=true)", "178.42"), ("las", "178.42")),
    4: (("fifo", "219.18"), ("fifo(skip=true)", "219.18"), ("las", "190.68")),
}
#: With the places that bough chooses.
OWN_PLACES: Final = (("fifo(skip=true)", "219.18"),)

FIRST_FIT = Cause("the same: a job takes the first nodes with room and stays there")
STRICT = Cause(
    FIRST_FIT.agree,
    "a job that is granted devices but finds no place for them does not hold back those behind "
    "it, as their first in, first out does",
)
COUNTED = Cause("the same: devices are counted and not placed, queues are lists")
BEST_FIT = Cause(
    "the same",
    "theirs takes the first node with room, ours the one that is left fullest, which keeps "
    "whole nodes free for the jobs of eight; with their places the number is the same",
)


def rows(data: Path) -> Iterator[Row]:
    """On 15 and on 4 nodes of four."""
    trace = read_trace(published(data, "tiresias/60_job.csv"))
    options = Options(locality_seconds=float("inf"))
    for nodes, numbers in THEIRS.items():
        for policy, printed in numbers:
            if policy == "las":
                record = simulate(trace, counted(nodes * WIDTH, "v100"), ListLas())
                cause = COUNTED
            else:
                cluster = parse_short(f"{nodes}x{WIDTH}xv100")
                engine = Engine(trace, cluster, find(policy), options, Tools())
                place_by(engine, first_fit(WIDTH))
                record = engine.run()
                cause = STRICT if policy == "fifo" else FIRST_FIT
            theirs = {"mean_jct_seconds": printed}
            name = f"tiresias/60_job on {nodes}x{WIDTH}"
            yield from compare(name, policy, measures(record), theirs, cause)
    for policy, printed in OWN_PLACES:
        record = simulate(trace, parse_short(f"4x{WIDTH}xv100"), find(policy), options)
        theirs = {"mean_jct_seconds": printed}
        name = f"tiresias/60_job on 4x{WIDTH}, our places"
        yield from compare(name, policy, measures(record), theirs, BEST_FIT)

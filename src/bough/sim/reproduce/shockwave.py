"""Shockwave (NSDI '23): max-min fairness of its simulator, on one kind of device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bough.sim.engine import Engine
from bough.sim.options import Options, Tools
from bough.sim.reproduce.kinds import LeastAttained
from bough.sim.reproduce.places import counted, replay_counted
from bough.sim.reproduce.rows import Cause, Row, compare, measures, published
from bough.sim.trace import read_trace

ROUND_SECONDS: Final = 120.0
#: Lost when a job goes on that did not run in the round before.
START_SECONDS: Final = 20.0
PATH: Final = "shockwave/traces/{}_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace"
#: (trace, devices): mean JCT, makespan.
THEIRS: Final = {
    ("120_0.2_5_100_40_25", 32): ("11274.12", "33207.66"),
    ("900_0.2_5_100_5_15", 256): ("10223.47", "32206.49"),
}
METRICS: Final = ("mean_jct_seconds", "makespan_seconds")

FAIR = Cause(
    "the same",
    "theirs changes the batch sizes of jobs as they train, and with them their speeds ({dynamic} "
    "of {jobs} jobs in this trace), and shares time by a linear program whose shares start anew "
    "after 1,000 s or more; ours keeps the trace's run times and gives devices to whoever has used "
    "fewest since it came. Rounds of 120 s and 20 s lost at each start are the same",
)


def rows(data: Path) -> Iterator[Row]:
    """Both traces for which their outcomes are known."""
    for (name, devices), printed in THEIRS.items():
        trace = read_trace(published(data, PATH.format(name)))
        options = Options(round_seconds=ROUND_SECONDS, start_seconds=START_SECONDS)
        policy = LeastAttained(ROUND_SECONDS)
        engine = Engine(trace, counted(devices, "v100"), policy, options, Tools())
        ours = measures(replay_counted(engine))
        theirs = dict(zip(METRICS, printed, strict=True))
        dynamic = next(note.split()[0] for note in trace.notes if "batch size" in note)
        differ = FAIR.differ.format(dynamic=dynamic, jobs=len(trace.jobs))
        cause = FAIR._replace(differ=differ)
        yield from compare(f"shockwave/{name.partition('_')[0]} jobs", "las", ours, theirs, cause)

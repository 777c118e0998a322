"""Shockwave (NSDI '23): its market and the fair policies beside it, on one kind of device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bough.core.policy import Policy
from bough.policies import find
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
#: Of the first trace, what the authors print of their policy and of finish-time fairness.
MARKET_PRINTED: Final = ("9958.49", "24197.42")
AUCTION_PRINTED: Final = ("11301.98", "31928.74")
METRICS: Final = ("mean_jct_seconds", "makespan_seconds")

FAIR = Cause(
    "the same",
    "theirs changes the batch sizes of jobs as they train, and with them their speeds ({dynamic} "
    "of {jobs} jobs in this trace), and shares time by a linear program whose shares start anew "
    "after 1,000 s or more; ours keeps the trace's run times and gives devices to whoever has used "
    "fewest since it came. Rounds of 120 s and 20 s lost at each start are the same",
)

MARKET = Cause(
    "the same",
    "not taken apart: theirs changes the batch sizes of jobs as they train ({dynamic} of {jobs} "
    "jobs in this trace) and foretells what that does to their run times; ours keeps the trace's "
    "run times. How many rounds each job gets is found without an integer program, anew each "
    "round",
)
AUCTION = Cause(
    "the same",
    "not taken apart: theirs is a linear program for the worst ratio of finish times, on jobs "
    "whose batch sizes change ({dynamic} of {jobs} jobs in this trace); ours is the auction of "
    "Themis' paper, with leases of a round",
)


def rows(data: Path) -> Iterator[Row]:
    """Both traces for which their outcomes are known, and on the first the fair policies."""
    for name, printed in THEIRS.items():
        yield from replayed(data, name, "las", LeastAttained(ROUND_SECONDS), printed, FAIR)
    first = next(iter(THEIRS))
    themis = find(f"themis(lease_seconds={ROUND_SECONDS})")
    yield from replayed(data, first, "shockwave", find("shockwave"), MARKET_PRINTED, MARKET)
    yield from replayed(data, first, "themis", themis, AUCTION_PRINTED, AUCTION)


def replayed(
    data: Path, which: tuple[str, int], named: str, policy: Policy, printed: tuple[str, str],
    cause: Cause,
) -> Iterator[Row]:  # fmt: skip
    """One trace under one policy."""
    name, devices = which
    trace = read_trace(published(data, PATH.format(name)))
    options = Options(round_seconds=ROUND_SECONDS, start_seconds=START_SECONDS)
    engine = Engine(trace, counted(devices, "v100"), policy, options, Tools())
    ours = measures(replay_counted(engine))
    theirs = dict(zip(METRICS, printed, strict=True))
    dynamic = next(note.split()[0] for note in trace.notes if "batch size" in note)
    differ = cause.differ.format(dynamic=dynamic, jobs=len(trace.jobs))
    told = cause._replace(differ=differ)
    yield from compare(f"shockwave/{name.partition('_')[0]} jobs", named, ours, theirs, told)

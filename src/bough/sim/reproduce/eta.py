"""Are quotes right? Jobs of public traces are quoted as they come, and their ends awaited.

What is shown is not a published number but ours against what the words mean: of all jobs, one in
ten ends before the p10 it was quoted, half before the p50, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bough.core.cluster import parse_short
from bough.policies import find
from bough.sim.calibration import Outcome, below, outcomes, within
from bough.sim.options import Options
from bough.sim.reproduce.rows import Row, published
from bough.sim.runs import Setting
from bough.sim.trace import read_trace

#: Trace of Microsoft's ITP (ElasticFlow, ASPLOS '23), nodes of 8 devices on which it is crowded,
#: and how many of its jobs: the first half is what is known, of the rest some are quoted.
TRACES: Final = (("cluster02", 16, 3500), ("cluster03", 20, 3000))
POLICIES: Final = ("las", "srtf")
QUOTES: Final = 100
#: Run times are known to a factor of so much, and so is how jobs scale.
ERROR: Final = 0.2
SHARES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def rows(data: Path) -> Iterator[Row]:
    """The part of the outcomes before each tenth of what was foretold, and within p10 to p90."""
    for name, nodes, jobs in TRACES:
        path = published(data, f"elasticflow-traces/{name}.csv")
        trace = read_trace(path)
        trace = msgspec.structs.replace(trace, jobs=trace.jobs[:jobs])
        cluster = parse_short(f"{nodes}x8xv100")
        options = Options(speed_error=ERROR)
        setting = Setting(trace=trace, cluster=cluster, cluster_name="", options=options)
        for policy in POLICIES:
            found = outcomes(setting, find(policy), QUOTES)
            yield from rows_of(f"eta/{name} on {nodes}x8", policy, found)


def rows_of(trace: str, policy: str, found: Sequence[Outcome]) -> Iterator[Row]:
    """One trace under one policy; "theirs" is what it should be."""
    cause = f"parts of {len(found)} jobs of the trace's second half, quoted as they came"
    for share in SHARES:
        metric = f"ends before p{100 * share:.0f}"
        yield row(trace, policy, metric, below(found, share), share, cause)
    yield row(trace, policy, "ends within p10–p90", within(found, 0.1, 0.9), 0.8, cause)
    yield row(trace, policy, "begins by p90", below(found, 0.9, "begins"), 0.9, cause)


def row(trace: str, policy: str, metric: str, ours: float, wanted: float, cause: str) -> Row:
    return Row(trace, policy, metric, ours, wanted, ours / wanted - 1.0, cause)


# ----------------------------------------------------------------------------------- the plot

WIDTH: Final = 50


def plot(rows: Sequence[Row]) -> list[str]:
    """For each trace and policy a bar for each tenth; `|` is where it should end."""
    lines = []
    for trace, policy in dict.fromkeys((row.trace, row.policy) for row in rows):
        mine = [row for row in rows if (row.trace, row.policy) == (trace, policy)]
        lines += [f"{trace.partition('/')[2]}, {policy}: {mine[0].cause}", ""]
        for one in mine:
            bar = list("█" * round(WIDTH * one.ours) + " " * (WIDTH - round(WIDTH * one.ours)))
            bar[min(round(WIDTH * one.theirs), WIDTH - 1)] = "|"
            name = f"  {one.metric:20} {''.join(bar)}"
            lines.append(f"{name} {one.ours:5.0%}  should be {one.theirs:.0%}")
        lines.append("")
    return lines

"""ElasticFlow on Microsoft's ITP traces: jobs for each CPU second, against filling every time.

Each trace on its cluster, jobs growing through all sizes that were measured, devices placed in the
tree, smaller jobs moving aside for larger ones. The baseline beside it is the same policy when
promises are always filled one after another, as its paper has it, instead of only where they stand
in each other's way; both must decide the same. It replays the first jobs only. Limit: 1,000 jobs a
second on cluster 01. The data do not come with the source; without them this says so and ends.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from unittest import mock

from bough.cli.reproduce import VARIABLE
from bough.core import promises
from bough.core.cluster import parse_short
from bough.core.speedup import SpeedBook
from bough.policies import find
from bough.sim.engine import simulate
from bough.sim.options import Options, Tools
from bough.sim.record import RunRecord
from bough.sim.tables import read_speedups
from bough.sim.trace import Reading, read_trace

ROOT = Path(__file__).parent.parent
NODES = {1: 64, 2: 64, 3: 64, 5: 64, 10: 32}
LIMIT, LIMITED, FIRST = 1_000.0, 1, 250


def replay(path: Path, book: SpeedBook, nodes: int, jobs: int = 0) -> RunRecord:
    """One replay of a trace, or of its first jobs."""
    trace = read_trace(path, Reading(rates=book, kind="a100", elastic_limit=64))
    tools = Tools(speedups=book, clock=time.process_time)
    cluster = parse_short(f"{nodes}x8xa100")
    return simulate(trace, cluster, find("elasticflow"), Options(jobs=jobs), tools)


def outcome(record: RunRecord) -> list[tuple[str, str, float]]:
    """What became of each job."""
    return [(job.id, job.state, round(job.end, 3)) for job in record.jobs]


def main() -> int:
    """Measure all that is there; how much is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args().data
    data = given or Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "data")
    if not (data / "elasticflow-traces").is_dir():
        print(f"no ITP traces in {data}: see docs/traces.md")
        return 0
    book = read_speedups(data / "elasticflow/throughputs_A100", SpeedBook("a100"))
    wrong = 0
    print("trace  devices   jobs  broken  CPU s  jobs/s  first  filled s  ratio")
    for number, nodes in NODES.items():
        path = data / f"elasticflow-traces/cluster{number:02}.csv.gz"
        if not path.exists():
            continue
        record = replay(path, book, nodes)
        late = sum(job.state == "done" and job.end > job.deadline + 1e-3 for job in record.jobs)
        rate = len(record.jobs) / record.cpu_seconds
        ours = replay(path, book, nodes, FIRST)
        with mock.patch.object(promises, "alone", return_value=None):
            filled = replay(path, book, nodes, FIRST)
        same = outcome(ours) == outcome(filled)
        print(
            f"{number:5} {nodes * 8:8} {len(record.jobs):6} {late:7} {record.cpu_seconds:6.2f} "
            f"{rate:7.0f} {FIRST:6} {filled.cpu_seconds:9.2f} "
            f"{filled.cpu_seconds / ours.cpu_seconds:6.1f}{'' if same else '  DIFFERS'}",
            flush=True,
        )
        slow = number == LIMITED and rate < LIMIT
        print(f"  limit {LIMIT:.0f}: {'TOO SLOW' if slow else 'ok'}" * (number == LIMITED), end="")
        print("\n" * (number == LIMITED), end="")
        wrong += slow + (not same) + (late > 0)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

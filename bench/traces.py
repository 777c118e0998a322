"""Public traces of rigid jobs: how many jobs a CPU second replays, against plain objects.

All of Microsoft's ITP traces as ElasticFlow (ASPLOS '23) published them, each on its cluster,
under `las`; and Muri's trace 1 (SIGCOMM '22) under `srtf`, once as bough runs it, and once placed
anew at each event as Muri's simulator does it, which must give its published completion time.
Times are CPU seconds; jobs/s counts reading and replaying. The plain simulator of bench/plain.py
replays the same traces beside it, placing without regard for topology; on nodes of one device,
where that does not matter, both must agree on the mean completion time.

The data do not come with the source: docs/traces.md tells where they are published. Without them
this script says so and ends. Exits with 1 when a limit is passed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import plain
from bough.cli.reproduce import VARIABLE
from bough.core.cluster import parse_short
from bough.policies import find
from bough.sim.engine import simulate
from bough.sim.options import Options
from bough.sim.record import RunRecord
from bough.sim.reproduce import muri
from bough.sim.trace import Trace, read_trace

ROOT = Path(__file__).parent.parent
ITP = "elasticflow-traces/cluster{:02}.csv.gz"
#: Nodes of 8 devices for each trace, as in ElasticFlow's simulations (its figure 8b).
NODES = {1: 64, 2: 64, 3: 64, 4: 128, 5: 64, 6: 64, 7: 128, 8: 128, 9: 128, 10: 32}
#: The trace on which both simulators must give the same answer: crowded, many jobs at a time.
CHECKED = 3
#: Jobs per CPU second: what the fastest released simulator we measured does (Muri's, on its trace
#: 1), and what is wanted of ours.
PEER, LIMIT = 440.0, 2_000.0
SAME = 1e-9


class Run(NamedTuple):
    """One replay."""

    jobs: int
    events: int
    #: CPU seconds of reading the trace, and of replaying it.
    reading: float
    replaying: float
    mean_jct: float

    def rate(self) -> float:
        """Jobs per CPU second, reading included."""
        return self.jobs / (self.reading + self.replaying)


def folder(given: Path | None) -> Path:
    """Where the public data lie."""
    return given or Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "data")


def timed(read: Callable[[], Trace], cluster: str, policy: str, options: Options) -> Run:
    """Read and replay."""
    began = time.process_time()
    trace = read()
    between = time.process_time()
    record: RunRecord = simulate(trace, parse_short(cluster), find(policy), options)
    ended = time.process_time()
    assert all(job.state == "done" for job in record.jobs)
    jct = sum(job.end - job.submit for job in record.jobs) / len(record.jobs)
    return Run(len(record.jobs), record.events, between - began, ended - between, jct)


def timed_plain(trace: Trace, cluster: str, policy: str) -> tuple[float, float]:
    """CPU seconds of the plain simulator's replay, and the mean completion time."""
    began = time.process_time()
    mean = plain.simulate(trace, parse_short(cluster), policy)
    return time.process_time() - began, mean


def show(name: str, run: Run, plain_seconds: float) -> None:
    """One line."""
    print(
        f"{name:26} {run.jobs:6} {run.events:7} {run.reading:7.2f} {run.replaying:9.2f} "
        f"{run.rate():7.0f} {plain_seconds:8.2f} {plain_seconds / run.replaying:6.1f}",
        flush=True,
    )


def verdict(rate: float) -> str:
    """Against the limit."""
    word = "ok" if rate >= LIMIT else "TOO SLOW"
    return f"  {rate / PEER:.1f} x the best peer's {PEER:.0f} jobs/s; limit {LIMIT:.0f}: {word}"


def itp(data: Path) -> int:
    """All of the ITP traces that are there; how much is wrong."""
    runs, plain_seconds = [], 0.0
    for number, nodes in NODES.items():
        path, cluster = data / ITP.format(number), f"{nodes}x8xa100"
        if path.exists():
            run = timed(partial(read_trace, path), cluster, "las", Options())
            seconds, _ = timed_plain(read_trace(path), cluster, "las")
            show(f"ITP {number}, las, {nodes * 8} devices", run, seconds)
            runs.append(run)
            plain_seconds += seconds
    if not runs:
        print(f"no ITP trace in {data}")
        return 0
    total = Run(*(sum(column) for column in zip(*runs, strict=True)))
    show("all of them", total, plain_seconds)
    print(verdict(total.rate()))
    path = data / ITP.format(CHECKED)
    return int(total.rate() < LIMIT) + (path.exists() and not agree(read_trace(path)))


def agree(trace: Trace) -> bool:
    """Whether both simulators give the same mean where places do not matter: nodes of one."""
    cluster = f"{NODES[CHECKED] * 8}x1xa100"
    _, theirs = timed_plain(trace, cluster, "las")
    ours = timed(lambda: trace, cluster, "las", Options()).mean_jct
    same = abs(ours / theirs - 1.0) < SAME
    word = "" if same else ": THEY DISAGREE"
    print(
        f"ITP {CHECKED} on nodes of one, mean completion: ours {ours:.6f}, plain {theirs:.6f}{word}"
    )
    return same


def muri_trace(data: Path) -> int:
    """Muri's trace 1; how much is wrong."""
    if not (data / "muri").is_dir():
        print(f"no Muri trace in {data}")
        return 0
    plain_seconds, _ = timed_plain(muri.load(data, "trace1"), "8x8xv100", "srtf")
    anew = Options(repack="first", locality_seconds=float("inf"))
    wrong = 0
    for name, options in (("places kept", Options()), ("placed anew", anew)):
        run = timed(lambda: muri.load(data, "trace1"), "8x8xv100", "srtf", options)
        show(f"Muri 1, srtf, {name}", run, plain_seconds)
        print(verdict(run.rate()))
        wrong += run.rate() < LIMIT
    published = muri.ORACLE["trace1", "srtf"][0]
    print(f"mean completion placed anew {run.mean_jct:.3f} s, its own simulator's {published} s")
    return wrong + (f"{run.mean_jct:.3f}" != published)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help=f"folder of the public traces, or {VARIABLE}")
    data = folder(parser.parse_args().data)
    if not data.is_dir():
        print(f"skipped: there are no public traces in {data}; give --data DIR or set {VARIABLE}")
        return 0
    print(f"importing took {time.process_time():.2f} s of CPU, once; load {os.getloadavg()[0]:.1f}")
    print(
        f"{'':26} {'jobs':>6} {'events':>7} {'read, s':>7} {'replay, s':>9} {'jobs/s':>7}", end=""
    )
    print(f" {'plain, s':>8} {'ratio':>6}")
    return 1 if itp(data) + muri_trace(data) else 0


if __name__ == "__main__":
    sys.exit(main())

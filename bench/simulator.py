"""A long elastic trace replayed whole: the production scheduler against plain objects, and memory.

100,000 jobs on 2,000 devices under `max_min`, which hands out all devices anew at every arrival
and every end: 200,000 times. Two traces: the usual one, as `bough trace generate` makes it with
`--load 0.8 --elastic 1`, for which the limits are; and a crowded one, whose jobs ask for 1.1 times
what there is, so that the cluster is always full and about 200 jobs share it. Each variant runs in
a process of its own: numpy alone, with the compiled twins of the extra `fast`, and the plain
simulator of bench/plain.py. That one slows down with every job that waits, so by default it replays
only the first jobs, and ratios are between the same jobs. On nodes of one device, where places do
not matter, both simulators must agree on the mean completion time. Exits with 1 when they do not,
or when a limit is passed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
from typing import NamedTuple

import msgspec

import plain
from bough.core import share
from bough.core.cluster import Cluster, parse_short
from bough.core.speedup import Curve, SpeedBook
from bough.policies import find
from bough.sim.engine import simulate
from bough.sim.options import Options, Tools
from bough.sim.record import RunRecord
from bough.sim.synthetic import Mix, Model, generate
from bough.sim.trace import Trace

JOBS, SEED = 100_000, 1
LOADS = {"usual": 0.8, "crowded": 1.1}
CLUSTER, KIND, DEVICES = "250x8xa100", "a100", 2_000
#: Speed grows with the number of devices to the power of these.
POWERS = (0.70, 0.74, 0.78, 0.82, 0.86, 0.90, 0.94, 0.98)
SIZES = (1, 2, 4, 8, 16, 32, 64)
#: The plain simulator gets so many at most, which takes it well under a minute.
PLAIN_JOBS = 20_000
#: CPU seconds of 100,000 jobs.
LIMITS = {"numpy": 10.0, "fast": 5.0}
CHECKED_JOBS, CHECKED_CLUSTER = 1_000, "2000x1xa100"
SAME = 1e-9


class Cost(NamedTuple):
    """What one run took."""

    jobs: int
    #: CPU seconds of the replay, and of loading compiled code before it.
    seconds: float
    loading: float
    #: Largest resident memory, after the trace was made and at the end.
    before_mb: float
    peak_mb: float
    #: Events handled (0 for the plain simulator), resizes, and mean devices in use.
    events: int
    resizes: int
    used: float

    def event_us(self) -> float:
        """Microseconds for each arrival and end."""
        return self.seconds / (2 * self.jobs) * 1e6


def book() -> SpeedBook:
    """What the jobs' models are."""
    speeds = SpeedBook(KIND)
    for power in POWERS:
        curve = Curve(SIZES, tuple(size**power for size in SIZES))
        speeds.add(f"power {power}", 1, KIND, curve)
    return speeds


def make_trace(kind: str, drawn: int, jobs: int) -> Trace:
    """The first jobs of a trace of so many."""
    mix = Mix(models=tuple(Model(f"power {power}", 1) for power in POWERS))
    mix = Mix() if kind == "usual" else mix
    whole = generate(drawn, DEVICES, load=LOADS[kind], elastic=1.0, seed=SEED, mix=mix)
    return msgspec.structs.replace(whole, jobs=whole.jobs[:jobs])


def with_curves(trace: Trace) -> Trace:
    """The same jobs, each with its curve: the plain simulator reads no book."""
    speeds = book()
    jobs = [
        msgspec.structs.replace(job, curve=speeds.curve(job.spec.model, job.spec.batch, KIND))
        for job in trace.jobs
    ]
    return msgspec.structs.replace(trace, jobs=tuple(jobs))


def replay(trace: Trace, cluster: Cluster) -> RunRecord:
    """The simulator as it is shipped."""
    tools = Tools(clock=time.process_time, speedups=book())
    return simulate(trace, cluster, find("max_min"), Options(), tools)


def peak_mb() -> float:
    """The most memory that was ever resident in this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def measure(kind: str, variant: str, drawn: int, jobs: int) -> Cost:
    """One run in this process."""
    cluster, loading = parse_short(CLUSTER), 0.0
    trace = make_trace(kind, drawn, jobs)
    if variant == "plain":
        trace = with_curves(trace)
        before, began = peak_mb(), time.process_time()
        plain.simulate(trace, cluster)
        return Cost(jobs, time.process_time() - began, 0.0, before, peak_mb(), 0, 0, 0.0)
    if variant == "fast":
        began = time.process_time()
        assert share.use_compiled(), "the extra `fast` is not installed"
        loading = time.process_time() - began
    before = peak_mb()
    record = replay(trace, cluster)
    busy = [used for at, used, *_ in record.usage if at <= trace.jobs[-1].submit]
    resizes = sum(job.resizes for job in record.jobs)
    # Not only arrivals and ends: answers and moments the scheduler asked for are events as well.
    return Cost(
        jobs, record.cpu_seconds, loading, before, peak_mb(), record.events, resizes,
        sum(busy) / len(busy),
    )  # fmt: skip


def in_child(kind: str, variant: str, drawn: int, jobs: int) -> Cost:
    """One run in a process of its own."""
    command = [sys.executable, __file__, "--trace", kind, "--variant", variant]
    command += ["--jobs", str(drawn), "--first", str(jobs)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Cost(**json.loads(done.stdout))


def agree() -> bool:
    """Whether both simulators give the same mean completion time where places do not matter."""
    trace, cluster = make_trace("crowded", CHECKED_JOBS, CHECKED_JOBS), parse_short(CHECKED_CLUSTER)
    record = replay(trace, cluster)
    ours = sum(job.end - job.submit for job in record.jobs) / len(record.jobs)
    theirs = plain.simulate(with_curves(trace), cluster)
    print(f"mean completion time of {CHECKED_JOBS} jobs: ours {ours:.6f} s, plain {theirs:.6f} s")
    return abs(ours / theirs - 1.0) < SAME


def show(name: str, cost: Cost, verdict: str = "") -> None:
    """One line."""
    print(
        f"{name:22} {cost.jobs:8} {cost.seconds:8.2f} {cost.event_us():9.1f} {cost.loading:8.2f} "
        f"{cost.before_mb:8.0f} {cost.peak_mb:8.0f}{verdict}"
    )


def compare(kind: str, jobs: int, plain_jobs: int) -> int:
    """All variants on one trace; how many limits were passed."""
    print(f"The {kind} trace, load {LOADS[kind]}:")
    ours = ["numpy", "fast"] if importlib.util.find_spec("numba") else ["numpy"]
    wrong = 0
    print(f"{'CPU':22} {'jobs':>8} {'s':>8} {'µs/event':>9} {'load, s':>8} ", end="")
    print(f"{'MB made':>8} {'MB peak':>8}")
    whole = {variant: in_child(kind, variant, jobs, jobs) for variant in ours}
    for variant, cost in whole.items():
        limit = LIMITS[variant] * jobs / JOBS
        late = kind == "usual" and cost.seconds > limit
        wrong += late
        word = "TOO SLOW" if late else "ok"
        show(variant, cost, f"  limit {limit:g} s: {word}" if kind == "usual" else "")
    base = in_child(kind, "plain", jobs, plain_jobs)
    if plain_jobs < jobs:
        same = {variant: in_child(kind, variant, jobs, plain_jobs) for variant in ours}
        for variant, cost in same.items():
            show(f"{variant}, first jobs", cost)
    else:
        same = whole
    show("plain" if plain_jobs == jobs else "plain, first jobs", base)
    for variant, cost in same.items():
        print(f"plain takes {base.seconds / cost.seconds:.1f} x the CPU of {variant}")
    numpy = whole["numpy"]
    print(
        f"{numpy.events} events in all, {numpy.resizes} resizes, {numpy.used:.0f} devices in use "
        f"while jobs arrive; load average of this machine {os.getloadavg()[0]:.1f}\n"
    )
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=JOBS, help="shorten the trace")
    parser.add_argument("--plain-jobs", type=int, default=PLAIN_JOBS, help="of the plain simulator")
    parser.add_argument("--trace", choices=list(LOADS), help="only this one")
    parser.add_argument("--variant", choices=["numpy", "fast", "plain"], help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.variant:
        cost = measure(given.trace, given.variant, given.jobs, given.first or given.jobs)
        print(json.dumps(cost._asdict()))
        return 0
    wrong = 0
    for kind in [given.trace] if given.trace else LOADS:
        wrong += compare(kind, given.jobs, min(given.plain_jobs, given.jobs))
    # Last, because a child starts with the peak of its parent.
    if not agree():
        print("THE SIMULATORS DISAGREE")
        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

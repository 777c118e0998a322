"""A quote over 1,000 live jobs in 20 versions of what may come, against plain objects run forward.

2,000 devices in five racks; for `fair` and `max_min` all jobs are elastic. A job of 8 devices is
quoted: intervals, the verdict, the earliest deadline, what would be better, and whom it delays.
Beside it, the same 20 versions (the same luck of each job) are run until that job is done with the
plain objects of bench/plain.py, which place without regard for topology and are asked for nothing
else.

Prints seconds of CPU in one process: of the copy that the decision thread waits for, of the
intervals alone, of the whole quote, and of the plain versions; how far a grain of 2 % moves the
median end; and the seconds until a whole quote is there as a daemon makes it, by the process that
looks ahead and its forks: the fastest of three, as the others waited more for other programs.
Exits with 1 when
a copy takes longer than the slowest decision may, or a quote longer than 2 s.
"""

from __future__ import annotations

import argparse
import copy
import gc
import os
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

import plain
from bough.core import chance
from bough.core import model as m
from bough.core.cluster import Cluster, parse_short
from bough.core.doubt import CERTAIN, Doubt
from bough.core.expected import NOBODY
from bough.core.outlooks import HORIZON_SECONDS, VERSIONS, outlook, unfold
from bough.core.prior import ESTIMATE_SPREAD
from bough.core.prospects import Quote
from bough.core.queues import QueueTree
from bough.core.quote import quote
from bough.core.scheduler import Scheduler
from bough.core.speedup import SpeedBook
from bough.core.trials import NEW
from bough.core.versions import Version
from bough.forks import processes
from bough.policies import find
from bough.server.foresight import Prophet
from bough.server.prophet import Errand
from bough.server.rows import Conditions
from bough.sim.synthetic import Mix, generate

T = TypeVar("T")
POLICIES = ("fifo", "las", "srtf", "max_min", "fair")
ELASTIC = ("max_min", "fair")
CLUSTER, LIVE, SEED = "5 racks of 50x8xa100", 1_000, 5
ASKED = m.JobSpec(
    name=NEW, devices=m.Range(min=8, max=8), estimate_seconds=3600.0, model="resnet50"
)
COPY_LIMIT, LIMIT = 0.05, 2.0
#: Whoever is measured on a busy machine is measured so often.
TIMES = 3
DOUBT = Doubt(past=NOBODY)


def crowded(policy: str, cluster: Cluster) -> Scheduler:
    """So many live jobs, of which as many run as have room."""
    trace = generate(
        LIVE, cluster.devices, elastic=float(policy in ELASTIC), seed=SEED,
        mix=Mix(elastic_least=2),
    )  # fmt: skip
    found = Scheduler(find(policy), cluster.tree(), queues=QueueTree(), speedups=SpeedBook("a100"))
    batch = cluster.events(0.0)
    batch += [m.Submitted(at=0.0, id=job.id, spec=job.spec) for job in trace.jobs]
    while batch:
        commands, batch = found.handle(batch), []
        for c in commands:
            if isinstance(c, m.Start):
                batch.append(m.Started(at=0.0, id=c.id, epoch=c.epoch))
            elif isinstance(c, m.Resize):
                batch.append(m.Resized(at=0.0, id=c.id, epoch=c.epoch, step=c.step))
    found.handle([m.Tick(at=60.0)])
    return found


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """Seconds of CPU, and what came of it."""
    gc.collect()
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def waited(policy: str, scheduler: Scheduler, cluster: Cluster) -> tuple[float, Quote]:
    """Seconds until the quote is there, from the copy on, and what it says."""
    conditions = Conditions(
        policy=policy, levels=cluster.levels, bandwidth=cluster.bandwidth, inner=cluster.inner,
        reference_kind=cluster.nodes[0].kind,
    )  # fmt: skip
    prophet, seconds = Prophet(), []
    try:
        for _ in range(1 + TIMES):  # the first of them starts it
            began = time.perf_counter()
            errand = Errand(
                conditions=conditions, snapshot=msgspec.msgpack.encode(scheduler.picture()),
                now=scheduler.state.now, versions=VERSIONS, horizon=HORIZON_SECONDS, spec=ASKED,
            )  # fmt: skip
            found = prophet.ask(errand).quote
            seconds.append(time.perf_counter() - began)
    finally:
        prophet.end()
    assert found is not None
    return min(seconds[1:]), found


def plain_versions(policy: str, scheduler: Scheduler, cluster: Cluster) -> float | None:
    """Seconds of CPU for the same versions with plain objects; None: it has no such policy."""
    decide = plain.POLICIES.get(policy)
    if decide is None:
        return None
    state = scheduler.state
    scheduler.fork()
    jobs = []
    for job in [*state.table.items, None]:
        spec = job.spec if job is not None else ASKED
        curve = state.curve_for(spec, 0)
        work = (spec.estimate_seconds or 0.0) * curve.at(spec.sizes()[-1])
        jobs.append(plain.make_job(job.id if job is not None else NEW, 0.0, spec, curve, work))

    def run() -> None:
        for number in range(VERSIONS):
            live = copy.deepcopy(jobs)
            for job in live:
                luck = chance.luck(job.id, number, VERSIONS)
                job.left *= chance.factor(ESTIMATE_SPREAD, luck)
            forward(policy, decide, live, cluster)

    return timed(run)[0]


def forward(policy: str, decide: plain.Decide, live: list[plain.Job], cluster: Cluster) -> None:
    """Until the new one is done."""
    free, now = [node.devices for node in cluster.nodes], 0.0
    devices, new = sum(free), live[-1]
    while True:
        plain.settle(live, decide(live, devices), free, now)
        running = [job for job in live if job.size]
        gap = min(job.left / job.speeds[job.size] for job in running)
        if policy == "las":
            gap = min(gap, plain.las_change(running))
        plain.advance(live, gap)
        now += gap
        for job in running:
            if job.left <= plain.SLACK * job.speeds[job.size]:
                live.remove(job)
                plain.vacate(job, job.size, free)
        if new not in live:
            return


def submit(version: Version) -> None:
    version.submit(NEW, ASKED)


def middle_end(scheduler: Scheduler, grain: float) -> float:
    """The median end, less or more coarsely."""
    doubt = msgspec.structs.replace(DOUBT, grain=grain)
    found = unfold(scheduler, (NEW,), doubt, change=submit)
    return outlook([fates[NEW] for fates in found]).ends.p50 or m.INFINITY


def show(policy: str) -> bool:
    """One line; whether the limits are kept."""
    cluster = parse_short(CLUSTER)
    scheduler = crowded(policy, cluster)
    assert len(scheduler.state.jobs) == LIVE
    copied, _ = timed(lambda: msgspec.msgpack.encode(scheduler.picture()))
    intervals, _ = timed(lambda: unfold(scheduler, (NEW,), DOUBT, change=submit))
    whole, found = timed(lambda: quote(scheduler, ASKED, DOUBT))
    wait, same = waited(policy, scheduler, cluster)
    assert same == found, "another process says something else"
    base = plain_versions(policy, scheduler, cluster)
    fine, coarse = middle_end(scheduler, CERTAIN.grain), middle_end(scheduler, DOUBT.grain)
    kept = copied < COPY_LIMIT and wait < LIMIT
    print(
        f"{policy:8} {copied:7.4f} {intervals:9.2f} {whole:7.2f} {wait:8.2f} "
        f"{'–' if base is None else f'{base:.2f}':>8} "
        f"{'–' if base is None else f'{base / intervals:.1f}':>6} "
        f"{100 * (coarse - fine) / (fine - 60.0):+7.2f} %{'' if kept else '  TOO SLOW'}",
        flush=True,
    )
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--policy", choices=POLICIES, action="append", help="only this one")
    policies = parser.parse_args().policy or POLICIES
    gc.disable()
    print(f"{LIVE} live jobs, {VERSIONS} versions; seconds, limit of the wait {LIMIT:g}")
    print(
        f"{'':8} {'copy':>7} {'intervals':>9} {'quote':>7} {'wait':>8} "
        f"{'plain':>8} {'ratio':>6} {'grain':>9}"
    )
    kept = True
    for policy in policies:
        kept &= show(policy)
    print(
        f"ratio: plain over intervals; {processes()} processors, "
        f"load average {os.getloadavg()[0]:.1f}"
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())

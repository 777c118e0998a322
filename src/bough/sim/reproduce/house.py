"""The house policy against its targets: every promise of ours with what was measured.

Peers whose jobs have one size get the sizes of the trace, as their authors have it; elastic ones
get ranges, and so does the house policy. All see the same jobs with the same deadlines.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from bough.core.cluster import parse_short
from bough.core.model import Range
from bough.core.speedup import SpeedBook
from bough.core.supply import Budget, Supply
from bough.sim import parallel
from bough.sim.experiment import Task, carry_out
from bough.sim.options import Tools
from bough.sim.reproduce.rows import published
from bough.sim.results import Row
from bough.sim.supply_files import read_series
from bough.sim.sweep import Point, Sweep
from bough.sim.synthetic import generate
from bough.sim.tables import read_speedups
from bough.sim.trace import Reading, Trace, TraceJob, read_trace

OURS: Final = "bough"
#: Peers for deadlines and best effort; those of them whose jobs have one size.
DEADLINES: Final = ("elasticflow",)
EFFORT: Final = ("gandiva", "tiresias", "chronus", "elasticflow")
MEAN: Final = ("las", "afs", "optimus", "pollux(search=relaxed)", "sia(solver=relaxed)")
FAIR: Final = "themis"
RIGID: Final = ("las", "tiresias", "chronus", "themis", "gandiva")
#: Public traces with deadlines: (file, kind of the tables, cluster).
TIMED: Final = (
    ("elasticflow/traces/elasticVpollux_e.csv", "t4", "16x4xt4"),
    ("elasticflow/traces/generated_fig10_100jobs_1500lam.csv", "a100", "16x8xa100"),
    ("elasticflow-traces/195job.csv", "a100", "16x8xa100"),
    ("elasticflow-traces/cluster10.csv", "a100", "32x8xa100"),
)
#: Larger ones, of which only the deadlines are looked at.
LARGE: Final = (("elasticflow-traces/cluster01.csv", "a100", "64x8xa100"),)
#: Public traces without: (file, cluster, whether jobs may grow).
UNTIMED: Final = (
    ("muri/trace3.csv", "8x8xv100", False),
    ("pollux-osdi21/workloads/workload-1.csv", "16x4xt4", True),
    ("pollux-osdi21/workloads/workload-3.csv", "16x4xt4", True),
)
LOADS: Final = (0.5, 0.8, 1.0, 1.2, 1.5)
SHARES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
ERRORS: Final = (0.1, 0.2)
BUDGETS: Final = (20.0, 40.0, 80.0, 160.0)
LARGEST: Final = 64


class Case(NamedTuple):
    """One trace in one world, and who is to run it."""

    target: str
    where: str
    common: Sweep
    policies: tuple[str, ...]
    seeds: tuple[int, ...]


class Result(NamedTuple):
    """One target in one place."""

    target: str
    where: str
    #: Ours, the number it is measured against, and whose that is.
    measured: float
    against: float
    whose: str
    held: bool


# ------------------------------------------------------------------ traces


def timed(data: Path, name: str, kind: str, cluster: str) -> Sweep:
    """A trace of ElasticFlow's, with jobs that grow."""
    book = read_speedups(
        published(data, f"elasticflow/throughputs_{kind.upper()}"), SpeedBook(kind)
    )
    reading = Reading(rates=book, kind=kind, elastic_limit=LARGEST)
    trace = read_trace(published(data, name), reading)
    return sweep_of(trace, cluster, tools=Tools(speedups=book))


def sweep_of(trace: Trace, cluster: str, tools: Tools | None = None) -> Sweep:
    """A trace as it is."""
    return Sweep(
        source=trace, cluster=parse_short(cluster), cluster_name=cluster, tools=tools or Tools()
    )


def untimed(data: Path, name: str, cluster: str, grows: bool) -> Sweep:
    """A trace without deadlines."""
    limit = LARGEST if grows else 0
    profiles = data / "pollux-osdi21/traces" if name.startswith("pollux") else None
    reading = Reading(elastic_limit=limit, profiles=profiles)
    return sweep_of(read_trace(published(data, name), reading), cluster)


def changed(common: Sweep, change: dict[str, TraceJob]) -> Sweep:
    """The same with some jobs changed."""
    assert isinstance(common.source, Trace)
    jobs = tuple(change.get(job.id, job) for job in common.source.jobs)
    source = msgspec.structs.replace(common.source, jobs=jobs)
    return msgspec.structs.replace(common, source=source)


def with_effort(common: Sweep, share: float, seed: int) -> Sweep:
    """A share of the jobs without their deadlines, drawn from the seed."""
    assert isinstance(common.source, Trace)
    jobs = common.source.jobs
    chosen = np.random.default_rng([seed, 77]).permutation(len(jobs)) < round(share * len(jobs))
    change = {
        job.id: _of(job, deadline=None, service="best-effort")
        for job, free in zip(jobs, chosen.tolist(), strict=True)
        if free
    }
    return changed(common, change)


def in_one_size(common: Sweep) -> Sweep:
    """Every job at the size that the trace gives it."""
    assert isinstance(common.source, Trace)
    return changed(
        common,
        {
            job.id: _of(job, devices=Range(min=job.devices, max=job.devices))
            for job in common.source.jobs
        },
    )


def _of(job: TraceJob, **what: object) -> TraceJob:
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, **what))


def in_world(common: Sweep, **options: object) -> Sweep:
    """The same in another world."""
    return msgspec.structs.replace(
        common, options=msgspec.structs.replace(common.options, **options)
    )


# ------------------------------------------------------------------ cases


def cases(data: Path, quick: bool) -> list[Case]:
    """All that is run."""
    few = 2 if quick else None
    bases = [(timed(data, *one), short(one[0])) for one in TIMED[: 3 if quick else None : few]]
    seeds = (0,) if quick else (0, 1)
    found: list[Case] = []
    for base, name in bases:
        found += deadline_cases(base, name, seeds)
        for share in SHARES[::2] if quick else SHARES:
            mixed = with_effort(base, share, 0)
            found += sized("effort", f"{name}, {share:.0%} best effort", mixed, EFFORT, (0,))
        free = with_effort(base, 1.0, 0)
        found += sized("mean", name, free, (*MEAN, FAIR), (0,))
    for large in () if quick else LARGE:
        for share in (0.0, 0.3):
            mixed = with_effort(timed(data, *large), share, 0)
            where = f"{short(large[0])}, {share:.0%} best effort, seed 0"
            found.append(Case("deadlines", where, mixed, (OURS, *DEADLINES), (0,)))
    for one in UNTIMED[:few]:
        found += sized("mean", short(one[0]), untimed(data, *one), (*MEAN, FAIR), (0,))
    for load in LOADS[::2] if quick else LOADS:
        for seed in seeds:
            trace = generate(150 if quick else 400, 64, load, 0.5, seed)
            where = f"drawn, load {load:g}, seed {seed}"
            found += sized("mean", where, sweep_of(trace, "8x8xa100"), (*MEAN, FAIR), (0,))
    return found + budget_cases(data, bases[-1 if quick else 2][0], quick)


def deadline_cases(base: Sweep, name: str, seeds: Sequence[int]) -> list[Case]:
    """With exact curves, and with wrong ones."""
    found = []
    for share in (0.0, 0.3):
        for seed in seeds:
            mixed = with_effort(base, share, seed)
            where = f"{name}, {share:.0%} best effort, seed {seed}"
            policies = (OURS, *DEADLINES)
            found.append(Case("deadlines", where, mixed, policies, (0,)))
            for error in ERRORS if share else ():
                wrong = in_world(mixed, speed_error=error)
                found.append(Case("wrong", f"{where}, error {error:.0%}", wrong, policies, (seed,)))
    return found


def sized(
    target: str, where: str, common: Sweep, peers: Sequence[str], seeds: tuple[int, ...]
) -> list[Case]:
    """Ours and elastic peers on ranges, and whoever can on the sizes of the trace."""
    elastic = tuple(p for p in peers if p not in RIGID or p == "gandiva")
    rigid = tuple(p for p in peers if p in RIGID)
    return [
        Case(target, where, common, (OURS, *elastic), seeds),
        Case(target, where, in_one_size(common), rigid, seeds),
    ]


def budget_cases(data: Path, base: Sweep, quick: bool) -> list[Case]:
    """Carbon budgets a day, on the same jobs without deadlines."""
    carbon = read_series(published(data, "carboncast/CISO_direct_emissions.csv"), "carbon")
    found = []
    for kilos in BUDGETS[1:3] if quick else BUDGETS:
        supply = Supply(carbon=carbon, budgets=(Budget(of="carbon", amount=kilos),))
        world = in_world(
            with_effort(base, 1.0, 0), supply=supply, start_seconds=30.0, resize_seconds=10.0
        )
        where = f"195job, {kilos:g} kg CO2 a day"
        found.append(Case("carbon", where, world, (OURS, "powerflow"), (0,)))
    return found


def short(name: str) -> str:
    """A trace by a word."""
    return Path(name).stem.removesuffix("_100jobs_1500lam")


# ------------------------------------------------------------------ results


def measure(every: Sequence[Case], file: Path, processes: int, tell: parallel.Tell) -> list[Result]:
    """Run what the file does not have yet, and judge."""
    tasks: list[Task] = [
        (number, Point(None, policy, seed))
        for number, case in enumerate(every)
        for policy in case.policies
        for seed in case.seeds
    ]
    rows = carry_out([case.common for case in every], tasks, file, processes, tell)
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for (number, point), row in zip(tasks, rows, strict=True):
        case = every[number]
        by_policy = found.setdefault((case.target, case.where), {})
        name = point.policy if point.policy not in by_policy else f"{point.policy} in one size"
        by_policy[name] = row
    return [r for (target, where), runs in found.items() for r in JUDGES[target](where, runs)]


def judge_deadlines(where: str, runs: dict[str, Row]) -> list[Result]:
    """As many in time as ElasticFlow, and all that were promised."""
    mine, theirs = runs[OURS], runs["elasticflow"]
    ours = mine["deadline_ratio_submitted"]
    rival, kept = theirs["deadline_ratio_submitted"], mine["deadline_ratio_admitted"]
    return [
        Result("deadline ratio >= ElasticFlow's", where, ours, rival, "elasticflow", ours >= rival),
        Result("promises kept, exact curves", where, kept, 1.0, "", kept >= 1.0),
    ]


def judge_wrong(where: str, runs: dict[str, Row]) -> list[Result]:
    """The same when beliefs are wrong."""
    mine, theirs = runs[OURS], runs["elasticflow"]
    ours = mine["deadline_ratio_submitted"]
    rival, kept = theirs["deadline_ratio_submitted"], mine["deadline_ratio_admitted"]
    return [
        Result(
            "deadline ratio >= ElasticFlow's, wrong curves", where, ours, rival, "elasticflow",
            ours >= rival,
        ),
        Result("promises kept, wrong curves", where, kept, 0.99, "", kept >= 0.99),
    ]  # fmt: skip


def judge_effort(where: str, runs: dict[str, Row]) -> list[Result]:
    """Better than the best: at the sizes of the traces as published, and against all."""
    ours = runs[OURS]["best_effort_mean_jct_seconds"]
    found = []
    as_published = {n: r for n, r in runs.items() if n != OURS and n != "gandiva"}
    for target, peers in (
        ("best-effort JCT < best peer's, as published", as_published),
        ("best-effort JCT < best peer's, Gandiva elastic", runs),
    ):
        times = {n: r["best_effort_mean_jct_seconds"] for n, r in peers.items() if n != OURS}
        best = min(times, key=times.__getitem__)
        found.append(Result(target, where, ours, times[best], best, ours < times[best]))
    return found


def judge_mean(where: str, runs: dict[str, Row]) -> list[Result]:
    """Mean completion time, its distance to the bound, and fairness."""
    times = {
        n: r["mean_jct_seconds"]
        for n, r in runs.items()
        if n != OURS and not n.startswith(FAIR) and r["completed"] == runs[OURS]["completed"]
    }
    best, mine = min(times, key=times.__getitem__), runs[OURS]
    ours, bound = mine["mean_jct_seconds"], mine["mean_jct_over_bound"]
    fair, rival = mine["worst_fairness"], runs[FAIR]["worst_fairness"]
    tail, its = mine["p99_fairness"], runs[FAIR]["p99_fairness"]
    return [
        Result("mean JCT <= 1.05 best", where, ours, times[best], best, ours <= 1.05 * times[best]),
        Result("mean JCT over the lower bound", where, bound, 1.0, "no policy", True),
        Result("worst fairness <= 1.1 themis'", where, fair, rival, FAIR, fair <= 1.1 * rival),
        Result("p99 fairness <= 1.1 themis'", where, tail, its, FAIR, tail <= 1.1 * its),
    ]


def judge_carbon(where: str, runs: dict[str, Row]) -> list[Result]:
    """Sooner than PowerFlow with the same carbon, and never more than there is."""
    ours, theirs = runs[OURS]["mean_jct_seconds"], runs["powerflow"]["mean_jct_seconds"]
    most = runs[OURS]["most_of_a_budget"]
    return [
        Result("mean JCT < PowerFlow's", where, ours, theirs, "powerflow", ours < theirs),
        Result("most of a budget", where, most, 1.0, "", most <= 1.0 + 1e-6),
    ]


JUDGES: Final = {
    "deadlines": judge_deadlines,
    "wrong": judge_wrong,
    "effort": judge_effort,
    "mean": judge_mean,
    "carbon": judge_carbon,
}

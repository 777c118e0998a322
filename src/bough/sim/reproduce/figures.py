"""ElasticFlow's figures 8 to 11, each under a name of its own: our policies beside what is printed.

Figure 8a is replayed as the released simulator does it, and with our policies; of figure 8b the
traces that are redistributed. Figures 9 and 11 were drawn at random and not published: ours are
other draws from the same distributions, so that orders and distances count, not digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from bough.core.cluster import parse_short
from bough.core.model import JobSpec, Range
from bough.core.speedup import SpeedBook
from bough.policies import find
from bough.sim.engine import simulate
from bough.sim.options import Options, Tools
from bough.sim.record import RunRecord
from bough.sim.reproduce.elasticflow import (
    LARGEST,
    SETTINGS,
    Setting,
    earliest_deadline,
    least_attained,
)
from bough.sim.reproduce.places import counted, replay_counted
from bough.sim.reproduce.released import Released, ReleasedEngine
from bough.sim.reproduce.rows import Cause, Row, compare, published
from bough.sim.tables import read_speedups
from bough.sim.trace import Reading, Trace, TraceJob, read_trace

OURS: Final = Cause(
    "the same",
    "ours decides at every event instead of at slots, resizes and moves at no cost, starts as late "
    "as a deadline allows, and counts a job as in time when it ends in time; theirs costs every "
    "running job 2 s or more at each decision, and gives leftovers to whoever they cost most",
)
RELEASED: Final = Cause(
    "the same: plans as coarse as theirs, leftovers to whoever they cost most, slots, what "
    "decisions cost, and jobs that come together taken on together",
    "which combinations of devices were in use before, and so cost less, depends on the order in "
    "which theirs fills its nodes; ours packs them by size",
)
UNEXPLAINED: Final = Cause(
    "the same",
    "not taken apart: without admission theirs keeps looking at moments at which a change was once "
    "planned, and every look costs all jobs 2 s. With none of these moments ours keeps .74, with "
    "all of them this; theirs drops some when a job's end coincides with them",
)
GANDIVA: Final = Cause(
    "the same",
    "theirs sets nodes aside for each size of job, as many as its part of the demand, and jobs of "
    "that size take turns on them; ours has one line for all devices",
)
DRAWN: Final = Cause("the same", f"another draw of jobs; {OURS.differ}")
PER_TRACE: Final = Cause(
    "the same",
    f"the published trace is another draw of deadlines than the figure's; {OURS.differ}",
)


def fig8a(data: Path) -> Iterator[Row]:
    """Five policies as the released simulator has them; then ours."""
    setting = SETTINGS[0]
    yield from (r for r in earliest_deadline(data, setting) if r.policy != "edf")
    yield from least_attained(data, setting)
    trace, book = elastic(data, setting)
    cases = (
        ("edf+admission", "greedy", True, ".4103", RELEASED),
        ("elasticflow", "elastic", True, ".7282", RELEASED),
        ("edf+elastic", "elastic", False, ".6667", UNEXPLAINED),
    )
    for name, rule, admission, ratio, cause in cases:
        policy = Released(setting.slot_seconds, rule, admission)  # type: ignore[arg-type]
        ours = {"deadline_ratio": as_released(setting, trace, book, policy)}
        theirs = {"deadline_ratio": ratio}
        named = f"{name}, as released"
        yield from compare("elasticflow/figure 8a", named, ours, theirs, cause)
    figure, cluster = "figure 8a", "16x4xt4"
    for name, ratio in (("edf+admission", ".4103"), ("edf+elastic", ".6667"),
                        ("elasticflow", ".7282")):  # fmt: skip
        yield ratio_of(figure, trace, cluster, name, book, ratio, OURS)
    rigid = read_trace(published(data, setting.path))
    yield ratio_of(figure, rigid, cluster, "gandiva", book, ".0923", GANDIVA)


def as_released(setting: Setting, trace: Trace, book: SpeedBook, policy: Released) -> float:
    """The share of deadlines kept as the released simulator counts them."""
    cluster, tools = counted(setting.devices, setting.kind), Tools(speedups=book)
    replay_counted(ReleasedEngine(trace, cluster, policy, Options(), tools))
    return sum(account.in_time for account in policy.ledger.taken.values()) / len(trace.jobs)


def elastic(data: Path, setting: Setting) -> tuple[Trace, SpeedBook]:
    """The trace with all sizes that were measured."""
    tables = published(data, f"elasticflow/throughputs_{setting.kind.upper()}")
    book = read_speedups(tables, SpeedBook(setting.kind))
    reading = Reading(rates=book, kind=setting.kind, elastic_limit=LARGEST)
    return read_trace(published(data, setting.path), reading), book


def ratio_of(
    figure: str, trace: Trace, cluster: str, policy: str, book: SpeedBook, theirs: str, cause: Cause
) -> Row:
    """The share of deadlines that a policy of ours keeps, of those submitted."""
    record = simulate(trace, parse_short(cluster), find(policy), Options(), Tools(speedups=book))
    ours = {"deadline_ratio": in_time(record)}
    (row,) = compare(f"elasticflow/{figure}", policy, ours, {"deadline_ratio": theirs}, cause)
    return row


def in_time(record: RunRecord) -> float:
    """Deadlines kept, of all that were asked for."""
    asked = [job for job in record.jobs if job.deadline < np.inf]
    kept = [job for job in asked if job.state == "done" and job.end <= job.deadline + 1e-3]
    return len(kept) / max(len(asked), 1)


#: Trace: cluster, and figure 8b of ElasticFlow, EDF, Gandiva and Tiresias.
FIGURE_8B: Final = {
    "cluster01": ("64x8xa100", (".788", ".182", ".246", ".478")),
    "cluster02": ("64x8xa100", (".822", ".228", ".286", ".470")),
    "cluster03": ("64x8xa100", (".455", ".095", ".314", ".401")),
    "cluster04": ("128x8xa100", (".631", ".007", ".228", ".120")),
    "cluster05": ("64x8xa100", (".832", ".375", ".228", ".420")),
    "cluster06": ("64x8xa100", (".607", ".105", ".381", ".466")),
    "cluster07": ("128x8xa100", (".665", ".046", ".351", ".346")),
    "cluster08": ("128x8xa100", (".896", ".252", ".325", ".373")),
    "cluster09": ("128x8xa100", (".938", ".800", ".329", ".468")),
    "cluster10": ("32x8xa100", (".981", ".769", ".354", ".473")),
    "philly_103959": ("32x8xa100", (".87", ".01", ".15", ".32")),
}
POLICIES_8B: Final = ("elasticflow", "edf(greedy=true)", "gandiva", "las")


def fig8b(data: Path) -> Iterator[Row]:
    """Every trace that is there; under policies that are not elastic, at the sizes asked for."""
    for name, (cluster, printed) in FIGURE_8B.items():
        folder = "elasticflow/traces" if name.startswith("philly") else "elasticflow-traces"
        path = f"{folder}/{name}.csv"
        if not any((data / f"{path}{ending}").exists() for ending in ("", ".gz")):
            continue
        devices = parse_short(cluster)
        setting = Setting(
            name, path, "a100", sum(n.devices for n in devices.nodes), 60.0, ("",) * 3, ("",) * 3
        )
        trace, book = elastic(data, setting)
        rigid = read_trace(published(data, path))
        for policy, ratio in zip(POLICIES_8B, printed, strict=True):
            jobs = rigid if policy in ("las", "gandiva") else trace
            figure, cause = f"figure 8b, {name}", GANDIVA if policy == "gandiva" else PER_TRACE
            yield ratio_of(figure, jobs, cluster, policy, book, ratio, cause)


# ------------------------------------------------------------------------- drawn at random

#: Chance of each number of devices, in the authors' generator.
ASKED: Final = ((1, 2, 4, 8, 16), (0.83, 0.03, 0.03, 0.10, 0.01))
TEMPLATES: Final = (
    ("bert", 64), ("bert", 128), ("deepspeech2", 32), ("deepspeech2", 64), ("gpt2", 128),
    ("gpt2", 256), ("inception3", 64), ("inception3", 128), ("resnet50", 64), ("resnet50", 128),
    ("resnet50", 256), ("vgg16", 64), ("vgg16", 128), ("vgg16", 256),
)  # fmt: skip


def drawn(jobs: int, gap_seconds: float, book: SpeedBook, best_effort: float = 0.0) -> Trace:
    """A trace as their generator makes it: Poisson arrivals, run times log-uniform in two parts."""
    draw = np.random.default_rng(1)
    found, at = [], 0.0
    for number in range(jobs):
        at += float(draw.exponential(gap_seconds))
        low, high = (1.0, 2.5) if draw.random() < 0.8 else (2.5, 4.0)
        seconds = float(np.round(60.0 * 10.0 ** draw.uniform(low, high)))
        devices = int(draw.choice(ASKED[0], p=ASKED[1]))
        model, batch = TEMPLATES[int(draw.integers(len(TEMPLATES)))]
        deadline = at + seconds * float(draw.uniform(0.5, 1.5))
        promised = draw.random() >= best_effort
        sizes = tuple(s for s in (1, 2, 4, 8, 16, 32, 64) if book.rate(model, batch, "a100", s))
        spec = JobSpec(
            name=model, devices=Range(min=1, max=sizes[-1], steps=sizes), model=model, batch=batch,
            estimate_seconds=seconds, estimate_devices=devices,
            service="guaranteed" if promised else "best-effort",
            deadline=deadline if promised else None,
        )  # fmt: skip
        found.append(
            TraceJob(id=str(number), submit=at, spec=spec, seconds=seconds, devices=devices)
        )
    return Trace(name="drawn", jobs=tuple(found), kind="a100")


def rigidly(trace: Trace) -> Trace:
    """The same jobs at the sizes they asked for."""
    jobs = []
    for job in trace.jobs:
        devices = Range(min=job.devices, max=job.devices)
        jobs.append(msgspec.structs.replace(
            job, spec=msgspec.structs.replace(job.spec, devices=devices)
        ))  # fmt: skip
    return msgspec.structs.replace(trace, jobs=tuple(jobs))


#: Devices: EDF, with admission, with elastic allocation, and ElasticFlow.
FIGURE_9: Final = {
    "8x8xa100": (".026", ".203", ".452", ".926"),
    "16x8xa100": (".118", ".326", ".835", ".949"),
    "32x8xa100": (".118", ".658", ".939", ".944"),
}
ABLATIONS: Final = ("edf(greedy=true)", "edf(admission=true,greedy=true)", "edf+elastic",
                    "elasticflow")  # fmt: skip


def a100(data: Path) -> SpeedBook:
    """The speeds that were measured."""
    return read_speedups(published(data, "elasticflow/throughputs_A100"), SpeedBook("a100"))


def fig9(data: Path) -> Iterator[Row]:
    """1,000 jobs, one in 1,500 s: what admission and elastic allocation do each by itself."""
    book = a100(data)
    trace = drawn(1000, 1500.0, book)
    for cluster, printed in FIGURE_9.items():
        devices = sum(node.devices for node in parse_short(cluster).nodes)
        for policy, ratio in zip(ABLATIONS, printed, strict=True):
            yield ratio_of(
                f"figure 9, {devices} devices", trace, cluster, policy, book, ratio, DRAWN
            )


def fig10(data: Path) -> Iterator[Row]:
    """100 jobs on 128 devices with deadlines of 1.5 times their run time: mean completion times."""
    setting = SETTINGS[1]
    trace, book = elastic(data, setting)
    rigid = read_trace(published(data, setting.path))
    cases = (("gandiva", "63853", rigid), ("edf+elastic", "24378", trace),
             ("elasticflow", "23807", trace))  # fmt: skip
    for policy, printed, jobs in cases:
        cluster, tools = parse_short("16x8xa100"), Tools(speedups=book)
        record = simulate(jobs, cluster, find(policy), Options(), tools)
        jct = float(np.mean([job.end - job.submit for job in record.jobs if job.state == "done"]))
        ours = {"mean_jct_seconds": jct}
        theirs = {"mean_jct_seconds": printed}
        cause = GANDIVA if policy == "gandiva" else OURS
        yield from compare(f"elasticflow/{setting.name}", policy, ours, theirs, cause)


#: Best-effort share in percent: deadline ratio of ElasticFlow and Tiresias; how much shorter
#: than Gandiva's their mean best-effort completion times are.
FIGURE_11: Final = {
    10: (".74", ".46", "1.6"), 30: (".67", ".44", "1.18"), 50: (".68", ".43", "1.27"),
    70: (".82", ".44", "1.19"), 90: (".95", ".53", "1.31"),
}  # fmt: skip


def fig11(data: Path) -> Iterator[Row]:
    """200 jobs, one in 900 s, on 64 devices, of which some have no deadline."""
    book = a100(data)
    for percent, (elasticflow, tiresias, shorter) in FIGURE_11.items():
        trace = drawn(200, 900.0, book, percent / 100)
        rigid, figure = rigidly(trace), f"elasticflow/figure 11, {percent} % best effort"
        means = {}
        for policy, jobs, ratio in (("elasticflow", trace, elasticflow), ("las", rigid, tiresias),
                                    ("gandiva", rigid, "")):  # fmt: skip
            cluster, tools = parse_short("8x8xa100"), Tools(speedups=book)
            record = simulate(jobs, cluster, find(policy), Options(), tools)
            best = [j.end - j.submit for j in record.jobs if j.service == "best-effort"]
            means[policy] = float(np.mean(best))
            if ratio:
                ours = {"deadline_ratio": in_time(record)}
                yield from compare(figure, policy, ours, {"deadline_ratio": ratio}, DRAWN)
        ours = {"best_effort_gain": means["gandiva"] / means["elasticflow"]}
        yield from compare(figure, "elasticflow", ours, {"best_effort_gain": shorter}, DRAWN)

"""Loads x policies x seeds, in parallel, kept in a file so that an interrupted sweep goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bough.core.cluster import Cluster
from bough.errors import InputError
from bough.sim import parallel
from bough.sim.options import Options, Tools
from bough.sim.results import Row, summarise
from bough.sim.runs import Setting, run
from bough.sim.synthetic import Mix, generate
from bough.sim.trace import Trace, TraceJob


class Point(msgspec.Struct, frozen=True, order=True):
    """One simulation of a sweep."""

    #: Offered load; None leaves the trace as it is.
    load: float | None
    policy: str
    seed: int


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """Traces that are drawn anew for each load and seed."""

    jobs: int = 1000
    elastic: float = 0.5
    mix: Mix = Mix()


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """What all points have in common."""

    #: A trace whose arrivals are stretched to each load, or how to draw one.
    source: Trace | Drawn
    cluster: Cluster
    cluster_name: str
    options: Options = Options()
    tools: Tools = Tools()


def points(
    loads: Sequence[float | None], policies: Sequence[str], seeds: Sequence[int]
) -> list[Point]:
    """Every combination; the policies of one trace next to each other."""
    return [Point(load, policy, seed) for load, seed, policy in product(loads, seeds, policies)]


def sweep(
    common: Sweep, wanted: Sequence[Point], file: Path, processes: int, tell: parallel.Tell
) -> list[Row]:
    """The rows of all points in their order; those the file already has are not run again."""
    mark = fingerprint(common)
    known = {point_of(row): row for row in read_rows(file, mark)}
    missing = [point for point in wanted if point not in known]
    done = len(wanted) - len(missing)

    def tell_all(share: float) -> None:
        tell((done + share * len(missing)) / len(wanted))

    with file.open("ab") as out:
        for _, row in parallel.each(run_point, common, missing, processes, tell_all):
            out.write(msgspec.json.encode({"sweep": mark, **row}) + b"\n")
            out.flush()
            known[point_of(row)] = row
    return [known[point] for point in wanted]


def run_point(common: Sweep, point: Point, tell: parallel.Tell) -> Row:
    """One row: the point, and the summary of its run."""
    setting = Setting(
        trace=trace_at(common, point),
        cluster=common.cluster,
        cluster_name=common.cluster_name,
        options=msgspec.structs.replace(common.options, seed=point.seed),
        tools=common.tools,
    )
    return {"load": point.load, "seed": point.seed, **summarise(run(setting, point.policy, tell))}


def trace_at(common: Sweep, point: Point) -> Trace:
    """The trace of a point: the same for every policy."""
    devices = sum(node.devices for node in common.cluster.nodes)
    source = common.source
    if isinstance(source, Trace):
        return source if point.load is None else at_load(source, devices, point.load)
    load = 0.8 if point.load is None else point.load
    return generate(source.jobs, devices, load, source.elastic, point.seed, source.mix)


def offered_load(trace: Trace, devices: int) -> float:
    """Work submitted per second, of what the devices can do; inf when all comes at once."""
    span = trace.span_seconds()
    return trace.device_seconds() / (devices * span) if span > 0 else float("inf")


def at_load(trace: Trace, devices: int, load: float) -> Trace:
    """The trace with its arrivals stretched or pressed together; deadlines move with them."""
    stretch = offered_load(trace, devices) / load
    if stretch == float("inf"):
        raise InputError(f"all jobs of {trace.name} come at once, so it has no load to change")
    first = trace.jobs[0].submit

    def moved(job: TraceJob) -> TraceJob:
        submit = first + (job.submit - first) * stretch
        spec = job.spec
        if spec.deadline is not None:
            deadline = spec.deadline - job.submit + submit
            spec = msgspec.structs.replace(spec, deadline=deadline)
        return msgspec.structs.replace(job, submit=submit, spec=spec)

    return msgspec.structs.replace(trace, jobs=tuple(moved(job) for job in trace.jobs))


def fingerprint(common: Sweep) -> str:
    """Changes with anything that would change a result."""
    source, book = common.source, common.tools.speedups
    parts = (source, common.cluster, msgspec.structs.replace(common.options, seed=0))
    hashed = hashlib.blake2b(msgspec.json.encode(parts), digest_size=6)
    if book is not None:
        hashed.update(repr(sorted(vars(book).items())).encode())
    return hashed.hexdigest()


def read_rows(file: Path, mark: str) -> Iterator[Row]:
    """The rows of an earlier start of the same sweep."""
    for number, (theirs, row) in enumerate(kept_rows(file), 1):
        if theirs != mark:
            hint = "name another file with --out, or start over with --restart"
            raise InputError("holds another sweep", file=str(file), line=number, hint=hint)
        yield row


def kept_rows(file: Path) -> Iterator[tuple[str, Row]]:
    """The rows of a file, each with the fingerprint of its sweep; a torn last line is cut off."""
    if not file.exists():
        return
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        with file.open("r+b") as out:
            out.truncate(len(whole) - len(lines.pop()))
    for number, line in enumerate(lines, 1):
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
            theirs = row.pop("sweep")
            point_of(row)
        except (msgspec.DecodeError, KeyError, TypeError):
            raise InputError("is no line of a sweep", file=str(file), line=number) from None
        yield theirs, row


def point_of(row: Row) -> Point:
    """Which point a row belongs to."""
    return msgspec.convert({name: row[name] for name in ("load", "policy", "seed")}, Point)


def averages(rows: Iterable[Row]) -> list[Row]:
    """One row for each load and policy: the means over seeds, and how far those go apart."""
    groups: dict[tuple[float | None, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["load"], row["policy"]), []).append(row)
    return [
        {"load": load, "policy": policy, "seeds": len(group), **_means(group)}
        for (load, policy), group in groups.items()
    ]


def _means(group: list[Row]) -> Row:
    """Of every number the mean over those rows that have it, and of the mean JCT the spread."""
    found: Row = {}
    for name in group[0]:
        if name in ("load", "policy", "seed", "waits_seconds"):
            continue
        values = [row[name] for row in group if row[name] is not None]
        found[name] = float(np.mean(values)) if values else None
        if name == "mean_jct_seconds":
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
            found["deviation_mean_jct_seconds"] = spread
    return found

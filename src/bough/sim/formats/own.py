"""bough's own traces: one JSON object a line, first the trace and then its jobs.

    {"bough_trace": 1, "name": "…", "kind": "a100", "epoch": 0, "curves": {"c0": {…}}}
    {"id": "1", "submit": 0.0, "seconds": 60.0, "devices": 4, "spec": {"name": "bert", …}}

Curves that many jobs share are written once, in the first line, and named by the jobs. The first
line may be left out.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bough.core.model import JobSpec
from bough.core.speedup import Curve
from bough.errors import InputError
from bough.sim.formats.rows import DEVICES_MAX, SECONDS_MAX, BadRow, Collector, shown
from bough.sim.trace import Reading, Source, Trace, TraceJob

VERSION = 1
#: What decoding may raise: a value that is none of ours, or one nested without end.
UNREADABLE = (msgspec.MsgspecError, RecursionError, ValueError)


class First(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The first line."""

    bough_trace: int
    name: str = ""
    kind: str = ""
    epoch: float = 0.0
    curves: dict[str, dict[str, Any]] = {}


class Line(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A job as it is written."""

    id: str
    submit: float
    seconds: float
    devices: int
    spec: JobSpec
    #: Name of one of the trace's curves, or a curve.
    curve: str | dict[str, Any] | None = None
    fails_at: float | None = None


def recognises(source: Source) -> bool:
    """By JSON lines that are a trace's or a job's."""
    if not source.first.startswith("{"):
        return False
    return all(f'"{name}"' in source.first for name in ("id", "submit", "spec")) or (
        '"bough_trace"' in source.first
    )


def read(source: Source, reading: Reading) -> Trace:
    """Read it."""
    collector = Collector(source, reading)
    lines = source.text.split("\n")
    first, curves = read_first(collector, lines)
    decode = msgspec.json.Decoder(Line).decode
    for number, text in enumerate(lines, start=1):
        if not text or text.isspace() or (first is not None and number == 1):
            continue
        try:
            collector.add(job_of(collector, decode(text), curves))
        except BadRow as bad:
            collector.bad(number, bad.what, bad.field)
        except UNREADABLE as error:
            collector.bad(number, str(error))
    endless = endless_waits(collector.jobs)
    if endless:
        collector.notes.append(endless)
    kind, epoch, name = (first.kind, first.epoch, first.name) if first else ("", 0.0, "")
    trace = collector.trace("bough", reading.kind or kind, epoch)
    return msgspec.structs.replace(trace, name=name) if name else trace


def endless_waits(jobs: list[TraceJob]) -> str:
    """Which jobs come after one that is not there, or after themselves; ids are what counts."""
    waiting = {job.id: {a.job for a in job.spec.after} for job in jobs if job.spec.after}
    ends = {job.id for job in jobs} - waiting.keys()
    earlier = len(jobs)
    while len(waiting) < earlier:
        earlier = len(waiting)
        left: dict[str, set[str]] = {}
        for id, before in waiting.items():
            if before <= ends:
                ends.add(id)
            else:
                left[id] = before
        waiting = left
    if not waiting:
        return ""
    count, (id, before) = len(waiting), next(iter(waiting.items()))
    first = f"{shown(id)} comes after {shown(min(before - ends))}"
    return f"{count:,} {'job waits' if count == 1 else 'jobs wait'} for ever: {first}"


def read_first(collector: Collector, lines: list[str]) -> tuple[First | None, dict[str, Curve]]:
    """The trace's own line, if it has one, and the curves that it names."""
    if '"bough_trace"' not in lines[0]:
        return None, {}
    file = collector.source.file
    try:
        first = msgspec.json.decode(lines[0], type=First)
    except UNREADABLE as error:
        raise InputError(str(error), file=file, line=1) from None
    if first.bough_trace != VERSION:
        what = f"is {first.bough_trace}, and this bough reads {VERSION}"
        raise InputError(what, file=file, line=1, field="bough_trace")
    try:
        return first, {name: curve_of(value) for name, value in first.curves.items()}
    except BadRow as bad:
        raise InputError(bad.what, file=file, line=1, field="curves") from None


def curve_of(value: dict[str, Any]) -> Curve:
    """A curve from what JSON knows of it."""
    try:
        return msgspec.convert(value, Curve)
    except UNREADABLE as error:
        raise BadRow(str(error), "curve") from None


def job_of(collector: Collector, line: Line, curves: dict[str, Curve]) -> TraceJob:
    """The job, if its numbers make sense."""
    if not 0 <= line.submit <= SECONDS_MAX:
        raise BadRow(f"{line.submit:g} is not within 0..{SECONDS_MAX:g}", "submit")
    if not 0 < line.seconds <= SECONDS_MAX:
        raise BadRow(f"{line.seconds:g} is not within 0..{SECONDS_MAX:g}", "seconds")
    if not 1 <= line.devices <= DEVICES_MAX:
        raise BadRow(f"{line.devices} is not within 1..{DEVICES_MAX}", "devices")
    if line.fails_at is not None and not 0 < line.fails_at < 1:
        raise BadRow(f"{line.fails_at:g} is not within 0..1", "fails_at")
    curve: Curve | None
    if isinstance(line.curve, str):
        curve = curves.get(line.curve)
        if curve is None:
            raise BadRow(f"{line.curve!r} is not among the curves of the first line", "curve")
    else:
        curve = None if line.curve is None else curve_of(line.curve)
    return TraceJob(
        id=line.id,
        submit=line.submit,
        seconds=line.seconds,
        devices=line.devices,
        spec=elastic(collector, line.spec),
        curve=curve,
        fails_at=line.fails_at,
    )


def elastic(collector: Collector, spec: JobSpec) -> JobSpec:
    """The job as it asks, or on 1 to as many devices as jobs are to run on; gangs stay as is."""
    if not collector.reading.elastic_limit or spec.roles:
        return spec
    return msgspec.structs.replace(spec, devices=collector.range(spec.devices.max))


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write it where `read_trace` will find it; gzipped if the name ends in .gz."""
    path = Path(path)
    data = b"\n".join(encoded(trace)) + b"\n"
    if path.suffix == ".gz":
        data = gzip.compress(data, compresslevel=6, mtime=0)
    path.write_bytes(data)


def encoded(trace: Trace) -> Iterator[bytes]:
    """The lines of the file."""
    encode = msgspec.json.Encoder().encode
    names: dict[Curve, str] = {}
    for job in trace.jobs:
        if job.curve is not None and job.curve not in names:
            names[job.curve] = f"c{len(names)}"
    curves = {name: msgspec.to_builtins(curve) for curve, name in names.items()}
    yield encode(
        First(
            bough_trace=VERSION,
            name=trace.name,
            kind=trace.kind,
            epoch=trace.epoch,
            curves=curves,
        )
    )
    for job in trace.jobs:
        yield encode(
            Line(
                id=job.id,
                submit=job.submit,
                seconds=job.seconds,
                devices=job.devices,
                spec=job.spec,
                curve=None if job.curve is None else names[job.curve],
                fails_at=job.fails_at,
            )
        )

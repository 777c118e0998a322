"""Gavel's (OSDI '20) and Shockwave's (NSDI '23) traces: tab-separated, steps instead of seconds.

There is no header; the number of cells tells which of the four layouts a row has. Steps become
seconds by the speeds of their throughput files; Shockwave's rows have a duration as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bough.errors import InputError
from bough.sim.formats.rows import Collector, Row, lines
from bough.sim.formats.speeds import seconds_by_rate, seconds_told_or_measured
from bough.sim.trace import Reading, Source, Trace, TraceJob

#: The columns by their number. Two-word names are ours where the authors' say nothing.
LAYOUTS: dict[int, tuple[str, ...]] = {
    7: (
        "job_type", "command", "steps_argument", "needs_data", "total_steps", "arrival_time",
        "scale_factor",
    ),
    9: (
        "job_type", "command", "steps_argument", "needs_data", "total_steps", "scale_factor",
        "priority_weight", "slo", "arrival_time",
    ),
    10: (
        "job_type", "command", "directory", "steps_argument", "needs_data", "total_steps",
        "scale_factor", "priority_weight", "slo", "arrival_time",
    ),
    12: (
        "job_type", "command", "directory", "steps_argument", "needs_data", "total_steps",
        "scale_factor", "mode", "priority_weight", "slo", "duration", "arrival_time",
    ),
}  # fmt: skip
COLUMNS = {
    width: {name: index for index, name in enumerate(names)} for width, names in LAYOUTS.items()
}

#: "ResNet-50 (batch size 64)"
JOB_TYPE = re.compile(r"(?P<model>.+?)\s*(?:\(batch size (?P<batch>\d{1,9})\))?")
#: The kind of device that the authors' traces are written for.
KIND = "v100"


@dataclass(frozen=True)
class JobType:
    """What a job trains."""

    model: str
    batch: int


def recognises(source: Source) -> bool:
    """By as many tabs as a layout has, and an argument that sets the number of steps."""
    cells = source.first.split("\t")
    columns = COLUMNS.get(len(cells))
    return columns is not None and cells[columns["steps_argument"]].startswith("-")


def read(source: Source, reading: Reading) -> Trace:
    """Read it."""
    collector = Collector(source, reading)
    kind = reading.kind or KIND
    unit = reading.unit_seconds or 1.0
    dynamic = 0

    def job(row: Row) -> TraceJob:
        nonlocal dynamic
        trained = job_type(row)
        devices = row.devices("scale_factor")
        submit = row.moment("arrival_time", unit)
        what = (trained.model, trained.batch, devices)
        if "duration" in row.columns:
            seconds = seconds_told_or_measured(collector, kind, row, "total_steps", what)
        else:
            seconds = seconds_by_rate(reading, kind, row, "total_steps", what)
        slo = row.number("slo", least=-1.0) if "slo" in row.columns else -1.0
        dynamic += row.text("mode", "static") != "static"
        return collector.job(
            f"{row.line}",
            submit,
            seconds,
            devices,
            model=trained.model,
            batch=trained.batch,
            weight=row.number("priority_weight") if "priority_weight" in row.columns else 1.0,
            deadline=submit + slo * unit if slo > 0 else None,
        )

    collector.each(rows(collector), job)
    if dynamic:
        note = f"{dynamic:,} jobs change their batch size in the original and keep it here"
        collector.notes.append(note)
    return collector.trace("gavel", kind)


def rows(collector: Collector) -> list[Row]:
    """Rows of any layout."""
    found = []
    for line, cells in lines(collector, collector.source.text, "\t"):
        columns = COLUMNS.get(len(cells))
        if columns is None:
            collector.bad(line, f"has {len(cells)} cells, not 7, 9, 10 or 12")
        elif "duration" not in columns and collector.reading.rates is None:
            raise InputError(
                "counts steps, not seconds",
                file=collector.source.file,
                line=line,
                hint="give the throughputs with --speedups FILE",
            )
        else:
            found.append(Row(columns, cells, line))
    return found


def job_type(row: Row) -> JobType:
    """Model and batch size from their description."""
    match = JOB_TYPE.fullmatch(row.text("job_type"))
    if match is None:
        return JobType("", 0)
    return JobType(match["model"].lower(), int(match["batch"] or 0))

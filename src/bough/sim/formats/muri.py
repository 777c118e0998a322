"""Muri's (SIGCOMM '22) and Tiresias' (NSDI '19) simulator inputs: rigid jobs with their durations.

The columns are the same but for the unit: Muri's files, known by their `iteration_time`, count
milliseconds, Tiresias' count seconds.
"""

from __future__ import annotations

from bough.sim.formats.rows import Collector, Row, header, table
from bough.sim.trace import Reading, Source, Trace, TraceJob

REQUIRED = ("job_id", "num_gpu", "submit_time", "duration", "model_name")
#: Columns of formats that have these too, and more.
OTHERS = {"ddl", "deadline", "expect_time_list"}


def recognises(source: Source) -> bool:
    """By jobs with durations and no deadlines."""
    names = set(header(source))
    return names.issuperset(REQUIRED) and not names & OTHERS


def read(source: Source, reading: Reading) -> Trace:
    """Read it."""
    collector = Collector(source, reading)
    in_milliseconds = "iteration_time" in header(source)
    unit = reading.unit_seconds or (1e-3 if in_milliseconds else 1.0)
    if reading.unit_seconds is None:
        collector.notes.append(
            "times are read as milliseconds" if in_milliseconds else "times are read as seconds"
        )

    def job(row: Row) -> TraceJob:
        return collector.job(
            row.text("job_id"),
            row.moment("submit_time", unit),
            row.seconds("duration", unit),
            row.devices("num_gpu"),
            model=row.text("model_name").lower(),
            batch=row.whole("batch_size") if "batch_size" in row.columns else 0,
        )

    collector.each(table(collector, REQUIRED), job)
    return collector.trace("muri", reading.kind)

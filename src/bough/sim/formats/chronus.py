"""Chronus' traces (SoCC '21): Philly's jobs with strict, soft or no deadlines, in minutes.

A strict job asks for a guarantee of its deadline. A soft one has the earliest of its times as
deadline, but takes what it gets; how much the later ones are worth to it has no place here.
"""

from __future__ import annotations

from bough.sim.formats.rows import BadRow, Collector, Row, header, shown, table
from bough.sim.trace import Reading, Source, Trace, TraceJob

REQUIRED = (
    "job_id", "user", "num_gpu", "submit_time", "model_name", "duration", "expect_time_list",
    "best_effort",
)  # fmt: skip

#: Nowhere written, but 20,160 ticks are two weeks of minutes exactly.
MINUTE_SECONDS = 60.0


def recognises(source: Source) -> bool:
    """By its lists of expected times."""
    return set(header(source)).issuperset(REQUIRED)


def read(source: Source, reading: Reading) -> Trace:
    """Read it."""
    collector = Collector(source, reading)
    unit = reading.unit_seconds or MINUTE_SECONDS
    if reading.unit_seconds is None:
        collector.notes.append("times are read as minutes")

    def job(row: Row) -> TraceJob:
        submit = row.moment("submit_time", unit)
        best = row.text("best_effort") == "1"
        deadline = None if best else submit + earliest(row) * unit
        return collector.job(
            row.text("job_id"),
            submit,
            row.seconds("duration", unit),
            row.devices("num_gpu"),
            model=row.text("model_name").lower(),
            queue=row.text("user"),
            deadline=deadline,
            guaranteed=not best and row.text("job_type", "strict") == "strict",
        )

    collector.each(table(collector, REQUIRED), job)
    return collector.trace("chronus", reading.kind)


def earliest(row: Row) -> float:
    """The first time at which the job is still worth all it can be, after its submission."""
    text = row.text("expect_time_list")
    try:
        times = [float(part) for part in text.split("-")]
    except ValueError:
        raise BadRow(f"{shown(text)} is no list of times", "expect_time_list") from None
    if not 0 <= min(times) < float("inf"):
        raise BadRow(f"{shown(text)} is no list of times", "expect_time_list")
    return min(times)

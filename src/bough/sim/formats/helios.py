"""SenseTime's Helios logs (SC '21), and Lucid's workloads (ASPLOS '23), which add the models."""

from __future__ import annotations

from bough.sim.formats.rows import Collector, Row, header, table
from bough.sim.trace import Reading, Source, Trace, TraceJob

REQUIRED = ("job_id", "user", "vc", "gpu_num", "state", "submit_time", "duration")
#: Lucid's Philly table calls the job's id so.
NAMES = {"jobname": "job_id"}
FAILED = {"FAILED", "TIMEOUT", "NODE_FAIL"}


def recognises(source: Source) -> bool:
    """By jobs of virtual clusters."""
    found = set(header(source))
    return found.issuperset(set(REQUIRED) - {"job_id"}) and bool(found & {"job_id", "jobname"})


def read(source: Source, reading: Reading) -> Trace:
    """Read it."""
    collector = Collector(source, reading)
    names = {} if "job_id" in header(source) else NAMES
    rows = list(table(collector, REQUIRED, names=names))
    # Helios writes dates, Lucid also seconds since the trace began.
    dated = bool(rows) and ":" in rows[0].text("submit_time")
    unit = reading.unit_seconds or 1.0

    def job(row: Row) -> TraceJob:
        return collector.job(
            row.text("job_id"),
            row.calendar("submit_time") if dated else row.moment("submit_time", unit),
            row.seconds("duration", unit),
            row.devices("gpu_num"),
            model=row.text("model", "").lower(),
            batch=row.whole("batchsize") if row.text("batchsize", "") else 0,
            user=row.text("user"),
            queue=row.text("vc"),
            failed=row.text("state").upper() in FAILED,
        )

    collector.each(rows, job)
    if dated:
        return collector.calendar_trace("helios", reading.kind)
    return collector.trace("helios", reading.kind)

"""Microsoft's Philly trace (ATC '19): the original job log in JSON, and a table made from it.

The log lists for each job the attempts to run it. The run time is that of all attempts together,
counted at the size of the last one, so that the device time is what was really used; waiting
between attempts is none of it. The table (timestamp, duration, num_gpus, gpu_time, cluster) comes
with Pollux' simulator.
"""

from __future__ import annotations

import msgspec

from bough.errors import InputError
from bough.sim.formats.rows import (
    BadRow,
    Collector,
    LeftOut,
    Row,
    header,
    table,
    unix_time,
)
from bough.sim.trace import Reading, Source, Trace, TraceJob

REQUIRED = ("timestamp", "duration", "num_gpus", "cluster")
FAILED = {"failed"}


class Detail(msgspec.Struct):
    """The devices of one machine."""

    gpus: list[str] = []


class Attempt(msgspec.Struct):
    """One time that the job was run."""

    start_time: str | None = None
    end_time: str | None = None
    detail: list[Detail] = []


class Logged(msgspec.Struct):
    """A job of the log."""

    jobid: str
    submitted_time: str
    attempts: list[Attempt] = []
    status: str = ""
    vc: str = ""
    user: str | None = None


def recognises(source: Source) -> bool:
    """By a JSON list of jobs with attempts, or by the table's columns."""
    if source.text[:100].lstrip().startswith("["):
        return '"attempts"' in source.text[:100_000]
    return set(header(source)).issuperset(REQUIRED)


def read(source: Source, reading: Reading) -> Trace:
    """Read either."""
    collector = Collector(source, reading)
    if source.text[:100].lstrip().startswith("["):
        read_log(collector)
    else:
        read_table(collector)
    return collector.calendar_trace("philly", reading.kind)


def read_table(collector: Collector) -> None:
    """A job for each row; they have no names but their numbers."""

    def job(row: Row) -> TraceJob:
        return collector.job(
            str(row.line - 1),
            row.calendar("timestamp"),
            row.seconds("duration"),
            row.devices("num_gpus"),
            queue=row.text("cluster"),
        )

    collector.each(table(collector, REQUIRED), job)


def read_log(collector: Collector) -> None:
    """A job for each element of the list."""
    try:
        entries = msgspec.json.decode(collector.source.text, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(str(error), file=collector.source.file) from None
    decode = msgspec.json.Decoder(Logged).decode
    for number, entry in enumerate(entries, start=1):
        place = f"job {number}"
        try:
            collector.add(logged_job(collector, decode(entry)))
        except LeftOut as left:
            collector.left_out[left.why] += 1
        except BadRow as bad:
            collector.bad(None, bad.what, f"{place}.{bad.field}" if bad.field else place)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            collector.bad(None, str(error), place)


def logged_job(collector: Collector, logged: Logged) -> TraceJob:
    """The job, if it ran."""
    submit = unix_time(logged.submitted_time, "submitted_time")
    if not logged.attempts:
        raise LeftOut("never ran")
    runs = [run for attempt in logged.attempts if (run := run_of(attempt)) is not None]
    if logged.attempts[-1].end_time is None:
        raise LeftOut("still running when the trace was taken")
    if not runs:
        raise LeftOut("ran, but when is not recorded")
    devices = runs[-1][1]
    if devices == 0:
        raise LeftOut("asked for no device")
    seconds = sum(seconds * size for seconds, size in runs) / devices
    if seconds == 0:
        raise LeftOut("ran for 0 seconds")
    return collector.job(
        logged.jobid,
        submit,
        seconds,
        devices,
        user=logged.user or "",
        queue=logged.vc,
        failed=logged.status.lower() in FAILED,
    )


def run_of(attempt: Attempt) -> tuple[float, int] | None:
    """Seconds and devices of one attempt; None when its times are not recorded."""
    try:
        start = unix_time(attempt.start_time, "start_time")
        end = unix_time(attempt.end_time, "end_time")
    except LeftOut:
        return None
    if end < start:
        raise BadRow("an attempt ends before it begins", "attempts")
    return end - start, sum(len(machine.gpus) for machine in attempt.detail)

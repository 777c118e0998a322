"""Slurm's accounting: `sacct --allusers --parsable2 --format=JobID,User,Partition,State,…`.

Devices are the generic resource `gpu` of what was allocated. Only the rows of jobs count; those of
their steps (`17.batch`) say the same again. Jobs that have not ended, or never began, are left out.
"""

from __future__ import annotations

import re

from bough.errors import InputError
from bough.sim.formats.rows import BadRow, Collector, LeftOut, Row, header, shown, table
from bough.sim.trace import Reading, Source, Trace, TraceJob

REQUIRED = ("jobid", "state", "submit")
EXPORT = "JobID,User,Partition,State,Submit,Start,End,ElapsedRaw,AllocTRES"
#: What holds devices, the best first: allocated before requested, TRES before the older GRES.
RESOURCES = ("alloctres", "allocgres", "reqtres", "reqgres")
LIVE = {"RUNNING", "PENDING", "REQUEUED", "RESIZING", "SUSPENDED", "CONFIGURING", "COMPLETING"}
FAILED = {"FAILED", "TIMEOUT", "OUT_OF_MEMORY"}

#: `gres/gpu=8`, `gres/gpu:a100=8`, and in GRES `gpu:8` or `gpu:a100:8(S:0-1)`.
DEVICE = re.compile(
    r"(?:gres/)?gpu(?::(?P<kind>[A-Za-z][^:=,(]*))?[:=](?P<count>\d{1,9})(?:\(.*\))?"
)
#: `[days-]hours:minutes:seconds`, and shorter ones.
ELAPSED = re.compile(
    r"(?:(?P<days>\d{1,6})-)?(?:(?P<hours>\d{1,6}):)?(?P<minutes>\d{1,6}):(?P<seconds>\d{1,6}(?:\.\d+)?)"
)


def recognises(source: Source) -> bool:
    """By a header with bars."""
    return set(header(source, "|")).issuperset(REQUIRED)


def read(source: Source, reading: Reading) -> Trace:
    """Read it."""
    collector = Collector(source, reading)
    names = set(header(source, "|"))
    resources = [name for name in RESOURCES if name in names]
    if not resources:
        raise lacking(source, "AllocTRES or ReqTRES")
    if not names & {"elapsedraw", "elapsed"} and not names >= {"start", "end"}:
        raise lacking(source, "ElapsedRaw, or Elapsed, or Start and End")

    def job(row: Row) -> TraceJob:
        id = row.text("jobid")
        state = row.text("state").upper().split(" ")[0]  # "CANCELLED by 1000"
        if "." in id:
            raise LeftOut("steps of jobs")
        if state in LIVE:
            raise LeftOut("had not ended")
        devices = devices_of(row, resources)
        if not devices:
            raise LeftOut("asked for no device")
        seconds = seconds_of(row)
        if seconds == 0:
            raise LeftOut("ran for 0 seconds")
        return collector.job(
            id,
            row.calendar("submit"),
            seconds,
            devices,
            user=row.text("user", ""),
            queue=row.text("partition", ""),
            failed=state in FAILED,
        )

    collector.each(table(collector, REQUIRED, delimiter="|"), job)
    return collector.calendar_trace("sacct", reading.kind)


def lacking(source: Source, what: str) -> InputError:
    """The export has too few columns."""
    return InputError(
        f"lacks {what}",
        file=source.file,
        line=1,
        hint=f"export with --format={EXPORT}",
    )


def devices_of(row: Row, resources: list[str]) -> int:
    """GPUs in the first column that names any."""
    for name in resources:
        total, by_kind = None, 0
        for part in row.text(name).split(","):
            match = DEVICE.fullmatch(part.strip())
            if match is None:
                continue
            if match["kind"]:
                by_kind += int(match["count"])
            else:
                total = int(match["count"])
        # TRES names the total and then the same again by kind; GRES only one of them.
        found = by_kind if total is None else total
        if found:
            return found
    return 0


def seconds_of(row: Row) -> float:
    """How long it ran."""
    if row.text("elapsedraw", ""):
        return row.number("elapsedraw")
    elapsed = row.text("elapsed", "")
    if elapsed:
        match = ELAPSED.fullmatch(elapsed)
        if match is None:
            raise BadRow(f"{shown(elapsed)} is not [days-]hours:minutes:seconds", "elapsed")
        days, hours, minutes = (int(match[part] or 0) for part in ("days", "hours", "minutes"))
        return ((days * 24 + hours) * 60 + minutes) * 60 + float(match["seconds"])
    seconds = row.calendar("end") - row.calendar("start")
    if seconds < 0:
        raise BadRow("ends before it begins", "end")
    return seconds

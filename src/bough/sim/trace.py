"""A trace: the jobs of a replay, with what each would truly need, read from any known format."""

from __future__ import annotations

import gc
import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from bough.core.model import JobSpec
from bough.core.speedup import Curve
from bough.errors import InputError, nearest
from bough.sim import parquet

#: Gzip is recognised by its first bytes, whatever the file is called.
GZIP_MAGIC = b"\x1f\x8b"


class TraceJob(msgspec.Struct, frozen=True, kw_only=True):
    """One submission, and the truth about it that the scheduler does not see."""

    id: str
    #: Seconds on the trace's clock.
    submit: float
    spec: JobSpec
    #: Run time on `devices` devices of the trace's kind in the most compact place.
    seconds: float
    devices: int
    #: How it truly scales, if the trace knows; else looked up by model, batch and kind.
    curve: Curve | None = None
    #: Fraction of its work, below 1, after which it crashes by its own fault.
    fails_at: float | None = None


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs in order of submission, and what could not be read."""

    name: str
    jobs: tuple[TraceJob, ...]
    #: One line for each malformed row that was skipped.
    problems: tuple[str, ...] = ()
    #: What was assumed or left out, with numbers.
    notes: tuple[str, ...] = ()
    #: Device kind the run times were measured on; empty when the trace does not say.
    kind: str = ""
    format: str = "bough"
    #: Unix time of second 0; 0 when the trace has no calendar.
    epoch: float = 0.0

    def device_seconds(self) -> float:
        """Work of all jobs at the sizes the trace gives them."""
        return math.fsum(job.seconds * job.devices for job in self.jobs)

    def span_seconds(self) -> float:
        """From the first submission to the last."""
        return self.jobs[-1].submit - self.jobs[0].submit if self.jobs else 0.0


class Rates(Protocol):
    """Measured speeds in iterations per second, for traces that count iterations."""

    def rate(self, model: str, batch: int, kind: str, size: int) -> float | None:
        """Iterations per second on so many devices; None when not known or not possible."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How a trace is to be read."""

    #: Name of a format; None recognises it by its columns.
    format: str | None = None
    #: What to do with a malformed row: note it and go on, or stop there.
    on_bad: Literal["skip", "fail"] = "skip"
    #: Let jobs run on 1 up to this many devices instead of the number they asked for; 0: as asked.
    elastic_limit: int = 0
    #: Speeds for traces that count iterations, and the kind of device to look up.
    rates: Rates | None = None
    kind: str = ""
    #: Folder of application profiles, for Pollux' workloads.
    profiles: Path | None = None
    #: Seconds of one unit of time in the file; None takes what the format says.
    unit_seconds: float | None = None
    #: Let jobs that failed in the trace fail in the replay too.
    failures: bool = False
    #: Slots that stand for one device in traces of shared devices; 0 gives whole devices.
    slots: int = 0


def read_trace(path: str | Path, reading: Reading | None = None) -> Trace:
    """Read a trace of any known format, gzipped or not; InputError says what is wrong with it."""
    from bough.sim.formats import FORMATS, recognise

    reading = reading or Reading()
    path = Path(path)
    if reading.format is not None and reading.format not in FORMATS:
        raise InputError(
            f"no trace format {reading.format!r}", hint=nearest(reading.format, FORMATS)
        )
    with garbage_kept():
        source = Source(path)
        name = reading.format or recognise(source)
        trace = FORMATS[name].read(source, reading)
    if not trace.jobs:
        first = f"; the first problem: {trace.problems[0]}" if trace.problems else ""
        raise InputError(f"holds no usable job{first}", file=str(path))
    return trace


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Leave the search for cycles until the end: many small objects make it half of the work."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Source:
    """A trace's text, and where it came from. A directory holds several tables."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: For messages: as the user wrote it.
        self.file = str(path)
        self.text = "" if path.is_dir() else read_text(path)
        #: The first line, where a format shows itself.
        self.first = self.text[: self.text.find("\n")] if "\n" in self.text else self.text

    def name(self) -> str:
        """The trace's name: its file's without the endings that only say how it is stored."""
        name = self.path.resolve().name
        for ending in (".gz", ".parquet", ".csv", ".jsonl", ".json", ".trace", ".txt", ".log"):
            name = name.removesuffix(ending)
        return name


def read_text(path: Path) -> str:
    """The file's text, unpacked when it is gzipped; a table in Parquet as CSV."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(error.strerror, file=str(path)) from None
    if data[:4] == parquet.MAGIC:
        return parquet.as_csv(path)
    try:
        if data[:2] == GZIP_MAGIC:
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("is no UTF-8 text", file=str(path), line=line) from None
    except (EOFError, OSError, zlib.error):
        raise InputError("is a damaged gzip file", file=str(path)) from None

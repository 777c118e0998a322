"""Rows of a table with their numbers, and one place where malformed ones are reported."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from bough.core.model import JobSpec, Range
from bough.errors import InputError
from bough.sim.trace import Reading, Source, Trace, TraceJob

#: A cell longer than this is damage, not data.
CELL_CHARACTERS_MAX = 1_000_000
#: Nobody submits in the year 33000, and no job runs for a million years.
SECONDS_MAX = 1e12
#: A job that failed in the trace fails when it has run as long as it did there; having done all
#: of its work it would have succeeded.
LATEST_FAILURE = 1 - 1e-9
#: More devices than any cluster has.
DEVICES_MAX = 10_000_000


class BadRow(ValueError):
    """This row cannot be used."""

    def __init__(self, what: str, field: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.field = field


class LeftOut(Exception):
    """This row is fine, but it is no job that could be replayed."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Row:
    """One row of a table whose columns have names."""

    __slots__ = ("cells", "columns", "line")

    def __init__(self, columns: dict[str, int], cells: Sequence[str], line: int) -> None:
        self.columns = columns
        self.cells = cells
        self.line = line

    def text(self, name: str, default: str | None = None) -> str:
        """The cell without the space around it; an absent column gives the default."""
        index = self.columns.get(name)
        if index is None or index >= len(self.cells):
            if default is None:
                raise BadRow("is missing", name)
            return default
        return self.cells[index].strip()

    def number(self, name: str, least: float = 0.0, most: float = SECONDS_MAX) -> float:
        """A finite number within bounds."""
        text = self.text(name)
        try:
            value = float(text)
        except ValueError:
            raise BadRow(f"{shown(text)} is not a number", name) from None
        if not least <= value <= most:  # also false for NaN
            raise BadRow(f"{text} is not within {least:g}..{most:g}", name)
        return value

    def whole(self, name: str, least: int = 0, most: int = DEVICES_MAX) -> int:
        """A whole number within bounds; 4.0 is whole too."""
        value = self.number(name, least, most)
        if value != int(value):
            raise BadRow(f"{self.text(name)} is not a whole number", name)
        return int(value)

    def calendar(self, name: str) -> float:
        """Unix time of a moment written as a date; one without a zone is taken as UTC."""
        return unix_time(self.text(name), name)

    def devices(self, name: str) -> int:
        """How many devices the job held; without any it is none of ours."""
        count = self.whole(name)
        if count == 0:
            raise LeftOut("asked for no device")
        return count

    def moment(self, name: str, unit: float = 1.0) -> float:
        """A moment or a length of time, in seconds."""
        value = self.number(name)
        # Thousandths are divided by 1000, because multiplying by 0.001 is not exact.
        return value * unit if unit >= 1 else value / round(1 / unit)

    def seconds(self, name: str, unit: float = 1.0) -> float:
        """How long the job ran; nothing can be replayed of one that did not."""
        value = self.moment(name, unit)
        if value == 0:
            raise LeftOut("ran for 0 seconds")
        return value


class Collector:
    """Gathers jobs row by row, and what was wrong or left out with them."""

    def __init__(self, source: Source, reading: Reading) -> None:
        self.source = source
        self.reading = reading
        self.jobs: list[TraceJob] = []
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.left_out: Counter[str] = Counter()
        #: Jobs whose duration stands, because no rate is known for them.
        self.told = 0
        self.ids: set[str] = set()
        #: Equal ranges are one object.
        self.ranges: dict[tuple[int, int], Range] = {}
        self.measured: dict[tuple[str, int, int], Range] = {}

    def bad(self, line: int | None, what: str, field: str | None = None) -> None:
        """Note a malformed row, or stop at it."""
        error = InputError(what, file=self.source.file, line=line, field=field)
        if self.reading.on_bad == "fail":
            raise error
        self.problems.append(str(error))

    def each(self, rows: Iterable[Row], job: Callable[[Row], TraceJob]) -> None:
        """Turn every row into a job."""
        for row in rows:
            try:
                self.add(job(row))
            except LeftOut as left:
                self.left_out[left.why] += 1
            except BadRow as bad:
                self.bad(row.line, bad.what, bad.field)
            except ValueError as error:  # what JobSpec and Range refuse
                self.bad(row.line, str(error))

    def add(self, job: TraceJob) -> None:
        """Take a job whose id is new."""
        if job.id in self.ids:
            raise BadRow(f"job {shown(job.id)} appears twice")
        self.ids.add(job.id)
        self.jobs.append(job)

    def job(  # noqa: PLR0913 - one parameter for each thing a row may say
        self,
        id: str,
        submit: float,
        seconds: float,
        devices: int,
        *,
        model: str = "",
        batch: int = 0,
        user: str = "",
        queue: str = "",
        deadline: float | None = None,
        guaranteed: bool | None = None,
        weight: float = 1.0,
        failed: bool = False,
        sizes: Range | None = None,
    ) -> TraceJob:
        """A job as every format gives it. What has a deadline asks for a guarantee."""
        refuse_extremes(submit, seconds, devices)
        wanted = deadline is not None if guaranteed is None else guaranteed
        spec = JobSpec(
            name=model or "job",
            model=model,
            batch=batch,
            devices=self.range(devices) if sizes is None else sizes,
            user=user,
            queue=queue or "default",
            weight=weight,
            deadline=deadline,
            service="guaranteed" if wanted else "best-effort",
            estimate_seconds=seconds,
            estimate_devices=devices,
        )
        fails_at = LATEST_FAILURE if failed and self.reading.failures else None
        return TraceJob(
            id=id, submit=submit, seconds=seconds, devices=devices, spec=spec, fails_at=fails_at
        )

    def range(self, devices: int) -> Range:
        """The sizes a job may have; equal ones are one object."""
        limit = self.reading.elastic_limit
        key = (1, max(limit, devices)) if limit else (devices, devices)
        found = self.ranges.get(key)
        if found is None:
            found = self.ranges[key] = Range(min=key[0], max=key[1])
        return found

    def calendar_trace(self, format: str, kind: str = "") -> Trace:
        """The same for moments in Unix time: the first submission becomes second 0."""
        epoch = min((job.submit for job in self.jobs), default=0.0)
        replace = msgspec.structs.replace
        self.jobs = [replace(job, submit=job.submit - epoch) for job in self.jobs]
        return self.trace(format, kind, epoch)

    def trace(self, format: str, kind: str = "", epoch: float = 0.0) -> Trace:
        """Everything gathered, in order of submission."""
        notes = [*self.notes]
        if self.told:
            notes.append(f"{self.told:,} jobs have no rate in the tables; their durations stand")
        for why, count in self.left_out.items():
            notes.append(f"{count:,} {'row' if count == 1 else 'rows'} left out: {why}")
        return Trace(
            name=self.source.name(),
            jobs=tuple(sorted(self.jobs, key=lambda job: job.submit)),
            problems=tuple(self.problems),
            notes=tuple(notes),
            kind=kind,
            format=format,
            epoch=epoch,
        )


#: What logs write where a moment is not known.
NO_MOMENT = {"", "none", "null", "unknown", "nan", "n/a"}


def refuse_extremes(submit: float, seconds: float, devices: int) -> None:
    """A moment, a duration or a size beyond all reason is a slip of the file."""
    if not (0 < seconds <= SECONDS_MAX and 0 <= submit <= SECONDS_MAX):
        what = f"submitted at {submit:g} s and running {seconds:g} s is beyond {SECONDS_MAX:g}"
        raise BadRow(what)
    if devices > DEVICES_MAX:
        raise BadRow(f"{devices} devices are more than {DEVICES_MAX}")


def unix_time(text: str | None, field: str) -> float:
    """Seconds since 1970 of a date as logs write it."""
    if text is None or text.lower() in NO_MOMENT:
        raise LeftOut(f"has no {field}")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadRow(f"{shown(text)} is not a date like 2020-04-08 11:23:44", field) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = moment.timestamp()
    if seconds < 0:
        raise BadRow(f"{shown(text)} is before 1970", field)
    return seconds


def whole_devices(amount: float, slots: int) -> int:
    """Devices, or slots of shared ones, that hold so much of a device; never less than asked."""
    # The small term keeps 0.07 * 100 from becoming 8 slots.
    return max(1, math.ceil(amount * (slots or 1) - 1e-6))


def shown(text: str) -> str:
    """A user's text as it may stand in a one-line message."""
    return repr(text if len(text) <= 40 else text[:37] + "…")


def header(source: Source, delimiter: str = ",") -> list[str]:
    """Names of the columns, lower case."""
    return [name.strip().strip('"').lower() for name in source.first.split(delimiter)]


def table(
    collector: Collector,
    required: Iterable[str],
    *,
    delimiter: str = ",",
    names: dict[str, str] | None = None,
) -> Iterator[Row]:
    """Rows under a header line. `names` translates other spellings of a column."""
    text = collector.source.text
    found = header(collector.source, delimiter)
    columns: dict[str, int] = {}
    for index, name in enumerate(found):
        columns.setdefault((names or {}).get(name, name), index)
    missing = [name for name in required if name not in columns]
    if missing:
        raise InputError(
            f"lacks the columns {', '.join(missing)}",
            file=collector.source.file,
            line=1,
            hint=f"has {shown(', '.join(found))}",
        )
    width = len(found)
    for line, cells in lines(collector, text, delimiter):
        if len(cells) != width:
            collector.bad(line, f"has {len(cells)} cells, not {width}")
        elif line > 1:
            yield Row(columns, cells, line)


def lines(collector: Collector, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Cells of every line that is not empty, with its number."""
    csv.field_size_limit(CELL_CHARACTERS_MAX)
    stream = io.StringIO(text, newline="")
    if delimiter == ",":
        reader = csv.reader(stream)
    else:
        reader = csv.reader(stream, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            collector.bad(reader.line_num, str(error))
            continue
        if any(cells):
            yield reader.line_num, cells

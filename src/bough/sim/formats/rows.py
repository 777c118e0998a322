"""Rows of a table with their numbers, and one place where malformed ones are reported."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from bough.core.model import Range
from bough.errors import InputError
from bough.sim.trace import Reading, Source, Trace, TraceJob

#: A cell longer than this is damage, not data.
CELL_CHARACTERS_MAX = 1_000_000
#: Nobody submits in the year 33000, and no job runs for a million years.
SECONDS_MAX = 1e12
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

    def range(self, devices: int) -> Range:
        """The sizes a job may have; equal ones are one object."""
        limit = self.reading.elastic_limit
        key = (1, max(limit, devices)) if limit else (devices, devices)
        found = self.ranges.get(key)
        if found is None:
            found = self.ranges[key] = Range(min=key[0], max=key[1])
        return found

    def trace(self, format: str, kind: str = "", epoch: float = 0.0) -> Trace:
        """Everything gathered, in order of submission."""
        notes = [*self.notes]
        notes += [f"{count:,} rows left out: {why}" for why, count in self.left_out.items()]
        return Trace(
            name=self.source.name(),
            jobs=tuple(sorted(self.jobs, key=lambda job: job.submit)),
            problems=tuple(self.problems),
            notes=tuple(notes),
            kind=kind,
            format=format,
            epoch=epoch,
        )


def shown(text: str) -> str:
    """A user's text as it may stand in a one-line message."""
    return repr(text if len(text) <= 40 else text[:37] + "…")


def header(text: str, delimiter: str = ",") -> list[str]:
    """Names of the columns, lower case."""
    line = text.split("\n", 1)[0]
    return [name.strip().strip('"').lower() for name in line.split(delimiter)]


def table(
    collector: Collector,
    required: Iterable[str],
    *,
    delimiter: str = ",",
    names: dict[str, str] | None = None,
) -> Iterator[Row]:
    """Rows under a header line. `names` translates other spellings of a column."""
    text = collector.source.text
    found = header(text, delimiter)
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
    for line, cells in lines(collector, text, delimiter):
        if line > 1:
            yield from checked(collector, columns, cells, line, len(found))


def checked(
    collector: Collector, columns: dict[str, int], cells: list[str], line: int, width: int
) -> Iterator[Row]:
    """The row, if it has as many cells as the header has names."""
    if len(cells) == width:
        yield Row(columns, cells, line)
    else:
        collector.bad(line, f"has {len(cells)} cells, not {width}")


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


def service(deadline: float | None) -> Literal["guaranteed", "best-effort"]:
    """A trace's deadlines are promises asked for; what has none is best effort."""
    return "best-effort" if deadline is None else "guaranteed"

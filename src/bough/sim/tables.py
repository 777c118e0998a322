"""Reads throughput tables, ours and those that published systems released, into a SpeedBook.

Formats are recognised by their columns. A directory is searched for all files of a known format;
others in it are left alone, but a file that was named, or that is malformed, is an error.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bough.core.known_models import known_kind
from bough.core.speedup import SpeedBook, SpeedRow
from bough.errors import InputError, nearest
from bough.sim.pollux_tables import pollux_rows
from bough.sim.trace import read_text

#: Columns of our own tables; the rest may be left out.
OWN_NEEDED: Final = ("model", "devices", "rate")
OWN_OTHERS: Final = ("kind", "batch", "span", "error")
#: What stands in the rate column where the job cannot run.
INFEASIBLE: Final = "infeasible"

ENDINGS: Final = (".csv", ".json", ".csv.gz", ".json.gz")
DEVICES_MAX: Final = 1_000_000
#: Rates lie between one in a million years and a million million each second.
NUMBER_MAX: Final = 1e13
Table = list[dict[str, str]]


def read_speedups(path: str | Path, book: SpeedBook | None = None) -> SpeedBook:
    """A book with the tables of a file or of all files of a directory; into `book` if given."""
    book = book if book is not None else SpeedBook()
    try:
        book.add_rows(read_rows(Path(path)))
    except ValueError as error:  # what a Curve refuses
        raise InputError(str(error), file=str(path)) from None
    return book


def read_rows(path: Path) -> list[SpeedRow]:
    """All lines of the tables in a file or directory."""
    if not path.exists():
        raise InputError("there is no such file or directory", file=str(path))
    if not path.is_dir():
        rows = rows_of_file(path)
        if rows is None:
            raise InputError(
                "is no throughput table",
                file=str(path),
                hint=f"our own has the columns {', '.join(OWN_NEEDED + OWN_OTHERS)}",
            )
        if not rows:
            raise InputError("holds no measurement", file=str(path))
        return rows
    found: list[SpeedRow] = []
    for file in sorted(path.rglob("*")):
        if file.name.endswith(ENDINGS) and file.is_file():
            found += rows_of_file(file) or []
    if not found:
        raise InputError("holds no throughput table", file=str(path))
    return found


def rows_of_file(path: Path) -> list[SpeedRow] | None:
    """The table's lines; None when the file is none of a known format."""
    try:
        text = read_text(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None
    if text.lstrip().startswith("{"):
        return gavel_rows(path, text)
    header, _, _ = text.partition("\n")
    columns = [cell.strip().strip('"').lower() for cell in header.split(",")]
    for needed, read in READERS:
        if all(name in columns for name in needed):
            return read(path, text)
    return None


# ------------------------------------------------------------------------------ the cells


def table(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows under the header, each with its line number; all as long as the header."""
    reader = csv.reader(io.StringIO(text))
    try:
        names = [name.strip().lower() for name in next(reader)]
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(names):
                what = f"has {len(cells)} cells under {len(names)} columns"
                raise InputError(what, file=str(path), line=reader.line_num)
            yield reader.line_num, dict(zip(names, map(str.strip, cells), strict=True))
    except csv.Error as error:
        raise InputError(str(error), file=str(path), line=reader.line_num) from None


def number(path: Path, line: int, field: str, text: str, least: float = 0.0) -> float:
    """A finite number, at least so large."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= NUMBER_MAX:
        what = f"{text[:40]!r} is no {'positive number' if least else 'number from 0'}"
        raise InputError(what, file=str(path), line=line, field=field)
    return value


def rate_of(path: Path, line: int, field: str, text: str) -> float:
    """A speed that something was seen to run at."""
    return number(path, line, field, text, 1 / NUMBER_MAX)


def whole(path: Path, line: int, field: str, text: str, least: int) -> int:
    """A whole number in a sensible range."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (least <= value <= DEVICES_MAX and value == int(value)):
        what = f"{text[:40]!r} is no whole number from {least} to {DEVICES_MAX:,}"
        raise InputError(what, file=str(path), line=line, field=field)
    return int(value)


def measured(text: str) -> bool:
    """Whether a cell holds a measurement: empty, nan and 0 all stand for none."""
    return text.lower() not in ("", "nan", "null", "none", "0", "0.0")


def stem(path: Path) -> str:
    """The file's name without endings."""
    return path.name.split(".")[0]


# ---------------------------------------------------------------------------- the formats


def own_rows(path: Path, text: str) -> list[SpeedRow]:
    """Ours: one line for each (model, kind, batch, devices, span)."""
    rows = []
    for line, cells in table(path, text):
        for name in cells:
            if name not in OWN_NEEDED + OWN_OTHERS:
                hint = nearest(name, OWN_NEEDED + OWN_OTHERS)
                raise InputError(f"no column {name!r}", file=str(path), line=1, hint=hint)
        rate = 0.0
        if cells["rate"].lower() != INFEASIBLE:
            if cells["rate"].strip("0.") == "":
                hint = f"write {INFEASIBLE!r} where the job cannot run"
                raise InputError("is 0", file=str(path), line=line, field="rate", hint=hint)
            rate = rate_of(path, line, "rate", cells["rate"])
        rows.append(
            SpeedRow(
                model=cells["model"],
                batch=whole(path, line, "batch", cells.get("batch") or "0", 0),
                kind=cells.get("kind", ""),
                size=whole(path, line, "devices", cells["devices"], 1),
                rate=rate,
                span=whole(path, line, "span", cells.get("span") or "0", 0),
                error=number(path, line, "error", cells.get("error") or "0"),
            )
        )
    return rows


def elasticflow_rows(path: Path, text: str) -> list[SpeedRow]:
    """ElasticFlow: a file for each model, a row for each batch, a column for each size."""
    kind = kind_of_folder(path)
    rows = []
    for line, cells in table(path, text):
        batch = whole(path, line, "global_batch_size", cells.pop("global_batch_size"), 0)
        for column, cell in cells.items():
            size = whole(path, 1, column, column, 1)
            if measured(cell):
                rate = rate_of(path, line, column, cell)
                rows.append(SpeedRow(stem(path), batch, kind, size, rate))
    return rows


def kind_of_folder(path: Path) -> str:
    """The kind in a folder's name such as "throughputs_A100"; empty when it names none."""
    words = re.split(r"[^a-z0-9]+", path.resolve().parent.name.lower())
    return next((word for word in words if known_kind(word)), "")


def carbonscaler_rows(path: Path, text: str) -> list[SpeedRow]:
    """CarbonScaler: one file for each job, a row for each number of nodes."""
    rows = []
    for line, cells in table(path, text):
        if measured(cells["throughput"]):
            size = whole(path, line, "nodes", cells["nodes"], 1)
            rate = rate_of(path, line, "throughput", cells["throughput"])
            rows.append(SpeedRow(stem(path), 0, "", size, rate))
    return rows


def gavel_rows(path: Path, text: str) -> list[SpeedRow] | None:
    """Gavel and Shockwave: {kind: {"('Model (batch size B)', devices)": {"null": rate, …}}}."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    rows = []
    for column, jobs in data.items():
        kind, spread, _ = column.partition("_unconsolidated")
        for key, rates in jobs.items() if isinstance(jobs, dict) else ():
            match = re.fullmatch(r"\('(.+?)(?: \(batch size (\d+)\))?', (\d+)\)", key)
            if not match or not isinstance(rates, dict) or "null" not in rates:
                return None
            rate, where = rates["null"], f"{column}.{key}"
            if not isinstance(rate, int | float) or not 0 <= rate <= NUMBER_MAX:
                raise InputError(f"{rate!r} is no rate", file=str(path), field=where)
            if rate:
                batch, size = int(match[2] or 0), max(1, int(match[3]))
                rows.append(SpeedRow(match[1], batch, kind, size, float(rate), int(bool(spread))))
    return rows or None


def pollux(path: Path, text: str) -> list[SpeedRow]:
    """Pollux: measured steps by placement and local batch, in a folder named after the model."""
    samples = []
    for line, cells in table(path, text):
        if "placement" in cells:
            digits = cells["placement"]
            if not digits.isdecimal() or "0" in digits:
                what = f"{digits[:40]!r} is no placement: a digit from 1 for each node"
                raise InputError(what, file=str(path), line=line, field="placement")
            nodes, devices = len(digits), sum(map(int, digits))
        else:
            nodes = whole(path, line, "num_nodes", cells["num_nodes"], 1)
            devices = whole(path, line, "num_replicas", cells["num_replicas"], 1)
        local = whole(path, line, "local_bsz", cells["local_bsz"], 1)
        step = rate_of(path, line, "step_time", cells["step_time"])
        sync = number(path, line, "sync_time", cells["sync_time"])
        samples.append((devices, nodes, local, step, min(sync, step)))
    folder = path.resolve().parent
    batches = [re.fullmatch(r"validation-(\d+)\.csv(\.gz)?", f.name) for f in folder.iterdir()]
    known = sorted(int(match[1]) for match in batches if match)
    return pollux_rows(folder.name, samples, known)


Reader = Callable[[Path, str], list[SpeedRow]]

#: Columns a format is known by, and its reader; the first that fits is taken.
READERS: Final[tuple[tuple[tuple[str, ...], Reader], ...]] = (
    (OWN_NEEDED, own_rows),
    (("global_batch_size",), elasticflow_rows),
    (("placement", "local_bsz", "step_time", "sync_time"), pollux),
    (("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"), pollux),
    (("nodes", "throughput"), carbonscaler_rows),
)

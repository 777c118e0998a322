"""Alibaba's PAI trace of 2020 (NSDI '22): its job and task tables, or extracts made from them.

The folder with `pai_job_table.csv` and `pai_task_table.csv` gives every job as it was submitted:
its size is that of all its tasks together, its run time goes from the first task's start to the
last one's end. The task table alone lacks the moment of submission and the user; the first
task's start stands for the former. Two extracts are tables of finished jobs: that of the authors'
simulator (`num_gpu`, `duration`, `submit_time`) and GAIA's (`arrival_time`, `length`, `cpus`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bough.errors import InputError
from bough.sim.formats.rows import (
    BadRow,
    Collector,
    LeftOut,
    Row,
    header,
    lines,
    whole_devices,
)
from bough.sim.formats.rows import (
    table as rows_of,
)
from bough.sim.trace import Reading, Source, Trace, TraceJob

#: The authors keep the headers in files of their own.
JOB_COLUMNS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASK_COLUMNS = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu",
    "plan_mem", "plan_gpu", "gpu_type",
)  # fmt: skip
SIMULATOR_COLUMNS = ("job_id", "num_gpu", "submit_time", "duration", "num_inst")
GAIA_COLUMNS = ("arrival_time", "length", "cpus")

JOB_TABLE, TASK_TABLE = "pai_job_table.csv", "pai_task_table.csv"
STATUSES = {"Terminated", "Failed", "Running", "Waiting", "Interrupted"}
#: `plan_gpu` is in hundredths of a device.
PERCENT = 100

HOUR_SECONDS = 3600.0
#: GAIA's large extract spans a year, in hours and parts of them; its small one counts seconds.
YEAR_HOURS = 24 * 366


@dataclass
class Tasks:
    """What the tasks of one job come to."""

    line: int
    start: float = float("inf")
    end: float = 0.0
    devices: int = 0
    ended: bool = True
    failed: bool = False
    malformed: bool = False


def recognises(source: Source) -> bool:
    """By the folder's tables, the extracts' columns, or ten cells with a status among them."""
    if source.path.is_dir():
        return find(source.path, TASK_TABLE) is not None
    names = set(header(source))
    if names.issuperset(GAIA_COLUMNS) or names.issuperset(SIMULATOR_COLUMNS):
        return True
    return is_task_table(source)


def is_task_table(source: Source) -> bool:
    """With or without its header."""
    cells = source.first.strip().split(",")
    width = len(TASK_COLUMNS)
    return len(cells) == width and (cells[0] == TASK_COLUMNS[0] or cells[3] in STATUSES)


def find(folder: Path, name: str) -> Path | None:
    """The table, gzipped or not."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def read(source: Source, reading: Reading) -> Trace:
    """Read whichever it is."""
    names = set() if source.path.is_dir() else set(header(source))
    if names.issuperset(GAIA_COLUMNS):
        return read_gaia(source, reading)
    if names.issuperset(SIMULATOR_COLUMNS):
        return read_simulator(source, reading)
    return read_tables(source, reading)


def read_gaia(source: Source, reading: Reading) -> Trace:
    """GAIA's extract: CPUs are its resource."""
    collector = Collector(source, reading)
    rows = list(rows_of(collector, GAIA_COLUMNS))
    unit = reading.unit_seconds or guessed_unit(rows)
    if reading.unit_seconds is None:
        collector.notes.append(
            f"times are read as {'hours' if unit == HOUR_SECONDS else 'seconds'}"
        )

    def job(row: Row) -> TraceJob:
        devices = row.devices("cpus")
        seconds = row.seconds("length", unit)
        return collector.job(str(row.line - 1), row.moment("arrival_time", unit), seconds, devices)

    collector.each(rows, job)
    return collector.trace("pai", reading.kind)


def guessed_unit(rows: list[Row]) -> float:
    """Hours if the last arrival is within a year of them and some are no whole numbers."""
    texts = [row.text("arrival_time") for row in rows]
    try:
        last = float(texts[-1]) if texts else 0.0
    except ValueError:
        return 1.0
    broken = any("." in text and text.rstrip("0")[-1:] != "." for text in texts)
    return HOUR_SECONDS if broken and last <= YEAR_HOURS else 1.0


def read_simulator(source: Source, reading: Reading) -> Trace:
    """The input of the authors' simulator: devices of each instance, in parts."""
    collector = Collector(source, reading)
    unit = reading.unit_seconds or 1.0

    def job(row: Row) -> TraceJob:
        share = row.number("num_gpu")
        if share == 0:
            raise LeftOut("asked for no device")
        instances = max(1, row.whole("num_inst"))
        return collector.job(
            row.text("job_id"),
            row.moment("submit_time", unit),
            row.seconds("duration", unit),
            instances * whole_devices(share, reading.slots),
            user=row.text("user", ""),
        )

    collector.each(rows_of(collector, SIMULATOR_COLUMNS), job)
    return collector.trace("pai", reading.kind)


def read_tables(source: Source, reading: Reading) -> Trace:
    """The folder's two tables joined by the jobs' names, or the task table alone."""
    collector = Collector(source, reading)
    jobs: dict[str, tuple[float, str]] | None = None
    task_table = collector
    if source.path.is_dir():
        tasks_path, jobs_path = find(source.path, TASK_TABLE), find(source.path, JOB_TABLE)
        if tasks_path is None:
            raise InputError(f"holds no {TASK_TABLE}", file=source.file)
        task_table = Collector(Source(tasks_path), reading)
        if jobs_path is not None:
            job_table = Collector(Source(jobs_path), reading)
            jobs = read_jobs(job_table)
            collector.problems += job_table.problems
    elif not is_task_table(source):
        raise InputError(
            "is no table of tasks",
            file=source.file,
            line=1,
            hint=f"give the folder that holds {JOB_TABLE} and {TASK_TABLE}",
        )
    if jobs is None:
        collector.notes.append("without the job table, jobs are submitted when they start")
    for name, task in gather(task_table).items():
        try:
            collector.add(joined(collector, name, task, jobs))
        except LeftOut as left:
            collector.left_out[left.why] += 1
        except BadRow as bad:
            task_table.bad(task.line, bad.what, bad.field)
    if task_table is not collector:
        collector.problems += task_table.problems
    return collector.trace("pai", reading.kind)


def joined(
    collector: Collector, name: str, tasks: Tasks, jobs: dict[str, tuple[float, str]] | None
) -> TraceJob:
    """A job from its tasks and its row in the job table."""
    if tasks.malformed:
        raise LeftOut("has a malformed task")
    if not tasks.devices:
        raise LeftOut("asked for no device")
    if not tasks.ended:
        raise LeftOut("has a task without start or end")
    if tasks.end < tasks.start:
        raise BadRow("ends before it begins", "end_time")
    if tasks.end == tasks.start:
        raise LeftOut("ran for 0 seconds")
    submit, user = tasks.start, ""
    if jobs is not None:
        if name not in jobs:
            raise LeftOut("has tasks, but is not in the job table")
        submit, user = jobs[name]
    seconds = tasks.end - tasks.start
    return collector.job(name, submit, seconds, tasks.devices, user=user, failed=tasks.failed)


def gather(table: Collector) -> dict[str, Tasks]:
    """The tasks of every job taken together."""
    found: dict[str, Tasks] = {}
    for row in headerless(table, TASK_COLUMNS):
        tasks = found.setdefault(row.text("job_name"), Tasks(row.line))
        try:
            add_task(tasks, row, table.reading.slots)
        except BadRow as bad:
            tasks.malformed = True
            table.bad(row.line, bad.what, bad.field)
    return found


def add_task(tasks: Tasks, row: Row, slots: int) -> None:
    """Count a task in."""
    percent = row.number("plan_gpu") if row.text("plan_gpu") else 0.0
    if percent:
        instances = row.whole("inst_num")
        tasks.devices += instances * whole_devices(percent / PERCENT, slots)
    tasks.failed |= row.text("status") == "Failed"
    start, end = row.text("start_time"), row.text("end_time")
    if not start or not end:
        tasks.ended = False
        return
    tasks.start = min(tasks.start, row.number("start_time"))
    tasks.end = max(tasks.end, row.number("end_time"))


def read_jobs(table: Collector) -> dict[str, tuple[float, str]]:
    """When each job was submitted, and by whom."""
    found: dict[str, tuple[float, str]] = {}
    for row in headerless(table, JOB_COLUMNS):
        try:
            if row.text("start_time"):
                found[row.text("job_name")] = (row.number("start_time"), row.text("user"))
        except BadRow as bad:
            table.bad(row.line, bad.what, bad.field)
    return found


def headerless(collector: Collector, names: tuple[str, ...]) -> Iterator[Row]:
    """Rows of a table whose header lies in another file, or is its first line after all."""
    columns = {name: index for index, name in enumerate(names)}
    for line, cells in lines(collector, collector.source.text, ","):
        if len(cells) != len(names):
            collector.bad(line, f"has {len(cells)} cells, not {len(names)}")
        elif line > 1 or cells[0] != names[0]:
            yield Row(columns, cells, line)

"""Synergy's traces (OSDI '22): job, model, arrival, iterations, GPUs, without a header."""

from __future__ import annotations

from bough.errors import InputError
from bough.sim.formats.rows import Collector, Row, lines
from bough.sim.formats.speeds import seconds_by_rate
from bough.sim.trace import Reading, Source, Trace, TraceJob

COLUMNS = {"job_id": 0, "model": 1, "arrival": 2, "iterations": 3, "gpus": 4}


def recognises(source: Source) -> bool:
    """By five cells of which only the second is a word."""
    cells = source.first.split(",")
    if len(cells) != len(COLUMNS):
        return False
    numbers = [cell.strip().replace(".", "", 1).isdigit() for cell in cells]
    return numbers == [True, False, True, True, True]


def read(source: Source, reading: Reading) -> Trace:
    """Read it."""
    collector = Collector(source, reading)
    unit = reading.unit_seconds or 1.0
    if reading.rates is None:
        raise InputError(
            "counts iterations, not seconds",
            file=source.file,
            hint="give the models' speeds with --speedups FILE",
        )

    def job(row: Row) -> TraceJob:
        devices = row.devices("gpus")
        model = row.text("model").lower()
        seconds = seconds_by_rate(reading, reading.kind, row, "iterations", (model, 0, devices))
        submit = row.moment("arrival", unit)
        return collector.job(row.text("job_id"), submit, seconds, devices, model=model)

    collector.each(rows(collector), job)
    return collector.trace("synergy", reading.kind)


def rows(collector: Collector) -> list[Row]:
    """Rows with as many cells as there are columns."""
    found = []
    for line, cells in lines(collector, collector.source.text, ","):
        if len(cells) == len(COLUMNS):
            found.append(Row(COLUMNS, cells, line))
        else:
            collector.bad(line, f"has {len(cells)} cells, not {len(COLUMNS)}")
    return found

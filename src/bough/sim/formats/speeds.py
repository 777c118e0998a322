"""Run times and possible sizes of jobs whose trace counts iterations instead of seconds."""

from __future__ import annotations

from bough.core.model import Range
from bough.sim.formats.rows import BadRow, Collector, Row
from bough.sim.trace import Reading


def seconds_by_rate(
    reading: Reading, kind: str, row: Row, field: str, what: tuple[str, int, int]
) -> float:
    """How long that many iterations of (model, batch) take on that many devices."""
    assert reading.rates is not None
    iterations = row.number(field)
    if not iterations:
        raise BadRow("0 is not a number of iterations to run", field)
    model, batch, devices = what
    rate = reading.rates.rate(model, batch, kind, devices)
    if not rate:
        named = f"{model}, batch {batch}," if batch else model
        raise BadRow(f"no speed is known for {named} on {devices} × {kind or 'any kind'}")
    return iterations / rate


def seconds_told_or_measured(
    collector: Collector, kind: str, row: Row, field: str, what: tuple[str, int, int]
) -> float:
    """The row's duration, or what a rate makes of its iterations where one is known.

    Tables may be given for how jobs scale alone, so a missing rate is no fault of the row.
    """
    rates = collector.reading.rates
    if rates is not None:
        model, batch, devices = what
        if rates.rate(model, batch, kind, devices):
            return seconds_by_rate(collector.reading, kind, row, field, what)
        collector.told += 1
    return row.seconds("duration", collector.reading.unit_seconds or 1.0)


def sizes_by_rate(collector: Collector, model: str, batch: int, devices: int) -> Range:
    """The sizes an elastic job may have: of its powers of two, those that a rate is known for."""
    reading = collector.reading
    full = collector.range(devices)
    if reading.rates is None or not reading.elastic_limit:
        return full
    key = (model, batch, full.max)
    found = collector.measured.get(key)
    if found is None:
        rate = reading.rates.rate
        sizes = [n for n in full.sizes() if rate(model, batch, reading.kind, n)]
        found = Range(min=min(sizes), max=max(sizes), steps=tuple(sizes)) if sizes else full
        collector.measured[key] = found
    return found

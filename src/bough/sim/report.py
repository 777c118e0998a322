"""One self-contained HTML file that shows how policies compare: no server, no fetches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bough.core.policy import Floats
from bough.sim.record import JobRecord, RunRecord
from bough.sim.results import Row, completion_seconds, horizon, over_time, summarise
from bough.sim.timeline import Rows, Span, choose_rows, coalesce, spans

TEMPLATE = Path(__file__).with_name("report.html")
DATA_MARK = '"{data}"'

#: Points of a distribution curve, and stretches of a run; a screen shows no more.
CURVE_POINTS = 240
TIME_BINS = 240
#: Time in the chart of devices is counted in this many ticks, so that its numbers stay short.
TICKS = 100_000


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a large run the chart of devices shows."""

    #: Devices drawn; of more, evenly chosen nodes.
    devices: int = 192
    #: Spans drawn for all policies together; of more, short ones on a device are merged.
    spans: int = 60_000


def write_report(
    path: str | Path,
    records: Sequence[RunRecord],
    bound: float | None = None,
    rows: Sequence[Row] | None = None,
) -> None:
    """Write the page. Runs made with `detail` get their chart of devices.

    `rows` are the runs' summaries, if they have been made already.
    """
    Path(path).write_text(render(records, bound, rows), encoding="utf-8")


def render(
    records: Sequence[RunRecord],
    bound: float | None = None,
    rows: Sequence[Row] | None = None,
    limits: Limits | None = None,
) -> str:
    """The page as text."""
    summaries = rows if rows is not None else [summarise(record) for record in records]
    shown = contents(records, summaries, bound, limits or Limits())
    data = msgspec.json.encode(shown).decode()
    # Inside <script>, only "</" and "<!--" could end or confuse the data.
    return TEMPLATE.read_text(encoding="utf-8").replace(DATA_MARK, data.replace("<", "\\u003c"), 1)


def contents(
    records: Sequence[RunRecord], summaries: Sequence[Row], bound: float | None, limits: Limits
) -> Row:
    """Everything the page shows, as plain data."""
    first = records[0]
    rows = choose_rows(first.node_names, first.node_devices, limits.devices)
    longest = max((_seconds(record) for record in records), default=0.0)
    tick = max(longest / TICKS, 1e-9)
    each = max(limits.spans // len(records), 1)
    return {
        "trace": first.trace,
        "cluster": first.cluster,
        "seed": first.seed,
        "devices": first.devices,
        "bound": bound,
        "seconds": longest,
        "tick": tick,
        "rows": {"nodes": rows.nodes, "shown": rows.count, "of": sum(first.node_devices)},
        "runs": [
            {"summary": summary, **run_contents(record, rows, tick, each)}
            for record, summary in zip(records, summaries, strict=True)
        ],
    }


def run_contents(record: RunRecord, rows: Rows, tick: float, span_limit: int) -> Row:
    """What the page shows of one policy besides its summary."""
    return {
        "cdf": curve(completion_seconds(_done(record))),
        "time": _rounded(over_time(record, TIME_BINS)),
        "gantt": gantt(record, rows, tick, span_limit),
    }


def curve(seconds: Floats) -> list[list[float | None]]:
    """The distribution as points (seconds, share of jobs done by then), evenly by share."""
    if not len(seconds):
        return []
    share = np.linspace(0.0, 1.0, min(CURVE_POINTS, max(len(seconds), 2)))
    at = np.quantile(seconds, share)
    return [[_digits(x), _digits(y)] for x, y in zip(at.tolist(), share.tolist(), strict=True)]


def gantt(record: RunRecord, rows: Rows, tick: float, limit: int) -> Row | None:
    """Who held which of the chosen devices when; None when the run did not note places."""
    if not any(job.places for job in record.jobs):
        return None
    first, seconds = horizon(record)
    found = list(spans(record.jobs, rows, first + seconds))
    merged = len(found) > limit
    if merged:
        found = coalesce(found, seconds, limit)
    shown = sorted({span.job for span in found if span.job >= 0})
    number = {job: i for i, job in enumerate(shown)}
    return {
        "merged": merged,
        "spans": list(_flat(found, number, first, tick)),
        "jobs": [_label(record.jobs[job], first) for job in shown],
    }


def _flat(found: list[Span], number: dict[int, int], first: float, tick: float) -> Iterator[int]:
    """Five whole numbers for each span: row, rows, from, for how long, job (-1: several)."""
    for span in found:
        begin = round((span.begin - first) / tick)
        length = max(round((span.end - first) / tick) - begin, 1)
        yield from (span.row, span.rows, begin, length, number.get(span.job, -1))


def _label(job: JobRecord, first: float) -> list[Any]:
    """What the page says of a job when it is pointed at."""
    times = (job.submit - first, job.begin - first, job.end - first)
    return [job.id, job.queue, job.wish, job.state, *map(_digits, times)]


def _done(record: RunRecord) -> list[JobRecord]:
    return [job for job in record.jobs if job.state == "done"]


def _seconds(record: RunRecord) -> float:
    seconds = horizon(record)[1]
    return seconds if seconds == seconds else 0.0


def _rounded(series: dict[str, list[float]]) -> dict[str, list[float | None]]:
    return {name: [_digits(value) for value in values] for name, values in series.items()}


def _digits(value: float) -> float | None:
    """As many digits as a chart can show."""
    return float(f"{value:.5g}") if value == value else None

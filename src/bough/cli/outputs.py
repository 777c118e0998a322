"""What runs are turned into: a table, JSON, CSV, rows of jobs, and a job's story."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click
import msgspec

from bough.cli.table import COLUMNS, Row, counted, duration, show
from bough.sim.bounds import lower_bound
from bough.sim.record import RunRecord
from bough.sim.results import job_rows, summarise


def summaries(records: Sequence[RunRecord]) -> list[Row]:
    return [summarise(record) for record in records]


def bound_of(record: RunRecord) -> float | None:
    """No policy can complete all jobs of the trace with a smaller mean."""
    bound = lower_bound(record.jobs, record.devices)
    return None if math.isnan(bound) else bound


def print_json(records: Sequence[RunRecord], rows: Sequence[Row], bound: float | None) -> None:
    """One object; docs/simulate.md shows it."""
    first = records[0]
    explained = any(job.story for record in records for job in record.jobs)
    stories = [{"stories": stories_of(record)} if explained else {} for record in records]
    whole = {
        "trace": first.trace,
        "cluster": first.cluster,
        "seed": first.seed,
        "lower_bound_mean_jct_seconds": bound,
        "runs": [row | story for row, story in zip(rows, stories, strict=True)],
        "devices": first.devices,
    }
    text = msgspec.json.format(msgspec.json.encode(whole), indent=2)
    click.echo(text.decode())


def print_csv(rows: Sequence[Row]) -> None:
    """One row for each run, one column for each number."""
    names = [name for name in rows[0] if name != "waits_seconds"]
    write_csv(sys.stdout, names, ([row[name] for name in names] for row in rows))


def print_comparison(first: RunRecord, rows: Sequence[Row], bound: float | None) -> None:
    """What was simulated in a line, the table, and what no policy can beat."""
    jobs, devices = counted(len(first.jobs), "job"), counted(first.devices, "device")
    click.echo(f"{first.trace}: {jobs} on {first.cluster} ({devices})")
    click.echo()
    show(rows, COLUMNS, ["policy"])
    if bound is not None:
        click.echo(f"\nNo policy can bring the mean JCT of these jobs below {duration(bound)}.")


def print_stories(records: Sequence[RunRecord]) -> None:
    """Each explained job under each policy, moment by moment."""
    for record in records:
        start = min(job.submit for job in record.jobs)
        for id, story in stories_of(record).items():
            click.echo(click.style(f"{id} under {record.policy}", bold=True))
            for when, sentence in story:
                click.echo(f"  {duration(when - start):>8}  {sentence}")
            click.echo()


def stories_of(record: RunRecord) -> dict[str, list[tuple[float, str]]]:
    return {job.id: job.story for job in record.jobs if job.story}


def write_jobs(file: Path, records: Sequence[RunRecord]) -> None:
    """A row for each job and policy: JSON lines if the file is called so, else CSV."""
    rows = (row for record in records for row in job_rows(record))
    if file.suffix in (".jsonl", ".json", ".ndjson"):
        encoder = msgspec.json.Encoder()
        with file.open("wb") as out:
            out.writelines(encoder.encode(row) + b"\n" for row in rows)
        return
    with file.open("w", newline="", encoding="utf-8") as text:
        first = next(rows)
        write_csv(text, list(first), map(flat, chain([first], rows)))


def flat(row: Row) -> list[Any]:
    """The cells of a job's row; lists as `when:devices` and `cause:seconds`, by spaces."""
    sizes = " ".join(f"{when:.10g}:{size}" for when, size in row["sizes"])
    waits = " ".join(f"{cause}:{seconds:.10g}" for cause, seconds in row["waits"].items())
    return list((row | {"sizes": sizes, "waits": waits}).values())


def write_csv(out: Any, names: list[str], rows: Iterable[Iterable[Any]]) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(["" if cell is None else cell for cell in row])

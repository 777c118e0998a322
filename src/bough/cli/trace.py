"""`bough trace`: look at a trace, turn it into our own format, or draw one from a seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bough.cli.options import FORMATS, Duration
from bough.cli.table import counted
from bough.errors import InputError

if TYPE_CHECKING:
    from bough.sim.trace import Trace

Command = TypeVar("Command", bound=Callable[..., Any])

#: Problems and notes shown before only their number is.
LINES_MAX = 10
RUN_TIMES = {"median": "p50", "mean": "mean", "p99": "p99", "longest": "max"}
READABLE = click.Path(exists=True, path_type=Path)
WRITABLE = click.Path(dir_okay=False, writable=True, path_type=Path)


def reading_options(command: Command) -> Command:
    """How the file is to be read."""
    for option in reversed(
        (
            click.option("--format", "format_name", metavar="NAME", help=f"{FORMATS}."),
            click.option(
                "--on-bad",
                type=click.Choice(["skip", "fail"]),
                default="skip",
                help="What to do with a malformed row; skip.",
            ),
            click.option(
                "--unit",
                type=Duration(),
                metavar="TIME",
                help="One tick of its clock: 1ms, 1s, 60.",
            ),
            click.option(
                "--elastic",
                "elastic_limit",
                type=click.IntRange(1),
                metavar="N",
                help="Let jobs run on 1 to N devices.",
            ),
            click.option("--slots", type=click.IntRange(1), metavar="N", help="Slots per device."),
            click.option("--speedups", type=READABLE, metavar="FILE", help="Speed-up tables."),
            click.option("--kind", default="", metavar="NAME", help="Kind of device measured on."),
            click.option(
                "--trace-failures", is_flag=True, help="Keep the failures of jobs that failed."
            ),
        )
    ):
        command = option(command)
    return command


@click.group("trace")
def command() -> None:
    """Describe, convert or generate traces."""


@command.command("info")
@click.argument("trace", type=READABLE)
@reading_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(trace: Path, as_json: bool, **given: Any) -> None:
    """What TRACE holds: jobs, sizes, run times, demand, and what could not be read."""
    from bough.sim.trace_facts import facts

    found = read(trace, given)
    told = facts(found)
    if as_json:
        import msgspec

        told |= {"problems": found.problems, "notes": found.notes}
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
        return
    show(told)
    show_lines("problems", found.problems)
    show_lines("notes", found.notes)


@command.command("convert")
@click.argument("trace", type=READABLE)
@click.argument("out", type=WRITABLE)
@reading_options
def convert(trace: Path, out: Path, **given: Any) -> None:
    """Write TRACE to OUT as JSON lines of our own; gzipped if its name ends in .gz.

    \b
    bough trace convert cluster_job_log philly.jsonl.gz --format philly
    """
    from bough.sim.formats.own import write_trace

    if out.exists() and out.samefile(trace):
        raise InputError("is the trace itself", file=str(out), hint="choose another name")
    found = read(trace, given)
    write_trace(found, out)
    show_lines("problems", found.problems, err=True)
    show_lines("notes", found.notes, err=True)
    click.echo(f"wrote {counted(len(found.jobs), 'job')} to {out}", err=True)


@command.command("generate")
@click.option("--jobs", type=int, default=1000, show_default=True, help="How many.")
@click.option("--devices", type=int, required=True, help="Devices they are meant for.")
@click.option("--load", type=float, default=0.8, show_default=True, help="Work over capacity.")
@click.option("--elastic", type=float, default=0.5, show_default=True, help="Elastic share.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Any number.")
@click.option("--out", type=WRITABLE, required=True, help="File to write; .gz is gzipped.")
@click.option(
    "--arrivals",
    type=click.Choice(["poisson", "diurnal", "at-once"]),
    default="poisson",
    show_default=True,
    help="Even over time, by the hours of the day, or all in the first moment.",
)
@click.option(
    "--durations",
    type=click.Choice(["log-normal", "two-phase", "exponential", "constant"]),
    default="log-normal",
    show_default=True,
    help="How run times are distributed.",
)
@click.option("--seconds", type=Duration(), default="30m", show_default=True, help="Run time.")
@click.option("--sigma", type=float, default=1.6, show_default=True, help="Log-normal spread.")
@click.option(
    "--best-effort", type=float, default=1.0, show_default=True, help="Share without a deadline."
)
@click.option("--users", type=int, default=16, show_default=True, help="How many users.")
@click.option("--queues", default="default", show_default=True, help="Their queues: a,b,c.")
def generate(jobs: int, devices: int, load: float, elastic: float, **given: Any) -> None:
    """Draw a trace from a seed, at a load that the devices would see.

    \b
    bough trace generate --jobs 1000 --devices 64 --load 0.9 --out t.jsonl
    """
    from bough.sim import synthetic
    from bough.sim.formats.own import write_trace

    seed, out = given.pop("seed"), given.pop("out")
    queues = tuple(name.strip() for name in given.pop("queues").split(",") if name.strip())
    mix = synthetic.Mix(queues=queues, **given)
    try:
        trace = synthetic.generate(jobs, devices, load, elastic, seed, mix)
    except InputError as error:
        error.field = f"--{(error.field or '').replace('_', '-')}"
        raise
    write_trace(trace, out)
    click.echo(f"wrote {counted(len(trace.jobs), 'job')} to {out}", err=True)


def read(path: Path, given: dict[str, Any]) -> Trace:
    """The trace as the options want it."""
    from bough.sim.trace import Reading, read_trace

    tables: Path | None = given["speedups"]
    rates = None
    if tables is not None:
        from bough.core.speedup import SpeedBook
        from bough.sim.tables import read_speedups

        rates = read_speedups(tables, SpeedBook(given["kind"]))
    reading = Reading(
        format=given["format_name"],
        on_bad=given["on_bad"],
        unit_seconds=given["unit"],
        elastic_limit=given["elastic_limit"] or 0,
        slots=given["slots"] or 0,
        rates=rates,
        profiles=tables,
        kind=given["kind"],
        failures=given["trace_failures"],
    )
    return read_trace(path, reading)


def show(told: dict[str, Any]) -> None:
    """The facts as lines of words and numbers."""
    from bough.cli.table import duration, percent, short

    demand = told["mean_demand_devices"]
    kind = f", {told['kind']}" if told["kind"] else ""
    pace = f"one every {duration(told['mean_interarrival_seconds'])}"
    span = f"in {duration(told['span_seconds'])}, {pace}" if demand else "at once"
    times = [f"{word} {duration(told[f'{key}_seconds'])}" for word, key in RUN_TIMES.items()]
    busy = f", which keep {demand:,.1f} devices busy" if demand else ""
    asked = f", {percent(told['guaranteed_share'])} ask for a guarantee"
    rows = {
        "trace": f"{told['name']} ({told['format']}{kind})",
        "jobs": f"{told['jobs']:,} {span}",
        "run time": ", ".join(times),
        "work": f"{short(told['device_hours'])} device-hours{busy}",
        "elastic": percent(told["elastic_share"]),
        "deadlines": percent(told["deadline_share"]) + (asked if told["deadline_share"] else ""),
    }
    for name in ("models", "users", "queues"):
        if told[name]["count"]:
            rows[name] = named(told[name])
    for name, text in rows.items():
        click.echo(f"{click.style(name.rjust(9), bold=True)}  {text}")
    click.echo(f"\n{'devices':>9}  {'jobs':>9}  {'of jobs':>8}  {'of work':>8}")
    for row in told["sizes"]:
        size = f"≤ {row['devices_max']:,}" if row["devices_max"] > 2 else str(row["devices_max"])
        shares = f"{percent(row['jobs_share']):>8}  {percent(row['work_share']):>8}"
        click.echo(f"{size:>9}  {row['jobs']:>9,}  {shares}")


def named(most: dict[str, Any]) -> str:
    """The commonest names with their counts."""
    text = ", ".join(f"{name} {count:,}" for name, count in most["most"].items())
    left = most["count"] - len(most["most"])
    return f"{text}, and {left:,} more" if left else text


def show_lines(title: str, lines: tuple[str, ...], err: bool = False) -> None:
    """The first of them, and how many more there are."""
    if not lines:
        return
    click.echo(f"\n{click.style(title, bold=True)}", err=err)
    for line in lines[:LINES_MAX]:
        click.echo(f"  {line}", err=err)
    if len(lines) > LINES_MAX:
        click.echo(f"  and {len(lines) - LINES_MAX:,} more", err=err)

"""`bough simulate`: replay a trace on a cluster under policies and show how they compare."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bough.cli import inputs, options
from bough.cli.progress import Bar
from bough.cli.table import counted
from bough.errors import InputError, nearest

if TYPE_CHECKING:
    from bough.sim.record import RunRecord
    from bough.sim.runs import Setting


OUT = click.Path(dir_okay=False, writable=True, path_type=Path)


class Wanted(NamedTuple):
    """What is to be made of the runs."""

    as_json: bool
    as_csv: bool
    report: Path | None
    plot: Path | None
    jobs_out: Path | None
    explain: tuple[str, ...]


@click.command("simulate", cls=options.Sectioned)
@click.argument("trace", type=click.Path(exists=True, path_type=Path))
@options.cluster_option
@options.policy_option
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of all draws.")
@options.trace_options
@options.world_options
@options.supply_options
@options.processes_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="Print one CSV row for each policy.")
@click.option("--report", type=OUT, metavar="FILE", help="Write a self-contained HTML page.")
@click.option("--plot", type=OUT, metavar="FILE", help="Draw a figure: .pdf, .svg, .png.")
@click.option("--jobs-out", type=OUT, metavar="FILE", help="Write a row per job: .csv or .jsonl.")
@click.option("--explain", multiple=True, metavar="JOB", help="Tell this job's whole story.")
def command(
    trace: Path, cluster: str, policies: tuple[str, ...], processes: int | None, **given: Any
) -> None:
    """Replay TRACE on a cluster under one or more policies.

    \b
    bough simulate trace.csv --cluster 16x8xa100 --policy fifo,las,max_min
    bough simulate trace.csv -c cluster.yaml -p srtf --report out.html
    """
    names = ("as_json", "as_csv", "report", "plot", "jobs_out", "explain")
    wanted = Wanted(**{name: given.pop(name) for name in names})
    if wanted.as_json and wanted.as_csv:
        raise InputError("--json and --csv cannot both be printed")
    inputs.check_folders(wanted.report, wanted.plot, wanted.jobs_out)
    if wanted.plot is not None:
        from bough.sim import figure

        figure.check(wanted.plot)
    chosen = inputs.split_policies(policies)
    setting = prepare(trace, cluster, wanted, given)
    records = compare(setting, chosen, processes or os.cpu_count() or 1)
    publish(records, wanted)


def prepare(trace_file: Path, cluster: str, wanted: Wanted, given: dict[str, Any]) -> Setting:
    """Read everything that is named, and check that it fits together."""
    from bough.sim.runs import Setting

    place = inputs.read_cluster(cluster)
    speedups = inputs.read_speedups(given["speedups"], place, given["kind"])
    trace = inputs.read_trace(trace_file, given, speedups)
    trace = inputs.fit(trace, place, given.pop("too_big"))
    until = given.pop("until")
    world = inputs.world(
        given,
        seed=given.pop("seed"),
        until=trace.jobs[0].submit + until,
        detail=wanted.report is not None,
        explain=frozenset(wanted.explain),
    )
    known = {job.id for job in trace.jobs[: world.jobs or None]}
    for id in wanted.explain:
        if id not in known:
            raise InputError(f"no job {id!r}", field="--explain", hint=nearest_few(id, known))
    return Setting(
        trace=trace,
        cluster=place,
        cluster_name=cluster,
        options=world,
        tools=inputs.tools(speedups),
    )


def nearest_few(name: str, known: set[str]) -> str:
    """The hint for a job that is not there; a trace has too many to name them all."""
    hint = nearest(name, known)
    few = f"{counted(len(known), 'job')}, the first is {min(known)!r}"
    return hint if hint.startswith("did") else few


def compare(setting: Setting, policies: Sequence[str], processes: int) -> list[RunRecord]:
    """All runs, with a bar when they take long."""
    from bough.sim import runs

    label = policies[0] if len(policies) == 1 else f"{len(policies)} policies"
    with Bar(label) as bar:
        return runs.compare(setting, policies, processes, bar)


def publish(records: Sequence[RunRecord], wanted: Wanted) -> None:
    """Print and write what was asked for."""
    from bough.cli import outputs

    bound = outputs.bound_of(records[0])
    rows = outputs.summaries(records)
    if wanted.jobs_out is not None:
        outputs.write_jobs(wanted.jobs_out, records)
    if wanted.report is not None:
        from bough.sim.report import write_report

        write_report(wanted.report, records, bound, rows)
    if wanted.plot is not None:
        from bough.sim.figure import write_figure

        write_figure(wanted.plot, records)
    if wanted.as_json:
        outputs.print_json(records, rows, bound)
    elif wanted.as_csv:
        outputs.print_csv(rows)
    elif wanted.explain:
        outputs.print_stories(records)
    else:
        outputs.print_comparison(records[0], rows, bound)
    for file in (wanted.report, wanted.plot, wanted.jobs_out):
        if file is not None:
            click.echo(f"wrote {file}", err=True)

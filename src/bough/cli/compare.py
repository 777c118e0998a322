"""`bough compare`: what policies differ in, in ten seconds and without any input."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bough.cli.progress import Bar

#: Sixteen machines of eight devices in two racks.
CLUSTER = "2 racks of 8x8xa100"
#: From first come first served to elastic sharing.
POLICIES = ("fifo", "backfill", "las", "srtf", "max_min")
JOBS, LOAD, ELASTIC, BEST_EFFORT = 2000, 0.9, 0.5, 0.7
#: Seconds until a job makes progress after a start, after a resize, and to leave its devices.
START_SECONDS, RESIZE_SECONDS, PARK_SECONDS = 60.0, 20.0, 10.0


@click.command("compare")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the trace.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("bough-report.html"),
    show_default=True,
    metavar="FILE",
    help="Where the report goes.",
)
def command(seed: int, out: Path) -> None:
    """Compare five policies on a built-in trace, and write a report."""
    from bough.cli import inputs, outputs
    from bough.core.cluster import parse_short
    from bough.sim.options import Options
    from bough.sim.report import write_report
    from bough.sim.runs import Setting, compare
    from bough.sim.synthetic import Mix, generate

    inputs.check_folders(out)
    cluster = parse_short(CLUSTER)
    trace = generate(JOBS, cluster.devices, LOAD, ELASTIC, seed, Mix(best_effort=BEST_EFFORT))
    options = Options(
        seed=seed,
        start_seconds=START_SECONDS,
        resize_seconds=RESIZE_SECONDS,
        park_seconds=PARK_SECONDS,
        detail=True,
    )
    setting = Setting(
        trace=trace,
        cluster=cluster,
        cluster_name=CLUSTER,
        options=options,
        tools=inputs.tools(None),
    )
    with Bar(f"{len(POLICIES)} policies", quiet_seconds=0.0) as bar:
        records = compare(setting, POLICIES, os.cpu_count() or 1, bar)
    bound = outputs.bound_of(records[0])
    rows = outputs.summaries(records)
    outputs.print_comparison(records[0], rows, bound)
    write_report(out, records, bound, rows)
    click.echo(f"\nOpen {out} to look closer; `bough simulate --help` for your own trace.")

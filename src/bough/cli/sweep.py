"""`bough sweep`: simulate loads × policies × seeds in parallel, and go on where it stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bough.cli import inputs, options
from bough.cli.progress import Bar
from bough.errors import InputError

if TYPE_CHECKING:
    from bough.sim.results import Row
    from bough.sim.sweep import Drawn, Sweep
    from bough.sim.trace import Trace

OUT = click.Path(dir_okay=False, path_type=Path)
OUT_DEFAULT = Path("bough-sweep.jsonl")
DRAWN_LOAD = 0.8
LOAD_MAX = 100.0
SEED_MAX = 2.0**31


@click.command("sweep", cls=options.Sectioned)
@click.argument("trace", required=False, type=click.Path(exists=True, path_type=Path))
@options.cluster_option
@options.policy_option
@click.option("--loads", metavar="A,B,…", help="Offered loads; else the trace as it is.")
@click.option("--seeds", default="3", metavar="N|A,B,…", help="How many seeds, or which; 3.")
@click.option(
    "--draw-jobs", type=click.IntRange(1), default=1000, help="Jobs of drawn traces; 1000."
)
@click.option("--draw-elastic", type=options.Share(0, 1), default=0.5, help="Elastic share; 0.5.")
@options.trace_options
@options.world_options
@options.supply_options
@options.processes_option
@click.option("--out", type=OUT, default=OUT_DEFAULT, help=f"Results so far; {OUT_DEFAULT}.")
@click.option("--restart", is_flag=True, help="Forget what the file of results holds.")
@click.option("--json", "as_json", is_flag=True, help="Print the means over seeds as JSON.")
def command(
    trace: Path | None, cluster: str, policies: tuple[str, ...], processes: int | None, **given: Any
) -> None:
    """Simulate every load under every policy with every seed.

    With TRACE its arrivals are stretched to each load; without, a trace is drawn for each load and
    seed. Stop it at any time: started again with the same options, it goes on.

    \b
    bough sweep trace.csv -c 16x8xa100 -p fifo,las,srtf --loads 0.5,0.7,0.9
    bough sweep -c 16x8xa100 -p las,max_min --loads 0.6,0.8,1.0 --seeds 10
    """
    from bough.sim.sweep import averages, points, sweep

    wanted = points(
        read_loads(given.pop("loads"), drawn=trace is None),
        inputs.split_policies(policies),
        read_seeds(given.pop("seeds")),
    )
    out, as_json = given.pop("out"), given.pop("as_json")
    inputs.check_folders(out)
    if given.pop("restart"):
        out.unlink(missing_ok=True)
    common = prepare(trace, cluster, given)
    with Bar(f"{len(wanted)} simulations") as bar:
        rows = sweep(common, wanted, out, processes or os.cpu_count() or 1, bar)
    show(averages(rows), as_json)
    click.echo(f"wrote {out}", err=True)


def prepare(file: Path | None, cluster: str, given: dict[str, Any]) -> Sweep:
    """What all points have in common."""
    from bough.sim.sweep import Drawn, Sweep

    place = inputs.read_cluster(cluster)
    speedups = inputs.read_speedups(given["speedups"], place, given["kind"])
    drawn = Drawn(jobs=given.pop("draw_jobs"), elastic=given.pop("draw_elastic"))
    source: Trace | Drawn = drawn
    start = 0.0
    if file is not None:
        too_big = given.pop("too_big")
        source = inputs.fit(inputs.read_trace(file, given, speedups), place, too_big)
        start = source.jobs[0].submit
    world = inputs.world(given, until=start + given.pop("until"))
    return Sweep(
        source=source,
        cluster=place,
        cluster_name=cluster,
        options=world,
        tools=inputs.tools(speedups),
    )


def read_loads(text: str | None, drawn: bool) -> Sequence[float | None]:
    """The loads to offer; None leaves a trace as it is."""
    if text is None:
        return [DRAWN_LOAD] if drawn else [None]
    return [_number(part, "--loads", LOAD_MAX) for part in _parts(text, "--loads")]


def read_seeds(text: str) -> list[int]:
    """One number says how many, several say which."""
    seeds = [round(_number(part, "--seeds", SEED_MAX, 0)) for part in _parts(text, "--seeds")]
    if len(seeds) > 1 or "," in text:
        return seeds
    if not seeds[0]:
        raise InputError("must be at least 1, or name seeds: 0,7", field="--seeds")
    return list(range(seeds[0]))


def _parts(text: str, field: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError("is empty", field=field)
    if len(set(parts)) < len(parts):
        raise InputError("names something twice", field=field)
    return parts


def _number(text: str, field: str, most: float, least: float = 1e-3) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{text!r} is no number", field=field) from None
    if not least <= value <= most:
        raise InputError(f"{text} is not within {least:g}..{most:g}", field=field)
    return value


def show(rows: Sequence[Row], as_json: bool) -> None:
    """The means over seeds, loads one after another."""
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    from bough.cli.table import COLUMNS, Column, duration, show

    spread = Column("deviation_mean_jct_seconds", "±", duration, rank=2)
    place = next(i for i, c in enumerate(COLUMNS) if c.key == "mean_jct_seconds") + 1
    leading = ["policy"] if rows[0]["load"] is None else ["load", "policy"]
    show(rows, [*COLUMNS[:place], spread, *COLUMNS[place:]], leading)

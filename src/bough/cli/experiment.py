"""`bough experiment`: experiments are files; their outcome is tables for people and papers."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bough.cli import options
from bough.cli.progress import Bar

if TYPE_CHECKING:
    from bough.cli.grid import Cell
    from bough.sim.comparison import Line
    from bough.sim.experiment import Experiment
    from bough.sim.results import Row

CSV, PAGE, LATEX = "rows.csv", "report.md", "table.tex"


@click.group("experiment")
def command() -> None:
    """Run and report experiments that are written in a file."""


@command.command("run")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Where results go; a folder beside FILE, of its name.",
)  # fmt: skip
@options.processes_option
@click.option("--restart", is_flag=True, help="Forget what the folder holds.")
@click.option("--json", "as_json", is_flag=True, help="Print all rows as JSON.")
def run(file: Path, out: Path | None, processes: int | None, restart: bool, as_json: bool) -> None:
    """Simulate all that FILE asks for, and compare the policies.

    Stop it at any time: started again, it goes on. What did not change is not run again, also
    when traces, policies or seeds are added to FILE.

    \b
    bough experiment run exp.yaml
    bough experiment run exp.yaml -j 8 --out results
    """
    from bough.experimentfile import read_experiment
    from bough.sim.experiment import ROWS, conduct

    experiment = read_experiment(file)
    folder = out or file.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    if restart:
        (folder / ROWS).unlink(missing_ok=True)
    count, began = len(experiment.tasks()), time.monotonic()
    with Bar(f"{count} simulations") as bar:
        rows = conduct(experiment, folder, processes or os.cpu_count() or 1, bar)
    publish(experiment, rows, folder)
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    click.echo(outcome(experiment, rows))
    seconds = time.monotonic() - began
    click.echo(f"{count} simulations in {seconds:.0f}s; wrote {folder}/", err=True)


def publish(experiment: Experiment, rows: list[Row], folder: Path) -> None:
    """The rows, the page and the table."""
    from bough.cli.outputs import write_csv
    from bough.sim.comparison import latex, page

    names = [name for name in rows[0] if name != "waits_seconds"]
    with (folder / CSV).open("w", newline="", encoding="utf-8") as text:
        write_csv(text, names, ([row[name] for name in names] for row in rows))
    (folder / PAGE).write_text(page(experiment, rows), encoding="utf-8")
    (folder / LATEX).write_text(latex(experiment, rows), encoding="utf-8")


def outcome(experiment: Experiment, rows: list[Row]) -> str:
    """The same in a terminal: a table for each metric."""
    from bough.cli.grid import Column, Grid, draw, width_now
    from bough.sim.comparison import is_ratio, lines, title

    parts: list[str] = []
    for metric in experiment.metrics:
        found = [line for line in lines(experiment, rows, metric) if line.value is not None]
        if not found:
            continue
        against = "ratio" if is_ratio(metric) else "difference"
        columns = [
            Column("policy"), Column("mean", right=True), Column("±", right=True),
            Column(against, right=True), Column("95 % interval", right=True, rank=2),
            Column("p", right=True), Column(""),
        ]  # fmt: skip
        table = [cells(line, metric, experiment.baseline) for line in found]
        parts += [title(metric), *draw(Grid(columns, table), width_now()), ""]
    return "\n".join(parts)


def cells(line: Line, metric: str, baseline: str) -> list[Cell]:
    """One policy's row."""
    from bough.cli.grid import Cell
    from bough.sim.comparison import number, probability

    assert line.value is not None
    texts = [line.policy, number(line.value.mean), number(line.value.half)]
    if line.against is None:
        texts += ["", "", "", "baseline" if line.policy == baseline else ""]
    else:
        effect, low, high = (number(value) for value in line.against[:3])
        texts += [effect, f"{low} … {high}", probability(line.p), line.said(metric)]
    return [Cell(text) for text in texts]

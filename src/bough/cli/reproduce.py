"""`bough reproduce`: published results run again, ours beside theirs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bough.cli import options
from bough.cli.progress import Bar
from bough.errors import InputError

if TYPE_CHECKING:
    from bough.sim.reproduce.rows import Row

#: Where the folder of the public traces is told once and for all.
VARIABLE = "BOUGH_DATA"
#: Width when stdout is no terminal: files and pipes have room.
FILE_WIDTH = 200
#: Where the runs of `house` are kept.
HOUSE_OUT = Path("bough-house.jsonl")


@click.command("reproduce")
@click.argument("name", required=False)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help=f"Folder of the public traces; {VARIABLE} if not given. docs/fidelity.md says where "
    "they are published.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--markdown", is_flag=True, help="Print the page docs/fidelity.md.")
@click.option(
    "--chart",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also draw ours beside theirs, as FILE.svg; of eta, what came against what was foretold.",
)
@click.option("--quick", is_flag=True, help="Of house: a small part of it.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=HOUSE_OUT,
    help=f"Of house: runs so far, from which it goes on; {HOUSE_OUT}.",
)
@options.processes_option
def command(
    name: str | None,
    data: Path | None,
    as_json: bool,
    markdown: bool,
    chart: Path | None,
    **of_house: Any,
) -> None:
    """Run a published result again and print ours beside theirs.

    Without NAME, all names are listed; eta shows how often quotes are right, and house what our
    own policy comes to beside its targets. NAME is one of

    \b
    muri, muri-variants, tiresias, elasticflow, elasticflow-leases,
    elasticflow-fig8a, elasticflow-fig8b, elasticflow-fig9,
    elasticflow-fig10, elasticflow-fig11, elasticflow-figures (all five),
    gavel, shockwave, pollux, zeus, powerflow, greenflow, carbonscaler,
    eta, house, or all.
    """
    if as_json and markdown:
        raise click.UsageError("--json and --markdown exclude each other")
    from bough.sim import reproduce

    if name is None:
        list_names(reproduce.names())
        return
    reproduce.check(name)
    if name == reproduce.HOUSE:
        from bough.cli import house

        house.show(folder(data), as_json, markdown, **of_house)
        return
    tell(name, run(name, folder(data), chart), as_json, markdown)


def run(name: str, data: Path, chart: Path | None) -> list[Row]:
    """The rows, and a chart of them if one was asked for."""
    from bough.sim import reproduce

    if chart is not None:
        from bough.sim.reproduce import reliability
        from bough.sim.reproduce.chart import chart as bars
        from bough.sim.reproduce.chart import check, write

        check(chart)
    with Bar(f"reproduce {name}") as bar:
        rows = reproduce.reproduce(name, data, bar)
    if chart is not None:
        write((reliability.chart if name in reproduce.OWN else bars)(rows), chart)
    return rows


def list_names(listed: dict[str, str]) -> None:
    """What there is, a line each."""
    width = max(map(len, listed))
    for name, words in listed.items():
        click.echo(f"{name:{width}}  {words}")


def tell(name: str, rows: Sequence[Row], as_json: bool, markdown: bool) -> None:
    """Print the rows as was asked for."""
    from bough.sim import reproduce

    if as_json:
        import msgspec

        text = msgspec.json.format(msgspec.json.encode({"rows": rows}), indent=2)
        click.echo(text.decode())
    elif name in reproduce.OWN:
        from bough.sim.reproduce.eta import plot

        click.echo("\n".join(plot(rows)))
    elif markdown:
        from bough.sim.reproduce.page import figures_page, page

        click.echo((figures_page if name == reproduce.FIGURES else page)(rows), nl=False)
    else:
        show(rows)


def folder(given: Path | None) -> Path:
    """The folder of the data."""
    if given is not None:
        return given
    told = os.environ.get(VARIABLE)
    if not told:
        hint = f"give --data DIR or set {VARIABLE}; docs/fidelity.md says where to get them"
        raise InputError("needs the public traces", hint=hint)
    return Path(told)


def show(rows: Sequence[Row]) -> None:
    """A table, and the reasons in full under it."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from bough.sim.reproduce.page import difference, number, sentence

    causes = list(dict.fromkeys(row.cause for row in rows))
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title in ("trace", "policy", "metric"):
        table.add_column(title, overflow="fold")
    for title in ("ours", "theirs", "difference", "why"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        words = (escape(row.trace), escape(row.policy), escape(row.metric))
        numbers = (number(row.ours), number(row.theirs), difference(row.difference))
        table.add_row(*words, *numbers, str(causes.index(row.cause) + 1))
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else FILE_WIDTH
    console = Console(width=width, highlight=False)
    console.print(table)
    console.print()
    for place, cause in enumerate(causes, 1):
        console.print(f"{place:>2}  {escape(sentence(cause))}")

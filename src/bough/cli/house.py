"""`bough reproduce house`: our own policy beside its targets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bough.cli.progress import Bar

if TYPE_CHECKING:
    from bough.sim.reproduce.house import Result


def show(
    data: Path, as_json: bool, markdown: bool, *, quick: bool, out: Path, processes: int | None
) -> None:
    """Targets, what was measured, and whether each was held."""
    from bough.sim.reproduce.house import cases, measure
    from bough.sim.reproduce.housepage import page

    with Bar("reproduce house") as bar:
        every = cases(data, quick)
        results = measure(every, out, processes or os.cpu_count() or 1, bar)
    if as_json:
        import msgspec

        rows = [result._asdict() for result in results]
        click.echo(msgspec.json.format(msgspec.json.encode({"results": rows}), indent=2).decode())
        return
    if markdown:
        click.echo(page(results), nl=False)
        return
    click.echo("\n".join(house_table(results)))
    click.echo(f"wrote {out}", err=True)


def house_table(results: Sequence[Result]) -> list[str]:
    """A line for each target, with the place where it was closest or missed by most."""
    from bough.cli.grid import Cell, Column, Grid, draw, width_now
    from bough.sim.reproduce.housepage import number, off, summaries

    words, numbers = ("target", "held", "closest, or worst miss"), ("ours", "against", "off")
    columns = [*map(Column, words), *(Column(title, right=True) for title in numbers), Column("")]
    rows = []
    for target, held, places, worst in summaries(results):
        texts = (target, f"{held} of {places}", worst.where)
        values = (number(worst.measured), number(worst.against), f"{off(worst):+.1%}")
        rows.append([Cell(text) for text in (*texts, *values, worst.whose)])
    return draw(Grid(columns, rows), width_now())

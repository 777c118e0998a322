"""`bough journal`: take a daemon's history out, decide it again, look whether it is whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bough.errors import InputError

if TYPE_CHECKING:
    from bough.server.journal import Journal
    from bough.server.lookup import Lookup
    from bough.server.replay import Outcome

EXIT_FOUND = 1
PROBLEMS_SHOWN = 20
#: What every SQLite file begins with.
SQLITE = b"SQLite format 3\x00"

source = click.argument("file", required=False)


@click.group("journal")
def command() -> None:
    """The history of events and decisions that the daemon keeps.

    FILE is a store (a file, or the address of a PostgreSQL database) or an exported journal;
    without it, it is your own daemon's store, which may be in use.
    """


@command.command("export")
@source
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Else standard output."
)
def export(file: str | None, output: Path | None) -> None:
    """Write the journal as lines of JSON, to be replayed or read elsewhere.

    It holds what jobs ask for and when, and whose they are: not their commands, environments and
    folders.
    """
    from bough.server.journal import lines

    with opened(file) as journal:
        if output is None:
            sys.stdout.buffer.writelines(lines(journal))
            return
        partly = output.with_name(f"{output.name}.part")
        with partly.open("wb") as out:
            out.writelines(lines(journal))
        os.replace(partly, output)
    click.echo(f"wrote {output}", err=True)


@command.command("replay")
@source
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def replay(file: str | None, as_json: bool) -> int:
    """Decide everything again, and compare with what was decided.

    \b
    Exit codes: 0  the same commands, byte for byte
                1  another command, which is shown
                2  it cannot be replayed
    """
    from bough.server.journal import replay

    with opened(file) as journal:
        outcome = replay(journal)
    show(outcome, as_json)
    return EXIT_FOUND if outcome.difference else 0


def show(outcome: Outcome, as_json: bool) -> None:
    """What a replay found."""
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(outcome).decode())
        return
    since = f" after entry {outcome.after}" if outcome.after else ""
    told = f"{outcome.steps} steps{since}, {outcome.events} events, {outcome.commands} commands"
    if outcome.difference is None:
        click.echo(f"The same, byte for byte: {told}.")
        return
    step, seq, expected, got = outcome.difference
    click.echo(f"Another decision in step {step} at entry {seq}, after {told}:")
    click.echo(f"  then  {expected or 'no command'}")
    click.echo(f"  now   {got or 'no command'}")


@command.command("verify")
@source
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(file: str | None, as_json: bool) -> int:
    """Look for gaps, damage, and what cannot be understood.

    \b
    Exit codes: 0  it is whole
                1  something is wrong, and is shown
                2  it cannot be read
    """
    problems, dropped = look(file)
    if as_json:
        import msgspec

        told = {"whole": not problems, "problems": problems, "dropped": dropped}
        click.echo(msgspec.json.encode(told).decode())
        return EXIT_FOUND if problems else 0
    for problem in problems[:PROBLEMS_SHOWN]:
        click.echo(problem)
    if len(problems) > PROBLEMS_SHOWN:
        click.echo(f"… and {len(problems) - PROBLEMS_SHOWN} more.")
    if dropped:
        click.echo(f"{dropped} entries were put aside earlier, as they could not be read.")
    if not problems:
        click.echo("The journal is whole.")
    return EXIT_FOUND if problems else 0


def look(file: str | None) -> tuple[list[str], int]:
    """What is wrong, and how many entries were put aside when the store was opened."""
    from bough.server.journal import check

    if file is None or is_store(file):
        with closing(open_store(file)) as store:
            return store.check(), store.dropped()
    with opened(file) as journal:
        return check(journal), 0


# ----------------------------------------------------------------------------------- opening


def is_store(file: str) -> bool:
    """As its first bytes tell, where it is a file."""
    if "://" in file:
        return True
    with existing(file).open("rb") as data:
        return data.read(len(SQLITE)) == SQLITE


def existing(file: str) -> Path:
    """A file that can be read."""
    path = Path(file)
    if not path.is_file():
        raise InputError("there is no such file", file=file)
    return path


def open_store(file: str | None) -> Lookup:
    """That one, or the store of one's own daemon."""
    from bough.home import home
    from bough.server.opening import open_reader

    return open_reader(file, home())


@contextmanager
def opened(file: str | None) -> Iterator[Journal]:
    """A store's journal, or one that was exported."""
    from bough.server.journal import of_file, of_store

    if file is not None and not is_store(file):
        yield of_file(existing(file))
        return
    with closing(open_store(file)) as store:
        yield of_store(store)

"""`bough top`: everything at a glance, live; the screen itself is loaded only when it is shown."""

from __future__ import annotations

import sys

import click

from bough.cli import asking
from bough.errors import BoughError, InputError


@click.command("top")
@click.option("-m", "--mine", is_flag=True, help="Begin with my jobs alone; f shows all.")
@click.option("--user", metavar="NAME", help="Begin with this user's jobs alone.")
def command(mine: bool, user: str | None) -> None:
    """Show devices, queues and jobs on the whole screen, live.

    j and k choose a job, enter shows all of it, l follows what it prints, s stops it;
    ? lists all keys, q ends.
    """
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise InputError("bough top needs a terminal", hint="elsewhere: bough ls --watch")
    try:
        from bough.cli.top_screen import Top
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        hint = "pip install 'bough[tui]' brings it; meanwhile: bough ls --watch"
        raise BoughError(f"bough top needs the package textual ({hint})") from None
    whose = user or (asking.me() if mine else None)
    with asking.connect() as client:
        client.status()  # nobody there is told on one line, and not on a screen
        Top(client, whose).run()

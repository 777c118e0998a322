"""One page of all commands, as their `--help` has them on a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import click

from bough.cli import SECTIONS, cli

WIDTH = 80
HEAD = """\
<!-- Written by docs/generate.py from src/bough/cli; change that, then run `make docs`. -->

# Commands

This is what `--help` prints. [Running jobs](run.md) and [the daemon](daemon.md) show the commands
at work; [exit codes, JSON and colours](scripts.md) are the same for all of them.

- A job is named by its number, or by its name: then the latest of yours that is called so is meant.
  `12.3` is one job of an array, `12` all of them.
- Times are written like `fri 18:00`, `+2h` or `2026-11-20 18:00`, durations like `90s`, `2h30m` or
  `1d`, sizes like `64GiB`: as in [a job file](job-file.md).
- A command that changes something says what it did, and how to take it back.
"""


def page() -> str:
    """All sections, in the order of `bough --help`."""
    root = click.Context(cli, info_name="bough", max_content_width=WIDTH, terminal_width=WIDTH)
    root.help_option_names = ["-h", "--help"]
    parts = [HEAD]
    for section, names in SECTIONS.items():
        parts.append(f"## {section}\n")
        for name in names:
            command = cli.get_command(root, name)
            assert command is not None, name
            parts += [entry(context) for context in contexts(command, name, root)]
    return "\n".join(parts)


def contexts(command: click.Command, name: str, parent: click.Context) -> Iterator[click.Context]:
    """The command itself, and those below it."""
    context = click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH)
    yield context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None, below
            yield from contexts(found, below, context)


def entry(context: click.Context) -> str:
    """Its name as a heading, its help as it is."""
    depth = context.command_path.count(" ")
    return f"{'#' * (depth + 2)} {context.command_path}\n\n```text\n{context.get_help()}\n```\n"

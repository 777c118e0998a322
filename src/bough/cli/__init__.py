"""The command line: a table of commands, each imported only when it is called.

`bough --help` must answer at once, so the one-line help of every command is kept here beside
the place of its code, and showing the list imports none of it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bough import __version__
from bough.errors import BoughError, nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Command name: where its click command is, and what it does in one line.
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("bough.cli.run:command", "Run a command, or the jobs of a file."),
    "quote": ("bough.cli.quote:command", "Say what would become of a job; submit nothing."),
    "logs": ("bough.cli.logs:command", "Show what a job prints."),
    "top": ("bough.cli.top:command", "Devices, queues and jobs on the whole screen, live."),
    "wait": ("bough.cli.wait:command", "Wait until jobs are over."),
    "stop": ("bough.cli.manage:stop", "End jobs for good."),
    "park": ("bough.cli.manage:park", "Let jobs leave their devices for a while."),
    "unpark": ("bough.cli.manage:unpark", "Let parked jobs go on."),
    "retry": ("bough.cli.manage:retry", "Run jobs once more, as new jobs."),
    "scale": ("bough.cli.manage:scale", "Change how many devices a job may have."),
    "move": ("bough.cli.manage:move", "Change a job's queue, priority or deadline."),
    "ls": ("bough.cli.ls:command", "List jobs: those that live, and the last that ended."),
    "show": ("bough.cli.show:command", "Show all of one job."),
    "why": ("bough.cli.why:command", "Say why a job waits or runs, and what would help."),
    "history": ("bough.cli.history:command", "List jobs that are over."),
    "queue": ("bough.cli.queues:command", "List, show, make and change queues."),
    "devices": ("bough.cli.devices:command", "Show the devices; drain or quarantine some."),
    "user": ("bough.cli.users:command", "List those who have jobs here."),
    "report": ("bough.cli.report:command", "Device-hours, waits and failures, by whom."),
    "up": ("bough.cli.service:up", "Start the daemon, unless it runs."),
    "down": ("bough.cli.service:down", "End the daemon; jobs go on."),
    "status": ("bough.cli.service:status", "Say how the daemon is."),
    "config": ("bough.cli.settings:command", "Show or change what the daemon decides by."),
    "token": ("bough.cli.tokens:command", "Tokens for use over the network."),
    "doctor": ("bough.cli.doctor:command", "Look whether this installation is sound."),
    "completion": ("bough.cli.completion:command", "Print the completion script of a shell."),
    "demo": ("bough.cli.demo:command", "Run three real jobs that grow and shrink here."),
    "compare": ("bough.cli.compare:command", "Compare five policies on a built-in trace."),
    "simulate": ("bough.cli.simulate:command", "Replay a trace on a cluster under policies."),
    "whatif": ("bough.cli.whatif:command", "Replay the same jobs under a change."),
    "shadow": ("bough.cli.shadow:command", "Say what another policy would have done here."),
    "sweep": ("bough.cli.sweep:command", "Simulate loads × policies × seeds in parallel."),
    "experiment": ("bough.cli.experiment:command", "Run an experiment that is a file."),
    "trace": ("bough.cli.trace:command", "Describe, convert or generate traces."),
    "policies": ("bough.cli.policies:command", "List the policies, show one, begin a new one."),
    "journal": ("bough.cli.journal:command", "Export, replay or verify what was decided."),
    "reproduce": ("bough.cli.reproduce:command", "Compare with published results."),
}

#: Under which heading help lists them; what is named nowhere comes first.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Jobs": (
        "demo", "run", "quote", "ls", "show", "why", "logs", "top", "stop", "park", "unpark",
        "scale", "move", "retry", "wait", "history",
    ),
    "Cluster": ("queue", "devices", "user", "report", "whatif", "shadow"),
    "Service": ("up", "down", "status", "config", "token", "journal", "doctor", "completion"),
    "Simulator": (
        "compare", "simulate", "sweep", "experiment", "trace", "policies", "reproduce",
    ),
}  # fmt: skip

EXIT_BROKEN_PIPE = 1  # what click answers when it meets one first
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells expect


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise click.UsageError(f"no command {name!r} ({nearest(name, COMMANDS)})", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        placed = {name for names in SECTIONS.values() for name in names}
        sections = {"Commands": tuple(name for name in COMMANDS if name not in placed)} | SECTIONS
        for section, names in sections.items():
            listed = [(name, COMMANDS[name][1]) for name in names if name in COMMANDS]
            if listed:
                with formatter.section(section):
                    formatter.write_dl(listed, col_max=12)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """From the table: no command is imported for it."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        found = [name for name in COMMANDS if name.startswith(incomplete)]
        return [CompletionItem(name, help=COMMANDS[name][1]) for name in found]


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="bough")
def cli() -> None:
    """An elastic scheduler for deep-learning jobs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every foreseen failure is one line on stderr and an exit code."""
    try:
        code = cli.main(
            args=None if argv is None else list(argv), prog_name="bough", standalone_mode=False
        )
        sys.stdout.flush()  # so that a closed pipe is noticed here and not at exit
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_BAD_INPUT
    except click.ClickException as error:
        return _fail(error.format_message())
    except BoughError as error:
        return _fail(str(error))
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`bough … | head`). Nothing is wrong; keep Python from
        # complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except OSError as error:
        if error.filename is None:
            raise
        return _fail(f"{error.filename}: {error.strerror}")
    return code if isinstance(code, int) else 0


def complain(message: object) -> None:
    """On one line, whatever was typed is repeated in it."""
    line = " ".join(str(message).split())
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    print(f"bough: {''.join(shown)}", file=sys.stderr)


def _fail(message: str) -> int:
    complain(message)
    return EXIT_BAD_INPUT

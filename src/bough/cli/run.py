"""`bough run`: a command or a job file becomes jobs, and their output comes here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bough.cli import references
from bough.cli.joboptions import FILE_ENDINGS, job_options, jobs_of_command, jobs_of_file
from bough.errors import InputError

if TYPE_CHECKING:
    from bough.client import Client
    from bough.records import JobRecord, Submission


#: Whether what is to run is a job file.
FILE = "bough.file"


class Run(click.Command):
    """Options end where the command begins; after a job file there may be more of them."""

    allow_interspersed_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given, _, _ = self.make_parser(ctx).parse_args([*args])
        found = given.get("words")
        words = list(found) if isinstance(found, tuple | list) else []
        at = len(args) - len(words)
        dashes = at > 0 and args[at - 1] == "--"
        ctx.meta[FILE] = bool(words) and not dashes and words[0].endswith(FILE_ENDINGS)
        if ctx.meta[FILE]:
            args = [*args[:at], *words[1:], "--", words[0]]
        return super().parse_args(ctx, args)


@click.command("run", cls=Run, options_metavar="[OPTIONS]")
@job_options
@click.option("-d", "--detach", is_flag=True, help="Print the job's number and leave.")
@click.option(
    "--on-interrupt",
    type=click.Choice(["ask", "detach", "cancel"]),
    default="ask",
    help="What Ctrl-C does; without a terminal to ask, detach.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be sent.")
@click.option("--json", "as_json", is_flag=True, help="With --detach: print the jobs as JSON.")
@click.argument(
    "words",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="COMMAND… | FILE.yaml [OPTIONS]",
    shell_complete=references.files,
)
@click.pass_context
def command(
    context: click.Context,
    /,
    words: tuple[str, ...],
    detach: bool,
    on_interrupt: Any,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Run a command, or the jobs of a file, as soon as there is room.

    It runs in this directory with this environment; its output is shown here, and its exit code
    becomes ours. docs/run.md tells the rest.

    \b
    bough run python train.py
    bough run -g 2..8 --deadline 'fri 18:00' -- python train.py --epochs 90
    bough run --array 0-31 --detach -- python sweep.py --seed {index}
    bough run job.yaml --queue research
    """
    given = wanted(words, context.meta[FILE], options)
    _check_folders(given)
    if dry_run:
        _print(given)
        return 0
    if as_json and not detach:
        raise click.UsageError("--json goes with --detach")
    client, jobs = _submit(given)
    with client:
        if detach:
            _tell(jobs, as_json)
            return 0
        return _follow(client, jobs, given, on_interrupt)


def _follow(
    client: Client, jobs: Sequence[JobRecord], given: Sequence[Submission], on_interrupt: Any
) -> int:
    """Show what they print until they are over; the exit code that comes of it."""
    from bough.cli.attached import follow
    from bough.cli.printing import say
    from bough.submission import many_workers

    named = f"Job {jobs[0].id} ({jobs[0].name})" if len(jobs) == 1 else f"{len(jobs)} jobs"
    if sys.stderr.isatty():
        say(f"{named} submitted; Ctrl-C leaves or stops.")
    prefixed = any(many_workers(one.spec, one.recipe) for one in given)
    return follow(client, jobs, prefixed, on_interrupt)


def wanted(words: Sequence[str], is_file: bool, options: Mapping[str, Any]) -> list[Submission]:
    """The jobs that the command line describes."""
    from bough.submission import here

    if not words:
        raise click.UsageError("What is to run? Write it like bough run -- python train.py")
    if not is_file:
        return jobs_of_command(words, options, here())
    if len(words) > 1:
        raise click.UsageError(f"{words[0]!r} stands after the job file; is it an option of it?")
    return jobs_of_file(words[0], options, here())


def _check_folders(given: Sequence[Submission]) -> None:
    """Say at once what a worker would only say when it begins; a job before may still make one."""
    if os.environ.get("BOUGH_SERVER", "").startswith("https:"):
        return  # it runs on another machine
    for one in given:
        if not one.spec.after and not os.path.isdir(one.recipe.cwd):
            raise InputError("there is no such folder", field="--cwd", file=one.recipe.cwd)


def _submit(given: Sequence[Submission]) -> tuple[Client, Sequence[JobRecord]]:
    """Send them, to a daemon that is started if there is none."""
    from bough.client import Client
    from bough.home import home, store_path

    first = not os.environ.get("BOUGH_SERVER") and not store_path(home()).exists()
    client = Client.connect(start=True)
    if client.started and first:
        click.echo(WELCOME.format(home=home()), err=True)
    if len(given) == 1:
        return client, [client.submit(given[0])]
    return client, client.submit_all(given)


WELCOME = """\
bough: A scheduler was started for you; what it must remember is in {home}.
  bough ls, bough logs -f JOB   what runs, and what it prints
  bough why JOB                 why one waits, and what would help
  bough devices                 what there is to run on
  bough down                    stops the scheduler; jobs go on"""


def _tell(jobs: Sequence[JobRecord], as_json: bool) -> None:
    """On stdout what a script needs, on stderr what a person types next."""
    if as_json:
        from bough.cli.asking import print_json

        print_json(jobs)
        return
    for job in jobs:
        click.echo(job.id)
    if sys.stderr.isatty():
        from bough.cli.printing import say

        say(f"`bough logs -f {jobs[0].id}` watches, `bough stop {jobs[0].id}` ends it.")


def _print(given: Sequence[Submission]) -> None:
    """As JSON; secrets of the environment stay where they are."""
    import msgspec

    from bough.server.permissions import redacted

    shown = [msgspec.structs.replace(one, recipe=redacted(one.recipe), key="") for one in given]
    click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())

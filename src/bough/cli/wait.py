"""`bough wait`: until jobs are over; the exit code says how they ended."""

from __future__ import annotations

import time

import click

from bough.cli import asking, references, words
from bough.cli.options import Duration

#: As timeout(1) has it.
EXIT_TIMEOUT = 124


@click.command("wait")
@click.argument("jobs", nargs=-1, required=True, type=references.LIVE_JOB)
@click.option("--timeout", type=Duration(), metavar="TIME", help="Wait so long at most.")
@asking.json_option
def command(jobs: tuple[str, ...], timeout: float | None, as_json: bool) -> int:
    """Wait until JOBS are over. The exit code is that of the first that went wrong.

    \b
    bough wait 12 && bough run -- python evaluate.py
    bough wait 12 13 --timeout 2h
    """
    from bough.cli.attached import exit_code_of
    from bough.records import ENDED

    until = None if timeout is None else time.monotonic() + timeout
    code = 0
    found = []
    with asking.connect() as client:
        for ref in jobs:
            for id in [job.id for job in client.members(ref)]:
                left = None if until is None else max(until - time.monotonic(), 0.0)
                job = client.wait(id, left)
                found.append(job)
                over = job.state in ENDED
                code = code or (exit_code_of(job.state, job.code) if over else EXIT_TIMEOUT)
                if not as_json:
                    click.echo(words.told(job))
    if as_json:
        asking.print_json(found)
    return code

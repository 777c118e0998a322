"""`bough logs`: what a job's workers printed, and what they print now."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from bough.cli import asking, clock, references
from bough.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bough.client import Client
    from bough.records import JobDetail, JobRecord


@click.command("logs")
@click.argument("job", type=references.JOB)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job is over.")
@click.option("--rank", type=click.IntRange(0), metavar="N", help="Only this worker.")
@click.option("--role", metavar="NAME", help="Only workers of this role.")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Only this attempt.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Only each one's last N lines.")
@click.option("--since", type=clock.Moment(), help="Only attempts that ran after this time.")
@asking.json_option
def command(
    job: str,
    follow: bool,
    rank: int | None,
    role: str | None,
    attempt: int | None,
    tail: int | None,
    since: float | None,
    as_json: bool,
) -> None:
    """Show what the workers of JOB print, each line after the number of its worker.

    \b
    bough logs -f 12             from the beginning, and on
    bough logs train --tail 20   the latest job of that name, the last lines
    bough logs 12 --rank 0       one worker, as it is

    Of an array, all jobs are shown, each line after the name of its job.
    """
    wanted: dict[str, Any] = {"attempt": attempt, "rank": rank, "role": role, "tail": tail}
    with asking.connect() as client:
        members = client.members(job)
        if len(members) == 1:
            _of_job(client, job, follow, wanted, since, as_json)
            return
        for name, given in (("--json", as_json), ("--since", since is not None)):
            if given:
                hint = f"say which: {members[0].id}"
                raise InputError("is for one job of an array", field=name, hint=hint)
        _of_array(client, members, follow, wanted)


def _of_job(
    client: Client,
    ref: str,
    follow: bool,
    wanted: Mapping[str, Any],
    since: float | None,
    as_json: bool,
) -> None:
    """What its workers print; why it waits, if it does."""
    from bough.cli.attached import explaining
    from bough.cli.printing import Printer, say
    from bough.records import LogEnd

    chunks = client.logs(ref, follow=follow, **wanted)
    with explaining(client, ref) if follow else nullcontext():
        first = next(chunks, None)  # before all else: whether there are any for us to see
    detail = client.job(ref)
    printer = Printer(_is_prefixed(detail, wanted))
    if first is None and detail.job.state == "waiting":
        say(f"Job {detail.job.id} waits: {detail.job.reason.text}")
    oldest = 0 if since is None else _first_since(detail, since)
    for found in itertools.chain([first] if first is not None else [], chunks):
        if as_json:
            _print_json(found)
        elif not isinstance(found, LogEnd) and found.attempt >= oldest:
            printer.show(found)


def _of_array(
    client: Client, members: Sequence[JobRecord], follow: bool, wanted: Mapping[str, Any]
) -> None:
    """What all of them print, each line after the name of its job."""
    from bough.cli.attached import follow_many
    from bough.cli.printing import Printer
    from bough.records import LogEnd

    prefixed = _is_prefixed(client.job(members[0].id), wanted)
    if follow:
        follow_many(client, members, prefixed, **wanted)
        return
    printer = Printer(prefixed)
    for member in members:
        for found in client.logs(member.id, **wanted):
            if not isinstance(found, LogEnd):
                printer.show(found, member.name)


def _is_prefixed(detail: JobDetail, wanted: Mapping[str, Any]) -> bool:
    """Whether several workers may print what is wanted, so that lines say whose they are."""
    from bough.submission import many_workers

    _check_worker(detail, wanted["rank"], wanted["role"])
    many = detail.recipe is not None and many_workers(detail.spec, detail.recipe)
    return many and wanted["rank"] is None


def _check_worker(detail: JobDetail, rank: int | None, role: str | None) -> None:
    """One that the job cannot have prints nothing, which would look as if it were silent."""
    from bough.errors import nearest

    spec = detail.spec
    roles = [each.name for each in spec.roles] or ["worker"]
    if role is not None and role not in roles:
        raise InputError(f"job {detail.job.id} has no {role!r}", field="--role",
                         hint=nearest(role, roles))  # fmt: skip
    most = sum(each.count.max for each in spec.roles) or spec.sizes()[-1]
    if rank is not None and rank >= most:
        many = f"{most} worker{'s' if most > 1 else ''} at most"
        raise InputError(f"job {detail.job.id} has {many}", field="--rank", hint="the first is 0")


def _first_since(detail: JobDetail, since: float) -> int:
    """The first attempt that ran after this time."""
    ran = (each.epoch for each in detail.attempts if each.ended is None or each.ended >= since)
    oldest = min(ran, default=None)
    if oldest is None:
        raise InputError(f"job {detail.job.id} did not run since then", field="--since")
    return oldest


def _print_json(found: object) -> None:
    """One object on each line."""
    import msgspec

    click.echo(msgspec.json.encode(asking.whole(found)).decode())

"""Commands that change jobs: stop, park, unpark, retry, scale and move. Each says what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bough.cli import asking, clock, complain, references
from bough.cli.options import Duration
from bough.core.units import COUNT_MAX, format_counts, parse_counts
from bough.errors import BoughError, DaemonError, InputError

if TYPE_CHECKING:
    from bough.client import Client
    from bough.records import Amendment, JobRecord

Command = TypeVar("Command", bound=Callable[..., Any])
#: Of more jobs than this only the number is told.
TOLD_MAX = 20
PRIORITY_MAX = 1_000_000
#: Some of the jobs could not be had; the others were.
EXIT_BAD_INPUT = 2


def _jobs_argument(kind: click.ParamType[str]) -> Callable[[Command], Command]:
    return click.argument("jobs", nargs=-1, required=True, type=kind)


def _each(
    refs: Sequence[str],
    as_json: bool,
    act: Callable[[Client, str], Sequence[JobRecord]],
    told: Callable[[JobRecord], str],
) -> int:
    """Do it to each, and say so. One that cannot be had keeps nobody from the others."""
    found: list[JobRecord] = []
    failed = False
    with asking.connect() as client:
        for ref in refs:
            try:
                changed = act(client, ref)
            except DaemonError:
                raise
            except BoughError as error:
                complain(error)
                failed = True
                continue
            found += changed
            if as_json:
                continue
            for job in changed[:TOLD_MAX]:
                click.echo(told(job))
            if len(changed) > TOLD_MAX:
                click.echo(f"… and {len(changed) - TOLD_MAX} more.")
    if as_json:
        asking.print_json(found)
    return EXIT_BAD_INPUT if failed else 0


def _name(job: JobRecord) -> str:
    from bough.cli.grid import bare

    return f"Job {job.id} ({bare(job.name)})"


@click.command("stop")
@_jobs_argument(references.LIVE_JOB)
@asking.json_option
def stop(jobs: tuple[str, ...], as_json: bool) -> int:
    """End JOBS for good: SIGTERM, their grace, then SIGKILL."""
    return _each(
        jobs,
        as_json,
        lambda client, ref: client.stop(ref),
        lambda job: (
            f"{_name(job)} is {_now(job, 'being stopped')}; `bough retry {job.id}` runs it "
            "once more."
        ),
    )


def _now(job: JobRecord, else_: str) -> str:
    from bough.records import ENDED

    return job.state if job.state in ENDED else else_


@click.command("park")
@_jobs_argument(references.LIVE_JOB)
@asking.json_option
def park(jobs: tuple[str, ...], as_json: bool) -> int:
    """Let JOBS leave their devices until they are unparked."""
    return _each(
        jobs,
        as_json,
        lambda client, ref: client.park(ref),
        lambda job: f"{_name(job)} is parked; `bough unpark {job.id}` lets it go on.",
    )


@click.command("unpark")
@_jobs_argument(references.LIVE_JOB)
@asking.json_option
def unpark(jobs: tuple[str, ...], as_json: bool) -> int:
    """Let parked JOBS go on as soon as there is room."""
    return _each(
        jobs,
        as_json,
        lambda client, ref: client.unpark(ref),
        lambda job: f"{_name(job)} may go on; `bough park {job.id}` parks it again.",
    )


@click.command("retry")
@_jobs_argument(references.ENDED_JOB)
@asking.json_option
def retry(jobs: tuple[str, ...], as_json: bool) -> int:
    """Run JOBS once more, as new jobs with the same command, directory and environment."""
    return _each(
        jobs,
        as_json,
        lambda client, ref: client.retry(ref),
        lambda job: f"{_name(job)} repeats job {job.retry_of}; `bough logs -f {job.id}` watches.",
    )


@click.command("scale")
@click.argument("job", type=references.LIVE_JOB)
@click.argument("devices")
@asking.json_option
def scale(job: str, devices: str, as_json: bool) -> int:
    """Change how many DEVICES a job may have: 4, 2..8, '2..8 step 2' or 1,2,4.

    A job that runs with another number is resized: it gets SIGTERM and begins again with the new
    one.
    """
    from bough.records import Amendment

    try:
        wish = Amendment(devices=parse_counts(devices))
    except ValueError as error:
        raise InputError(str(error)) from None
    before = _before(job)

    def told(now: JobRecord) -> str:
        back = before.get(now.id)
        undo = f"; `bough scale {now.id} {_counts(back)}` undoes it" if back else ""
        devices = f"{_counts(now)} device{'' if now.sizes == (1,) else 's'}"
        return f"{_name(now)} may have {devices}{undo}."

    return _each((job,), as_json, lambda client, ref: client.amend(ref, wish), told)


@click.command("move")
@click.argument("job", type=references.LIVE_JOB)
@click.option("-q", "--queue", metavar="NAME", type=references.QUEUE, help="Queue to wait in.")
@click.option(
    "--priority",
    type=click.IntRange(-PRIORITY_MAX, PRIORITY_MAX),
    metavar="N",
    help="Higher goes first.",
)
@click.option("--deadline", metavar="TIME", help="When it should be done: 'fri 18:00', +2h.")
@click.option("--time", "seconds", type=Duration(), metavar="TIME", help="Its longest run time.")
@asking.json_option
def move(
    job: str,
    queue: str | None,
    priority: int | None,
    deadline: str | None,
    seconds: float | None,
    as_json: bool,
) -> int:
    """Change the queue, priority, deadline or longest run time of a job that is not over."""
    from bough.records import Amendment

    wish = Amendment(
        queue=queue, priority=priority, max_run_seconds=seconds,
        deadline=None if deadline is None else _moment(deadline),
    )  # fmt: skip
    if wish == Amendment():
        raise click.UsageError("What is to change? Say --queue, --priority, --deadline or --time.")
    before = _before(job)

    def told(now: JobRecord) -> str:
        old = before.get(now.id)
        undo = " ".join(_way_back(old, wish)) if old else ""
        undo = f"; `bough move {now.id} {undo}` undoes it" if undo else ""
        return f"{_name(now)} {', '.join(_moved(now, wish))}{undo}."

    return _each((job,), as_json, lambda client, ref: client.amend(ref, wish), told)


def _moved(job: JobRecord, wish: Amendment) -> Iterator[str]:
    """What was changed, as it is now."""
    from bough.cli.words import moment
    from bough.core.units import format_duration

    if wish.queue is not None:
        yield f"is in queue {job.queue}"
    if wish.priority is not None:
        yield f"has priority {job.priority}"
    if wish.deadline is not None:
        yield f"should be done {moment(job.deadline, clock.now())}"
    if wish.max_run_seconds is not None:
        yield f"may run {format_duration(wish.max_run_seconds)}"


def _way_back(old: JobRecord, wish: Amendment) -> Iterator[str]:
    """The options that undo it, as far as there are such."""
    from datetime import datetime

    from bough.localtime import LOCAL

    if wish.queue is not None:
        yield f"--queue {old.queue}"
    if wish.priority is not None:
        yield f"--priority {old.priority}"
    if wish.deadline is not None and old.deadline is not None:
        yield f"--deadline '{datetime.fromtimestamp(old.deadline, LOCAL):%Y-%m-%d %H:%M}'"


def _moment(text: str) -> float:
    from bough.core.moments import parse_time
    from bough.localtime import LOCAL

    try:
        at = parse_time(text, clock.now(), LOCAL)
    except ValueError as error:
        raise InputError(str(error), field="--deadline") from None
    if at <= clock.now():
        raise InputError("has passed", field="--deadline", hint="write +2h for in two hours")
    return at


def _before(ref: str) -> dict[str, JobRecord]:
    """As it is now, so that there is a way back."""
    with asking.connect() as client:
        try:
            job = client.wait(ref, 0.0)
        except BoughError:  # several, or none: who is asked to change them will say so
            return {}
        return {job.id: job}


def _counts(job: JobRecord) -> str:
    from bough.core.model import Range

    if len(job.sizes) == 1:
        return str(job.sizes[0])
    plain = Range(min=job.sizes[0], max=job.sizes[-1])
    if plain.sizes() == job.sizes:
        return f"{plain.min}..{plain.max}"
    return format_counts(
        Range(min=job.sizes[0], max=min(job.sizes[-1], COUNT_MAX), steps=job.sizes)
    )

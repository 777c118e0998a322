"""`bough history`: jobs that are over, of a time, a user, a queue, or an outcome."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from bough.cli import asking, references
from bough.cli.clock import Moment
from bough.cli.grid import Cell, Column, Grid, bare, draw
from bough.cli.ls import PAGE_MAX, Wanted, myself
from bough.cli.palette import STATES
from bough.cli.words import hours, sizes, span
from bough.core.moments import format_time
from bough.errors import InputError
from bough.localtime import LOCAL
from bough.records import ENDED, JobRecord

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.client import Client

#: Listed when nobody says how many.
USUAL: Final = 30
COLUMNS: Final = (
    Column("Job"),
    Column("Name", cut=14),
    Column("User", cut=8, rank=1, if_any=True),
    Column("Queue", cut=8, rank=5, if_any=True),
    Column("State"),
    Column("Code", right=True, if_any=True),
    Column("Devices", right=True, rank=4),
    Column("Waited", right=True, rank=3),
    Column("Ran", right=True),
    Column("Device-h", right=True, rank=2),
    Column("Ended", right=True),
)
CSV: Final = (
    "id", "name", "user", "queue", "state", "code", "submitted", "began", "ended",
    "device_seconds", "failures", "retry_of",
)  # fmt: skip


class Window(NamedTuple):
    """Jobs that ended in it."""

    since: float | None = None
    until: float | None = None

    def holds(self, job: JobRecord) -> bool:
        ended = job.ended or 0.0
        return (self.since or 0.0) <= ended and (self.until is None or ended < self.until)


class Past(NamedTuple):
    """What was found."""

    jobs: Sequence[JobRecord]
    #: Everybody's were asked for.
    users: bool
    more: bool


@click.command("history")
@click.option("-a", "--all", "everybody", is_flag=True, help="Everybody's jobs.")
@click.option("--since", type=Moment(), metavar="TIME", help="Ended since: 7d (ago), 2026-11-01.")
@click.option("--until", type=Moment(), metavar="TIME", help="Ended before.")
@click.option("--state", "states", multiple=True, type=references.STATES, help="How it ended.")
@click.option("--user", metavar="NAME", type=references.USER, help="This user's.")
@click.option("--queue", metavar="NAME", type=references.QUEUE, help="In this queue.")
@click.option("--name", metavar="NAME", help="Of this name.")
@click.option("-n", "most", type=click.IntRange(1), metavar="N", help=f"At most so many; {USUAL}.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, one row for each job.")
@asking.json_option
def command(
    everybody: bool,
    since: float | None,
    until: float | None,
    states: tuple[str, ...],
    user: str | None,
    queue: str | None,
    name: str | None,
    most: int | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """List jobs that are over, the latest first.

    \b
    bough history                          my last ones
    bough history -a --since 7d --state failed
    bough history --since 2026-11-01 --until 2026-12-01 --csv > november.csv
    """
    if as_json and as_csv:
        raise InputError("--json and --csv cannot both be printed")
    if since is not None and until is not None and since >= until:
        raise InputError("ends before it begins", field="--until")
    whole = as_csv or as_json or since is not None or until is not None
    most = most or (sys.maxsize if whole else USUAL)
    chosen = tuple(state for state in references.spread(states) or ENDED if state in ENDED)
    if not chosen:
        raise InputError("names no state of jobs that are over", field="--state")
    wanted = Wanted(chosen, user if user or everybody else myself(), queue, name, most)
    with asking.connect() as client:
        past = find(client, wanted, Window(since, until))
    if as_csv:
        print_csv(past.jobs)
    elif as_json:
        asking.print_json(past.jobs)
    else:
        asking.print_lines(render(past, asking.look()))


def find(client: Client, wanted: Wanted, window: Window) -> Past:
    """The daemon lists by submission, and what was submitted early may have ended late."""
    assert wanted.most is not None
    found: list[JobRecord] = []
    before = None
    small = min(wanted.most, PAGE_MAX) if window == Window() else PAGE_MAX
    while True:
        page = client.jobs(
            states=wanted.states, user=wanted.user, queue=wanted.queue, name=wanted.name,
            before=before, limit=small,
        )  # fmt: skip
        found += filter(window.holds, page.jobs)
        before = page.next
        if not before or len(found) >= wanted.most:
            more = bool(before) or len(found) > wanted.most
            return Past(found[: wanted.most], wanted.user is None, more)


def render(past: Past, look: Look) -> list[str]:
    if not past.jobs:
        hint = "No job of that time is over. Those that live: " + look.paint("bough ls -a", "type")
        return [hint] if look.people else []
    users = past.users or len({job.user for job in past.jobs}) > 1
    queues = {job.queue for job in past.jobs} != {"default"}
    rows = [row(job, look.now, users, queues) for job in past.jobs]
    lines = draw(Grid(COLUMNS, rows), look.width, look.colour)
    if look.people:
        lines += ["", look.paint(total(past), "quiet")]
    return lines


def row(job: JobRecord, now: float, users: bool, queues: bool) -> list[Cell]:
    began = job.began if job.began is not None else job.ended or now
    ran = None if job.began is None else (job.ended or now) - job.began
    return [
        Cell(job.id, "name"),
        Cell(bare(job.name)),
        Cell(bare(job.user) if users else ""),
        Cell(bare(job.queue) if queues else ""),
        Cell(job.state, STATES[job.state]),
        Cell(str(job.code) if job.code else ""),
        Cell(sizes(job.sizes)),
        Cell(span(began - job.submitted)),
        Cell(span(ran)),
        Cell(hours(job.device_seconds)),
        Cell(format_time(job.ended or now, now, LOCAL), "quiet"),
    ]


def total(past: Past) -> str:
    used = sum(job.device_seconds for job in past.jobs)
    failed = sum(STATES[job.state] == "wrong" for job in past.jobs)
    more = f"; -n {2 * len(past.jobs)} shows older ones" if past.more else ""
    many = len(past.jobs)
    jobs = f"{many:,} job{'' if many == 1 else 's'}"
    return f"{jobs}, {failed} went wrong, {hours(used)} device-hours{more}."


def print_csv(jobs: Sequence[JobRecord]) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(CSV)
    for job in jobs:
        cells = (getattr(job, name) for name in CSV)
        writer.writerow(["" if cell is None else cell for cell in cells])

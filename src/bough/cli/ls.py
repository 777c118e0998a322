"""`bough ls`: my jobs that live and those that ended lately, with what is most worth knowing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

import click

from bough.cli import asking, clock, references
from bough.cli.grid import Cell, Column, Grid, bare, draw
from bough.cli.palette import STATES
from bough.cli.words import devices, outlook, seconds_in_state, span
from bough.records import ENDED, JobRecord, State

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.client import Client

#: Jobs that ended within this time are listed too, the last few of them.
RECENT_SECONDS: Final = 24 * 3600.0
RECENT_MAX: Final = 5
LIVE_MAX: Final = 200
LIVE: Final = tuple(state for state in get_args(State) if state not in ENDED)
#: Most that one page may hold.
PAGE_MAX: Final = 1000

COLUMNS: Final = (
    Column("Job"),
    Column("Name", cut=12),
    Column("User", cut=8, rank=1, if_any=True),
    Column("Queue", cut=8, rank=4, if_any=True),
    Column("State"),
    Column("Devices", rank=2),
    Column("Time", right=True, rank=3),
    Column("", cut=22),
)


class Wanted(NamedTuple):
    """Which jobs to list."""

    states: tuple[str, ...] = ()
    #: None: everybody's.
    user: str | None = None
    queue: str | None = None
    name: str | None = None
    most: int | None = None


class Listing(NamedTuple):
    """What was found."""

    jobs: Sequence[JobRecord]
    wanted: Wanted
    #: There are more than were asked for.
    more: bool = False


@click.command("ls")
@click.option("-a", "--all", "everybody", is_flag=True, help="Everybody's jobs.")
@click.option("--state", "states", multiple=True, type=references.STATES, help="In this state.")
@click.option("--user", metavar="NAME", type=references.USER, help="This user's.")
@click.option("--queue", metavar="NAME", type=references.QUEUE, help="In this queue.")
@click.option("--name", metavar="NAME", help="Of this name.")
@click.option("-n", "most", type=click.IntRange(1), metavar="N", help="At most so many.")
@asking.watch_option
@asking.json_option
def command(
    everybody: bool,
    states: tuple[str, ...],
    user: str | None,
    queue: str | None,
    name: str | None,
    most: int | None,
    watch: float | None,
    as_json: bool,
) -> None:
    """List jobs: those that live, and the last that ended within a day.

    \b
    bough ls                     mine
    bough ls -a --watch          everybody's, again and again
    bough ls --state failed -n 3 the last three that failed
    """
    whose = user if user or everybody else myself()
    wanted = Wanted(references.spread(states), whose, queue, name, most)
    with asking.connect() as client:
        if as_json:
            asking.print_json(find(client, wanted, clock.now()).jobs)
            return
        asking.present(
            lambda: find(client, wanted, clock.now()), render, as_json=False, watch=watch
        )


def myself() -> str | None:
    """Whose jobs are listed unless another is named; over a network nobody knows."""
    server = os.environ.get("BOUGH_SERVER", "")
    return None if server.startswith("https:") else asking.me()


def find(client: Client, wanted: Wanted, now: float) -> Listing:
    """The live ones first, each part with the latest first."""
    if wanted.states:
        found, more = some(client, wanted, wanted.states, wanted.most or LIVE_MAX)
        return Listing(found, wanted, more)
    live, more = some(client, wanted, LIVE, wanted.most or LIVE_MAX)
    room = RECENT_MAX if wanted.most is None else wanted.most - len(live)
    if room <= 0:
        return Listing(live, wanted, more)
    # Who was submitted late may have ended early: look at some more than are shown.
    ended, _ = some(client, wanted, ENDED, room if wanted.most else RECENT_MAX * 4)
    if wanted.most is None:
        ended = [job for job in ended if job.ended and now - job.ended <= RECENT_SECONDS]
    ended.sort(key=lambda job: job.ended or 0.0, reverse=True)
    return Listing([*live, *ended[:room]], wanted, more)


def some(
    client: Client, wanted: Wanted, states: Sequence[str], most: int
) -> tuple[list[JobRecord], bool]:
    """So many in these states, and whether there are more."""
    found: list[JobRecord] = []
    before = None
    while True:
        page = client.jobs(
            states=states, user=wanted.user, queue=wanted.queue, name=wanted.name,
            before=before, limit=min(most - len(found), PAGE_MAX),
        )  # fmt: skip
        found += page.jobs
        before = page.next
        if not before or len(found) >= most:
            return found, bool(before)


def render(listing: Listing, look: Look) -> list[str]:
    """A table, and for people a line or two on what there is besides."""
    if not listing.jobs:
        return empty(listing.wanted, look)
    table = draw(grid(listing, look.now), look.width, look.colour)
    if listing.more:
        note = f"There are more; -n {2 * len(listing.jobs)} shows them."
        table += ["", look.paint(note, "quiet")] if look.people else []
    return table


def empty(wanted: Wanted, look: Look) -> list[str]:
    """What to do where there is nothing."""
    if not look.people:
        return []
    if wanted.states or wanted.queue or wanted.name:
        return ["No job is like that. All there were: " + look.paint("bough history -a", "type")]
    whose = "You have" if wanted.user == asking.me() else f"{wanted.user or 'Nobody'} has"
    nothing = "no job now" if wanted.user else "a job now"
    first = "Start one:     " + look.paint("bough run -- python train.py", "type")
    return [f"{whose} {nothing}.", first, "Earlier ones:  " + look.paint("bough history", "type")]


def grid(listing: Listing, now: float) -> Grid:
    """One row for each job."""
    jobs = listing.jobs
    users = len({job.user for job in jobs}) > 1 or listing.wanted.user is None
    queues = {job.queue for job in jobs} != {"default"}
    return Grid(COLUMNS, [row(job, now, users, queues) for job in jobs])


def row(job: JobRecord, now: float, users: bool = True, queues: bool = True) -> list[Cell]:
    quiet = "quiet" if job.state in ENDED else ""
    wrong = "wrong" if STATES[job.state] == "wrong" else quiet
    return [
        Cell(job.id, quiet or "name"),
        Cell(bare(job.name), quiet),
        Cell(bare(job.user) if users else "", quiet),
        Cell(bare(job.queue) if queues else "", quiet),
        Cell("parked" if job.held else job.state, "waits" if job.held else STATES[job.state]),
        Cell(devices(job), quiet),
        Cell(span(seconds_in_state(job, now)), quiet),
        Cell(outlook(job, now), wrong),
    ]

"""`bough shadow`: what another policy would have done with the jobs that really came here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from bough.cli import asking, inputs, options, words
from bough.cli.grid import Cell, Column, Grid, bare, draw
from bough.cli.palette import STATES
from bough.cli.whatif import replaced, replay
from bough.core.model import Frozen

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.sim.record import JobRecord, RunRecord
    from bough.sim.runs import Setting

ROWS_MAX: Final = 20
RUNS: Final = (
    Column(""), Column("Done", right=True), Column("Completion", right=True),
    Column("Wait", right=True), Column("In time", right=True, if_any=True),
    Column("Device-hours", right=True, rank=1),
)  # fmt: skip
JOBS: Final = (Column("Job"), Column("Here"), Column("There"))


class Run(Frozen, frozen=True):
    """How a policy did up to now; times are of jobs that are done under all of them."""

    policy: str  #: `really`: what happened.
    jobs: int  #: Submitted.
    done: int  #: Of them.
    mean_jct_seconds: float | None  #: From submission to the end.
    mean_wait_seconds: float | None  #: Until they first began.
    in_time: float | None  #: Part of the jobs whose deadline has come that kept it.
    device_hours: float  #: Used by all of them.


class Standing(Frozen, frozen=True):
    """A job that is not over here."""

    job: str  #: Its number.
    here: str  #: `waiting` or `running`.
    there: str  #: How it would be now: the same words, or how it would have ended.
    seconds: float  #: Since it began, or ended, or was submitted there.


class Shadow(NamedTuple):
    """What is printed."""

    policy: str
    runs: Sequence[Run]
    jobs: Sequence[Standing]


@click.command("shadow")
@click.option("-p", "--policy", required=True, metavar="NAME", help="That would have decided.")
@click.option("--state", metavar="FILE", help="A store or an exported journal; else your daemon's.")
@click.option("--last", type=options.Duration(), metavar="TIME", help="Only who came since: 7d.")
@options.processes_option
@asking.json_option
def command(
    policy: str, state: str | None, last: float | None, processes: int | None, as_json: bool
) -> None:
    """Say what another policy would have done with the jobs that came here, up to now.

    The jobs of the journal are replayed on the machine as it is, under the policy that decides
    here, for comparison, and under the other one; nothing here is changed. docs/quote.md tells how
    far that can be trusted.

    \b
    bough shadow --policy srtf
    bough shadow --policy las --last 7d --json
    """
    from bough.cli.journal import opened
    from bough.server.hindsight import retold
    from bough.sim.whatif import last as the_last

    (name,) = inputs.split_policies([policy])
    with opened(state) as journal:
        tale = retold(journal)
    setting, since = tale.setting, -math.inf
    if last is not None:
        part, since = the_last(setting.trace, last)
        setting = replaced(setting, part)
    setting = until(setting, tale.really.ended)
    records = [tale.really, *replay([(setting, tale.policy), (setting, name)], processes)]
    records[1].policy = f"{tale.policy}, replayed"
    records[2].policy = name
    found = Shadow(name, runs_of(records, since), standing_of(records[0], records[2]))
    if as_json:
        asking.print_json(found._asdict())
    else:
        asking.print_lines(render(found, asking.look()))


def until(setting: Setting, at: float) -> Setting:
    """The same up to a moment."""
    import msgspec

    options = msgspec.structs.replace(setting.options, until=at)
    return msgspec.structs.replace(setting, options=options)


# ----------------------------------------------------------------------------------- numbers


def runs_of(records: Sequence[RunRecord], since: float) -> list[Run]:
    """One for each, over the same jobs."""
    by_id = [{job.id: job for job in record.jobs if job.submit >= since} for record in records]
    same = set.intersection(*map(set, by_id))
    done = [id for id in same if all(jobs[id].state == "done" for jobs in by_id)]
    return [
        run_of(record, [jobs[id] for id in same], [jobs[id] for id in done])
        for record, jobs in zip(records, by_id, strict=True)
    ]


def run_of(record: RunRecord, jobs: Sequence[JobRecord], done: Sequence[JobRecord]) -> Run:
    """What one policy came to."""
    now = record.ended
    dated = [job for job in jobs if job.deadline <= now]
    kept = [job for job in dated if job.state == "done" and job.end <= job.deadline]
    return Run(
        policy=record.policy,
        jobs=len(jobs),
        done=sum(job.state == "done" for job in jobs),
        mean_jct_seconds=mean([job.end - job.submit for job in done]),
        mean_wait_seconds=mean([job.begin - job.submit for job in done]),
        in_time=len(kept) / len(dated) if dated else None,
        device_hours=sum(job.device_seconds for job in jobs) / 3600.0,
    )


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def standing_of(here: RunRecord, there: RunRecord) -> list[Standing]:
    """Jobs that live here, the latest first."""
    found, now = {job.id: job for job in there.jobs}, here.ended
    live = [job for job in here.jobs if job.state == "" or job.state == "unfinished"]
    return [
        Standing(
            job=job.id,
            here="waiting" if job.begin != job.begin else "running",
            there=state_of(found[job.id]),
            seconds=now - moment_of(found[job.id]),
        )
        for job in reversed(live)
        if job.id in found
    ]


def state_of(job: JobRecord) -> str:
    if job.state != "unfinished":
        return job.state
    return "waiting" if job.begin != job.begin else "running"


def moment_of(job: JobRecord) -> float:
    if job.state != "unfinished":
        return job.end
    return job.submit if job.begin != job.begin else job.begin


# ----------------------------------------------------------------------------------- the screen


def render(found: Shadow, look: Look) -> list[str]:
    """The policies beside each other, then the jobs that live."""
    lines = draw(Grid(RUNS, [row(run) for run in found.runs]), look.width, look.colour)
    if found.jobs:
        cells = [
            [
                Cell(one.job, "name"),
                Cell(one.here, STATES[one.here]),
                Cell(f"{one.there} for {words.span(one.seconds)}", STATES.get(one.there, "")),
            ]
            for one in found.jobs[:ROWS_MAX]
        ]
        columns = (*JOBS[:2], Column(f"Under {found.policy}"))
        lines += ["", *draw(Grid(columns, cells), look.width, look.colour)]
    if len(found.jobs) > ROWS_MAX:
        lines.append(look.paint(f"and {len(found.jobs) - ROWS_MAX} more", "quiet"))
    return lines


def row(run: Run) -> list[Cell]:
    return [
        Cell(bare(run.policy), "name"),
        Cell(f"{run.done:,} of {run.jobs:,}"),
        Cell(words.span(run.mean_jct_seconds)),
        Cell(words.span(run.mean_wait_seconds)),
        Cell("" if run.in_time is None else f"{run.in_time:.0%}"),
        Cell(words.hours(3600.0 * run.device_hours)),
    ]

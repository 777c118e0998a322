"""`bough why J`: the reason in a sentence, its numbers, and what would help, to be typed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from bough.cli import arrays, asking, references, words
from bough.cli.grid import Cell, Column, Grid, bare, draw, wrapped
from bough.cli.palette import STATES
from bough.core.model import JobSpec
from bough.core.prospects import Outlook
from bough.core.reason import Reason
from bough.core.units import format_size
from bough.errors import BoughError
from bough.records import ENDED, JobRecord

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.client import Client

COLUMNS: Final = (Column("fact"), Column("value", cut=20))
#: Facts whose names say too little.
FACTS: Final = {
    "needs": "devices it needs",
    "most": "most it can use",
    "kind": "kind of device",
    "free": "free now",
    "usable": "in working order",
    "largest_block": "most free on one node",
    "ahead": "jobs ahead of it",
    "queue_uses": "its queue uses",
    "entitled": "its queue may count on",
    "by": "because of",
}


class Answer(NamedTuple):
    """What is asked for one answer."""

    job: JobRecord
    spec: JobSpec
    reason: Reason
    #: When it is likely to begin and end, if it is not over.
    outlook: Outlook | None = None


@click.command("why", cls=asking.Watchable)
@click.argument("job", type=references.JOB)
@asking.watch_option
@asking.json_option
def command(job: str, watch: float | None, as_json: bool) -> None:
    """Say why JOB waits or runs, and what would help; of an array, each of its jobs on a line."""
    with asking.connect() as client:
        if len(client.members(job)) > 1:
            asking.present(lambda: client.members(job), arrays.render, as_json, watch=watch)
            return
        if as_json:
            asking.print_json(client.why(job))
            return

        def answer() -> Answer:
            detail = client.job(job)
            return Answer(
                detail.job, detail.spec, client.why(detail.job.id), expected(client, detail.job)
            )

        asking.present(answer, render, as_json=False, watch=watch)


def render(answer: Answer, look: Look) -> list[str]:
    """Sentence, facts, remedy."""
    job, reason = answer.job, answer.reason
    state = look.paint("parked" if job.held else job.state, STATES[job.state])
    lines = [f"{look.paint(f'Job {job.id}  {bare(job.name)}', 'name')}  {state}"]
    lines += wrapped(bare(reason.text), look.width)
    return lines + numbers(reason, look) + ahead(answer, look) + helping(answer, look)


def expected(client: Client, job: JobRecord) -> Outlook | None:
    """What is to come of it, unless it is over or nothing can be said."""
    if job.state in ENDED:
        return None
    try:
        return client.forecast(job.id)
    except BoughError:  # it has ended since, or the daemon is of an older version
        return None


def ahead(answer: Answer, look: Look) -> list[str]:
    """When it will probably begin and end."""
    seen, held = answer.outlook, answer.job.devices
    if seen is None:
        return []
    begins = "" if held else f"begins {words.ahead(seen.begins, look.now)} and "
    text = f"It probably {begins}ends {words.ahead(seen.ends, look.now)}."
    if seen.in_time is not None:
        text += f" Its deadline is kept in {seen.in_time:.0%} of what may come."
    return ["", *wrapped(text, look.width)]


def numbers(reason: Reason, look: Look) -> list[str]:
    """What the sentence is made from, as a table below it."""
    rows = [
        [Cell(f"  {label(name)}", "quiet"), Cell(fact(name, value))]
        for name, value in reason.facts.items()
        if value != ""
    ]
    return ["", *draw(Grid(COLUMNS, rows), look.width, look.colour)[1:]] if rows else []


def label(name: str) -> str:
    """A fact's name in words."""
    return FACTS.get(name) or name.removesuffix("_seconds").replace("_", " ")


def fact(name: str, value: int | float | str) -> str:
    """A number in the unit that its name tells."""
    if isinstance(value, str):
        return bare(value)
    if name.endswith("_seconds"):
        return words.span(float(value))
    if name == "memory":
        return format_size(float(value))
    return f"{value:g}" if isinstance(value, float) else f"{value:,}"


def helping(answer: Answer, look: Look) -> list[str]:
    """The remedy in words, and as a command."""
    job, remedy = answer.job, answer.reason.remedy
    typed = command_for(job, answer.spec, remedy)
    if not remedy and not typed:
        if job.state != "waiting":
            return []
        if usable := fewer_for(answer):
            text = "Waiting does not help, unless devices come; or let it have those there are:"
            return ["", *wrapped(text, look.width), "  " + look.paint(usable, "type")]
        return ["", look.paint("Nothing cheap would start it sooner: it has to wait.", "quiet")]
    lines = ["", *wrapped(f"{bare(remedy)}." if remedy else "", look.width)] if remedy else [""]
    return lines + ([f"  {look.paint(typed, 'type')}"] if typed else [])


def fewer_for(answer: Answer) -> str:
    """What to type for a job that is too big for the whole cluster; empty for any other."""
    usable = answer.reason.facts.get("usable", 0)
    if answer.reason.code != "too-big" or answer.spec.roles or not usable:
        return ""
    return f"bough scale {answer.job.id} {usable}"


def command_for(job: JobRecord, spec: JobSpec, remedy: str) -> str:
    """What to type for a remedy; empty where it cannot be had without submitting anew."""
    if job.held:
        return f"bough unpark {job.id}"
    if job.state in ("failed", "timed-out", "cancelled"):
        return f"bough retry {job.id}"
    if job.state in ENDED:
        return ""
    if found := re.match(r"Accept (\d+)\b[^,]* devices?\b", remedy):
        return f"bough scale {job.id} {found[1]}..{max(spec.devices.max, int(found[1]))}"
    if found := re.match(r"Ask for (\d+)\b[^,]* devices? only\b", remedy):
        return f"bough scale {job.id} {found[1]}"
    if found := re.match(r"Submit it to queue ([\w.-]+)", remedy):
        return f"bough move {job.id} --queue {found[1].rstrip('.')}"
    return ""

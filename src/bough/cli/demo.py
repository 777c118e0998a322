"""`bough demo`: three real jobs that grow and shrink as they come and go; the job of `make run`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from bough.cli import asking, words
from bough.cli.grid import Cell, Column, Grid, clipped, draw, wrapped
from bough.cli.palette import STATES
from bough.errors import BoughError
from bough.records import ENDED, JobRecord, LogChunk, StatusRecord

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.client import Client
    from bough.sdk import Job

#: More devices than this show nothing more.
DEVICES_MAX: Final = 8
LOOK_SECONDS: Final = 0.1
UP: Final = "\x1b[{}F"
REST_OF_LINE: Final = "\x1b[K"


class Part(NamedTuple):
    """One of the jobs."""

    name: str
    steps: int
    deadline: str
    #: What it is there for.
    about: str
    service: str = "best-effort"
    estimate: str | None = None


PARTS: Final = (
    Part("long", 2000, "+5m", "takes whatever is free"),
    Part("promised", 600, "+3m", "is held to its deadline", "guaranteed", "10s"),
    Part("short", 600, "+4m", "shares with the others"),
)
RECEIPTS: Final = (
    Column("Job", right=True),
    Column("Name"),
    Column("State"),
    Column("Waited", right=True),
    Column("Ran", right=True),
    Column("Device-s", right=True),
    Column("Devices"),
    Column("Deadline", rank=1),
)


@click.command("demo")
def command() -> int:
    """Run three real jobs here: they grow and shrink as they come and go.

    Each trains a small network with numpy. They end within seconds; the daemon stays.
    """
    from bough.client import Client

    with Client.connect(start=True) as client:
        look, status = asking.look(), client.status()
        asking.print_lines(opening(status, client.started, look))
        view = View(client, look)
        jobs = list(view.run(min(status.devices, DEVICES_MAX)))
        asking.print_lines(receipts(client, jobs, look))
        bad = [job for job in jobs if job.status().state != "done"]
        asking.print_lines(farewell(jobs, bad, look))
    return 1 if bad else 0


def opening(status: StatusRecord, started: bool, look: Look) -> list[str]:
    word = "started" if started else "runs already"
    here = f"{status.devices} device{'s' if status.devices != 1 else ''}"
    about = ", ".join(f"`{part.name}` {part.about}" for part in PARTS)
    said = f"The daemon {word} (process {status.pid}, {here}). Three jobs come: {about}."
    return [*wrapped(said, min(look.width, 100)), ""]


class View:
    """What the jobs do, as it happens."""

    def __init__(self, client: Client, look: Look) -> None:
        self._client, self._look = client, look
        self._jobs: list[Job] = []
        #: What each printed last.
        self._lines: dict[str, str] = {}
        self._said: dict[str, str] = {}
        self._drawn = 0
        self._begun = time.monotonic()

    def run(self, most: int) -> Iterator[Job]:
        """Each comes when the one before it has begun to train."""
        for part in PARTS:
            job = _send(self._client, part, most)
            self._jobs.append(job)
            threading.Thread(target=self._listen, args=(job,), daemon=True).start()
            self._show_until(lambda job=job: job.id in self._lines or _over(job))  # type: ignore[misc]
            yield job
        self._show_until(lambda: all(_over(job) for job in self._jobs))

    def _listen(self, job: Job) -> None:
        with suppress(BoughError):  # the view tells what becomes of it
            for found in self._client.logs(job.id, follow=True, rank=0):
                if isinstance(found, LogChunk) and found.text.strip():
                    self._lines[job.id] = found.text.strip().splitlines()[-1]

    def _show_until(self, done: Callable[[], bool]) -> None:
        while True:
            last = done()
            records = [job.status() for job in self._jobs]
            if self._look.people:
                self._draw(records)
            else:
                self._tell(records)
            if last:
                return
            time.sleep(LOOK_SECONDS)

    def _draw(self, records: Sequence[JobRecord]) -> None:
        """In place."""
        lines = [self._row(record) for record in records]
        back = UP.format(self._drawn) if self._drawn else ""
        sys.stdout.write(back + "".join(f"{line}{REST_OF_LINE}\n" for line in lines))
        sys.stdout.flush()
        self._drawn = len(lines)

    def _row(self, job: JobRecord) -> str:
        look, most = self._look, max(job.sizes)
        held = look.paint("█" * job.devices, "works") + look.paint(
            "░" * (most - job.devices), "quiet"
        )
        state = look.paint(job.state.ljust(9), STATES[job.state])
        text = self._lines.get(job.id, "") if job.devices or job.state in ENDED else job.reason.text
        room = look.width - (10 + most + 2 + 9 + 3)
        return f"{look.paint(job.name.ljust(10), 'name')}{held}  {state} {clipped(text, room)}"

    def _tell(self, records: Sequence[JobRecord]) -> None:
        """A line for each change, where nobody looks on."""
        for job in records:
            what = f"{job.state}, {job.devices} of {max(job.sizes)}: {job.reason.text}"
            if self._said.get(job.id) != what and job.state not in ("starting", "resizing"):
                self._said[job.id] = what
                print(f"{time.monotonic() - self._begun:5.1f}s  {job.name:10}{what}", flush=True)


def _send(client: Client, part: Part, most: int) -> Job:
    from bough import sdk

    program = [sys.executable, "-P", "-m", "bough.examples.training", "--steps", str(part.steps)]
    return sdk.run(
        program,
        gpus=(1, most),
        client=client,
        name=part.name,
        deadline=part.deadline,
        service=part.service,
        estimate=part.estimate,
    )


def _over(job: Job) -> bool:
    return job.status().state in ENDED


def receipts(client: Client, jobs: Sequence[Job], look: Look) -> list[str]:
    """What each took."""
    rows = []
    for job in jobs:
        record, receipt, detail = job.status(), job.receipt(), client.job(job.id)
        ended = record.ended or look.now
        spare = (record.deadline or ended) - ended
        sizes = [str(size) for _, size in detail.sizes if size]
        rows.append(
            [
                Cell(record.id, "name"),
                Cell(record.name),
                Cell(record.state, STATES[record.state]),
                Cell(words.span(receipt.waited_seconds)),
                Cell(words.span(receipt.ran_seconds)),
                Cell(f"{receipt.device_seconds:.1f}"),
                Cell(" → ".join(sizes)),
                Cell(f"kept, {words.span(spare)} to spare" if spare >= 0 else "missed"),
            ]
        )
    return ["", *draw(Grid(RECEIPTS, rows), look.width, look.colour), ""]


def farewell(jobs: Sequence[Job], bad: Sequence[Job], look: Look) -> list[str]:
    if bad:
        which = bad[0].id
        return [look.paint(f"Job {which} did not end well: {bad[0].why().text}", "wrong")]
    first = jobs[0].id
    rows = [
        ("bough run -g 1..4 -- python train.py", "your own program"),
        (f"bough show {first}", "all of a job; `bough logs`, `bough why`"),
        ("bough top", "devices, jobs and queues, live"),
        ("bough down", "ends the daemon; `bough up` starts it"),
    ]
    return ["Next:", *(f"  {look.paint(typed.ljust(38), 'type')}{about}" for typed, about in rows)]

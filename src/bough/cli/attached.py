"""`bough run` until its jobs are over: their output here, their exit code ours, Ctrl-C as asked."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

from bough.cli.printing import Printer, say
from bough.cli.words import told
from bough.client import Client
from bough.errors import BoughError
from bough.records import JobRecord, LogChunk, LogEnd, State

OnInterrupt = Literal["ask", "detach", "cancel"]
#: Of more jobs than this only the ends are shown.
STREAMS_MAX: Final = 16
#: As timeout(1) has it, and as shells tell SIGTERM and SIGINT.
TIMED_OUT, REJECTED, CANCELLED, INTERRUPTED = 124, 3, 143, 130
_FIRST_LOOK_SECONDS, _LOOK_SECONDS_MAX = 1.0, 30.0


class Detached(Exception):
    """Nobody watches any more; the jobs go on."""


def exit_code_of(state: State, code: int | None) -> int:
    """What `bough run` and `bough wait` end with; docs/scripts.md has the table."""
    if state == "failed":
        return code or 1
    return {"timed-out": TIMED_OUT, "cancelled": CANCELLED, "rejected": REJECTED}.get(state, 0)


def follow(
    client: Client, jobs: Sequence[JobRecord], prefixed: bool, on_interrupt: OnInterrupt
) -> int:
    """Show what the jobs print until all are over; the exit code."""
    ids = [job.id for job in jobs]
    try:
        with _interrupts(client, ids, on_interrupt):
            if len(jobs) == 1:
                return _follow_one(client, jobs[0], Printer(prefixed))
            return follow_many(client, jobs, prefixed)
    except Detached:
        many = len(ids) > 1
        goes = "The jobs go on" if many else f"Job {ids[0]} goes on"
        say(f"{goes}; `bough logs -f {ids[0]}` watches, `bough stop {ids[0]}` ends it.")
        return INTERRUPTED


def _follow_one(client: Client, job: JobRecord, printer: Printer) -> int:
    attempt = 0
    with explaining(client, job.id) as waiting:
        for found in client.logs(job.id, follow=True):
            waiting.set()
            if isinstance(found, LogEnd):
                return _ended(client, job.id, found)
            if attempt and found.attempt > attempt:
                say(_again(client, job.id, attempt))
            attempt = max(attempt, found.attempt)
            printer.show(found)
    return 0


def follow_many(client: Client, jobs: Sequence[JobRecord], prefixed: bool, **wanted: Any) -> int:
    """A thread for each job; the exit code is that of the first job that has a bad one.

    `wanted` is what `Client.logs` is asked for.
    """
    news: queue.SimpleQueue[tuple[JobRecord, LogChunk | LogEnd | Exception]] = queue.SimpleQueue()
    printer = Printer(prefixed)
    ahead = iter(jobs)

    def watch() -> None:
        for job in ahead:
            try:
                for found in _news_of(client, job, len(jobs) <= STREAMS_MAX, wanted):
                    news.put((job, found))
            except Exception as error:
                news.put((job, error))

    for _ in range(min(len(jobs), STREAMS_MAX)):
        threading.Thread(target=watch, daemon=True).start()
    codes: dict[str, int] = {}
    while len(codes) < len(jobs):
        job, found = news.get()
        if isinstance(found, Exception):
            raise found
        if isinstance(found, LogChunk):
            printer.show(found, job.name)
            continue
        codes[job.id] = _ended(client, job.id, found)
        if len(jobs) > STREAMS_MAX:
            say(f"{len(codes)} of {len(jobs)}: {job.name} is {found.end}.")
    return next((codes[job.id] for job in jobs if codes[job.id]), 0)


def _news_of(
    client: Client, job: JobRecord, streamed: bool, wanted: Mapping[str, Any]
) -> Iterator[LogChunk | LogEnd]:
    if streamed:
        yield from client.logs(job.id, follow=True, **wanted)
    else:
        over = client.wait(job.id)
        yield LogEnd(end=over.state, code=over.code)


def _ended(client: Client, id: str, end: LogEnd) -> int:
    """Say why, unless all went well."""
    if end.end != "done":
        say(told(client.wait(id, 0.0)))
    return exit_code_of(end.end, end.code)


def _again(client: Client, id: str, last: int) -> str:
    """After an attempt there is another: what became of the last, and what it has now."""
    found = client.job(id)
    devices = f"{found.job.devices} device{'s' if found.job.devices != 1 else ''}"
    ended = next((each for each in found.attempts if each.epoch == last), None)
    if ended is None or ended.how not in ("failed", "lost"):
        return f"Job {id} begins again where it was ({devices})."
    how = f"failed with exit code {ended.code}" if ended.how == "failed" else "lost its processes"
    return f"Try {last} of job {id} {how}; it begins again ({devices})."


@contextmanager
def explaining(client: Client, id: str) -> Iterator[threading.Event]:
    """While the job waits, say why, and say so again when it changes. Set it when it runs."""
    runs = threading.Event()

    def explain() -> None:
        pause, said = _FIRST_LOOK_SECONDS, ""
        while not runs.wait(pause):
            try:
                job = client.wait(id, 0.0)
            except BoughError:
                continue  # the daemon is away; whoever follows the logs says so if it stays away
            if job.state == "waiting" and job.reason.code != said:
                said = job.reason.code
                say(f"Job {job.id} waits: {job.reason.text}")
            pause = min(2 * pause, _LOOK_SECONDS_MAX)

    threading.Thread(target=explain, daemon=True).start()
    try:
        yield runs
    finally:
        runs.set()


# ------------------------------------------------------------------------------------- Ctrl-C


@contextmanager
def _interrupts(client: Client, ids: Sequence[str], wanted: OnInterrupt) -> Iterator[None]:
    """Ctrl-C does what was asked for, and a second one always detaches."""
    pressed = False

    def interrupted(*_: object) -> None:
        nonlocal pressed
        if pressed:
            raise Detached
        pressed = True
        choice = _asked(ids) if wanted == "ask" else wanted
        if choice == "watch":
            pressed = False
        elif choice == "detach":
            raise Detached
        else:
            for id in ids:
                _stop(client, id)
            _tell(f"bough: {_named(ids)} being stopped; Ctrl-C again leaves.\n")

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(client: Client, id: str) -> None:
    try:
        client.stop(id)
    except BoughError as error:  # it is over already
        _tell(f"bough: {error}\n")


def _asked(ids: Sequence[str]) -> str:
    """What a person at the terminal wants; leaving the jobs alone loses nothing."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return "detach"
    _tell(f"\nbough: {_named(ids)} running. [d]etach, [s]top or [w]atch on? [d] ")
    answer = sys.stdin.readline().strip().lower()[:1]
    return {"s": "cancel", "c": "cancel", "w": "watch"}.get(answer, "detach")


def _named(ids: Sequence[str]) -> str:
    return f"job {ids[0]} is" if len(ids) == 1 else f"{len(ids)} jobs are"


def _tell(text: str) -> None:
    """From a signal handler: past the buffers that it may have interrupted."""
    os.write(2, text.encode())

"""Jobs for commands to act on, and waiting for what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from threading import Timer
from typing import Final

from tests.daemons import PATIENCE_SECONDS, Daemon

from bough.client import Client
from bough.records import ENDED, JobRecord, LogChunk

#: It says that it runs, and goes on until somebody ends it.
STAYS: Final = ("--grace", "5s", "--", "sh", "-c", "echo here; exec sleep 600")


def submit(machine: Daemon, *words: str) -> str:
    """`bough run --detach WORDS…`: its number."""
    done = machine.bough("run", "--detach", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[0]


def running(machine: Daemon, *words: str) -> str:
    """The same, and it has begun to print; without a command, one that stays."""
    id = submit(machine, *words, *(() if "--" in words else STAYS))
    with machine.client() as client:
        found = next(client.logs(id, follow=True))
        assert isinstance(found, LogChunk), found
    return id


def over(machine: Daemon, *words: str) -> str:
    """The same, and it is over."""
    id = submit(machine, *words)
    with machine.client() as client:
        assert client.wait(id, PATIENCE_SECONDS).state in ENDED
    return id


def until(machine: Daemon, id: str, holds: Callable[[JobRecord], bool]) -> JobRecord:
    """As soon as the job is like that: looked at whenever something happens."""
    with machine.client() as client, machine.client() as looker:
        patience = Timer(PATIENCE_SECONDS, client.close)
        patience.start()
        try:
            seen = looker.status().seq
            for _ in chain([None], client.events(after=seen)):
                job = looker.wait(id, 0.0)
                if holds(job):
                    return job
        finally:
            patience.cancel()
    raise AssertionError(f"job {id} did not come to be like that")


def clear(machine: Daemon) -> None:
    """Nothing runs or waits any more."""
    with machine.client() as client:
        stop_all(client)


def stop_all(client: Client) -> None:
    live = [job.id for job in client.jobs(limit=1000).jobs if job.state not in ENDED]
    for id in live:
        client.stop(id)
    for id in live:
        client.wait(id, PATIENCE_SECONDS)

"""Ten thousand jobs submitted by eight clients at once, while the daemon dies: all are there, once.

Half of the clients send their jobs one by one, the others in batches. `make soak` has all of them
send one by one.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from tests.faults.journals import assert_sound
from tests.faults.mortals import Nursery
from tests.faults.victims import Victims
from tests.faults.witness import PATIENCE_SECONDS

from bough.client import Client
from bough.connection import Address
from bough.core.model import JobSpec, Range
from bough.errors import DaemonError
from bough.home import socket_path
from bough.records import Recipe, Submission

JOBS, CLIENTS = 10_000, 8
EACH = JOBS // CLIENTS
#: Clients that send one by one send so many; what is missing comes in batches.
ALONE = EACH if "SOAK_DEATHS" in os.environ else 250
BATCH = 250


def given(client: int, number: int) -> Submission:
    """Each has a key of its own, with which it may be asked for again and again."""
    name = f"{client}-{number}"
    spec = JobSpec(name=name, devices=Range(min=4, max=4))
    return Submission(spec=spec, recipe=Recipe(argv=("true",), cwd="/", env={}), key=name)


def crowd(home: Path, number: int, ready: object, results: Path) -> None:
    """One client, which goes on until it has an answer for each of its jobs."""
    ready.wait()  # type: ignore[attr-defined]
    jobs = [given(number, each) for each in range(EACH)]
    asked = [[job] for job in jobs[:ALONE]]
    rest = iter(jobs[ALONE:])
    while batch := list(islice(rest, BATCH)):
        asked.append(batch)
    found: dict[str, str] = {}
    client = Client(Address(socket=str(socket_path(home))), patience_seconds=PATIENCE_SECONDS)
    for each in asked:
        while True:
            try:
                told = [client.submit(each[0])] if len(each) == 1 else client.submit_all(each)
            except DaemonError:  # it died; the next one is asked the same
                continue
            break
        found |= {job.name: job.id for job in told}
    results.write_text(json.dumps(found))
    os._exit(0)


@pytest.fixture
def victims(nursery: Nursery, tmp_path: Path) -> Iterator[Victims]:
    """They are too many to be ended one by one."""
    victims = Victims(nursery, tmp_path)
    yield victims
    victims.cut_power()
    victims.bell.close()


@pytest.mark.slow
def test_nobody_of_a_crowd_is_lost_or_doubled(victims: Victims, tmp_path: Path) -> None:
    mortal = victims.mortal
    blocker, _ = victims.run(devices=4)
    here = multiprocessing.get_context("fork")
    ready = here.Barrier(CLIENTS + 1)
    results = [tmp_path / f"client-{number}" for number in range(CLIENTS)]
    clients = [
        here.Process(target=crowd, args=(mortal.home, number, ready, result))
        for number, result in enumerate(results)
    ]
    for each in clients:
        each.start()
    ready.wait()
    with mortal.client() as client:  # in the midst of it
        while client.status().waiting < JOBS // 4:
            client.wait(blocker.id, 0.05)
    os.kill(mortal.pid, signal.SIGKILL)
    mortal.await_death()
    mortal.start()
    for each in clients:
        each.join()
        assert each.exitcode == 0
    ids = {name: id for result in results for name, id in json.loads(result.read_text()).items()}
    assert len(ids) == JOBS
    assert len(set(ids.values())) == JOBS
    with mortal.client() as client:
        assert client.status().waiting == JOBS
    mortal.kill()
    assert_sound(mortal.home)

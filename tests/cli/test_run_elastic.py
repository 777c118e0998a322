"""Elastic jobs from the command line: they grow and shrink as others come and go."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Bough
from tests.daemons import Daemon

from bough.client import Client
from bough.records import LogChunk

#: Counts on from a checkpoint until it is told to go, then saves it.
TRAIN = """
import os, signal, sys, time
from pathlib import Path
kept = Path(f"checkpoint-{os.environ['RANK']}")
step = int(kept.read_text()) if kept.exists() else 0
def go(*_):
    kept.write_text(str(step + 1))
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, go)
print("world", os.environ["WORLD_SIZE"], "from", step, flush=True)
while True:
    time.sleep(600)
"""


@pytest.fixture
def client(machine: Daemon) -> Iterator[Client]:
    with machine.client() as client:
        yield client


class Heard:
    """What a job prints, as it comes."""

    def __init__(self, client: Client, job: str) -> None:
        self._chunks = client.logs(job, follow=True, rank=0)
        self.lines: list[str] = []

    def until(self, line: str) -> None:
        while line not in self.lines:
            found = next(self._chunks)
            assert isinstance(found, LogChunk), f"it ended; it said {self.lines}"
            self.lines += found.text.splitlines()


@pytest.fixture
def train(here: Path) -> tuple[str, ...]:
    (here / "train.py").write_text(TRAIN)
    return ("--grace", "10s", "--", sys.executable, "train.py")


def test_it_shrinks_when_another_comes_and_grows_when_it_goes(
    bough: Bough, client: Client, train: tuple[str, ...]
) -> None:
    id = bough("run", "-d", "-g", "1..4", *train).out.strip()
    heard = Heard(client, id)
    heard.until("world 4 from 0")
    other = bough("run", "-d", "-g", "2", "--", "sleep", "600").out.strip()
    heard.until("saved")
    heard.until("world 2 from 1")
    bough("stop", other)
    heard.until("world 4 from 2")
    attempts = bough("show", id, "--json").json["detail"]["attempts"]
    assert [each.get("how", "") for each in attempts] == ["stopped", "stopped", ""]
    receipt = bough("show", id, "--json").json["receipt"]
    assert (receipt["resizes"], receipt.get("failures", 0)) == (2, 0)
    shown = bough("show", id).out
    assert "2 to 4 devices" in shown
    bough("stop", id)
    assert bough("wait", id).code == 143


def test_scale_resizes_a_job_that_runs(
    bough: Bough, client: Client, train: tuple[str, ...]
) -> None:
    id = bough("run", "-d", "-g", "4", "--name", "scaled", *train).out.strip()
    heard = Heard(client, id)
    heard.until("world 4 from 0")
    done = bough("scale", "scaled", "2")
    assert done.out == (f"Job {id} (scaled) may have 2 devices; `bough scale {id} 4` undoes it.\n")
    heard.until("world 2 from 1")
    bough("stop", id)
    bough("wait", id)


def test_parked_it_leaves_its_devices_and_goes_on_when_unparked(
    bough: Bough, client: Client, train: tuple[str, ...]
) -> None:
    id = bough("run", "-d", "-g", "4", "--name", "rests", *train).out.strip()
    heard = Heard(client, id)
    heard.until("world 4 from 0")
    assert bough("park", id).out == (
        f"Job {id} (rests) is parked; `bough unpark {id}` lets it go on.\n"
    )
    heard.until("saved")
    assert bough("run", "-g", "4", "--", "true").code == 0  # there is room
    assert "parked" in bough("ls").out
    assert bough("why", id).lines[-1].strip() == f"bough unpark {id}"
    assert bough("unpark", id).out == (
        f"Job {id} (rests) may go on; `bough park {id}` parks it again.\n"
    )
    heard.until("world 4 from 1")
    bough("stop", id)
    bough("wait", id)


def test_stopped_it_has_its_grace(
    bough: Bough, client: Client, train: tuple[str, ...], here: Path
) -> None:
    id = bough("run", "-d", "--name", "ends", *train).out.strip()
    Heard(client, id).until("world 1 from 0")
    assert bough("stop", id).out.startswith(f"Job {id} (ends) is being stopped; ")
    assert bough("wait", id).out == f"Job {id} (ends) was cancelled by a user.\n"
    assert (here / "checkpoint-0").read_text() == "1"

"""`kill -9` of the daemon at many steps of a start, a stop, a freeze and a thaw: nothing is lost.

After each, a new daemon believes what the journal of the dead one said, and asks what became of it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.faults.witness import Bell, is_alive, state_of

from bough.backends.base import Expected
from bough.backends.local import Local
from bough.core.model import Event, Exited, JobSpec, Node, Start, Started, Stop
from bough.records import Recipe
from bough.testing.backends import Inbox

PLACE = (("here", (0,)),)
START, AGAIN = Start(id="1", epoch=1, place=PLACE), Start(id="1", epoch=2, place=PLACE)
STOP, PARK = Stop(id="1", epoch=1, park=False), Stop(id="1", epoch=1, park=True)
NODES = [Node(name="here", kind="cpu", devices=8)]


class Crash:
    """A daemon that died during the last of some commands, and one that comes after it."""

    def __init__(self, doomed: subprocess.Popen[str], path: Path) -> None:
        self._doomed = doomed
        self._path = path

    def at(self, step: int, *commands: Start | Stop) -> bool:
        """Whether it died; else the command has fewer steps than that."""
        self.home = self._path / f"home-{step}"
        self.home.mkdir()
        self.bell = Bell(self._path / f"bell-{step}")
        script = f"echo $$ > {self.bell.path}; exec sleep 1000"
        self.recipe = Recipe(argv=("/bin/sh", "-c", script), cwd="/", park="signal")
        order = {
            "home": str(self.home),
            "step": step,
            "bell": str(self.bell.path),
            "commands": msgspec.to_builtins(commands),
            "recipe": msgspec.to_builtins(self.recipe),
        }
        assert self._doomed.stdin is not None
        assert self._doomed.stdout is not None
        print(json.dumps(order), file=self._doomed.stdin, flush=True)
        code = int(self._doomed.stdout.readline())
        assert code in (0, -signal.SIGKILL)
        self.body, self.inbox = Local(self.home, NODES, time.time), Inbox()
        return code != 0

    def believed(self, state: str, epoch: int = 1, *, park: bool = False) -> Event:
        """What the new daemon learns, at once or soon after."""
        learnt = self.body.observe({"1": Expected(epoch, state, PLACE, park=park)})
        self.body.open(self.inbox)
        return learnt[0] if learnt else self.inbox.take(Event, "1", epoch)

    def end(self, epoch: int = 1) -> None:
        """Nothing of the job is left."""
        self.tell(Stop(id="1", epoch=epoch, park=False))
        self.inbox.take(Exited, "1", epoch)
        self.body.close()
        self.bell.close()

    def tell(self, command: Start | Stop) -> None:
        self.body.execute(command, JobSpec(name="x"), self.recipe)


@pytest.fixture(scope="module")
def doomed() -> Iterator[subprocess.Popen[str]]:
    program = [sys.executable, str(Path(__file__).with_name("crashing_daemon.py"))]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(program, **pipes) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def crash(doomed: subprocess.Popen[str], tmp_path: Path) -> Crash:
    return Crash(doomed, tmp_path)


def test_a_start_happens_once_or_not_at_all(crash: Crash) -> None:
    begun, step = set(), 1
    while crash.at(step, START):
        event = crash.believed("starting")
        begun.add(type(event))
        if isinstance(event, Started):
            assert is_alive(crash.bell.pid())
        else:
            assert isinstance(event, Exited)
            assert event.why == "lost"
        crash.end()
        step += 9
    assert begun == {Started, Exited}
    crash.believed("starting")
    crash.end()


def test_a_stop_is_carried_out_in_the_end(crash: Crash) -> None:
    step = 1
    while crash.at(step, START, STOP):
        event = crash.believed("stopping")
        assert isinstance(event, Exited)
        assert event.why == "stopped"
        assert not is_alive(crash.bell.pid())
        crash.end()
        step += 3
    crash.believed("stopping")
    crash.end()
    assert step > 10


def test_a_parked_job_is_frozen_in_the_end(crash: Crash) -> None:
    step = 1
    while crash.at(step, START, PARK):
        event = crash.believed("stopping", park=True)
        assert isinstance(event, Exited)
        assert event.why == "stopped"
        worker = crash.bell.pid()
        assert state_of(worker) == "T"
        crash.tell(AGAIN)
        crash.inbox.take(Started, "1", 2)
        assert is_alive(worker)
        assert crash.bell.silent
        crash.end(2)
        step += 3
    assert step > 10
    crash.believed("stopping", park=True)
    crash.end()


def test_a_thawed_job_runs_once(crash: Crash) -> None:
    begun, step = set(), 1
    while crash.at(step, START, PARK, AGAIN):
        worker = crash.bell.pid()
        event = crash.believed("starting", epoch=2)
        begun.add(type(event))
        if isinstance(event, Exited):  # the order had not reached the disk: it is given again
            assert event.why == "lost"
            assert state_of(worker) == "T"
            crash.tell(Start(id="1", epoch=3, place=PLACE))
            crash.inbox.take(Started, "1", 3)
        assert is_alive(worker)
        assert crash.bell.silent
        crash.end(3 if isinstance(event, Exited) else 2)
        assert not is_alive(worker)
        step += 5
    assert begun == {Started, Exited}
    crash.believed("starting", epoch=2)
    crash.end(2)

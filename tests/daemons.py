"""A real daemon in a home of its own, for the tests of everything that talks to one."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bough.client import Client
from bough.connection import reachable
from bough.errors import BoughError
from bough.home import daemon_path, socket_path
from bough.records import ENDED

PATIENCE_SECONDS = 20.0
#: So many CPU slots, whatever the machine has.
SLOTS = 4


class Daemon:
    """One home, and the daemon that serves it when it has been started."""

    def __init__(self, home: Path, slots: int = SLOTS) -> None:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.home = home.resolve()
        self.slots = slots
        self.env = {
            name: value for name, value in os.environ.items() if not name.startswith("BOUGH_")
        } | {"BOUGH_HOME": str(self.home), "COLUMNS": "100"}

    def start(self) -> None:
        """Until it listens."""
        done = self.bough("up", "--devices", f"cpu:{self.slots}")
        assert done.returncode == 0, done.stderr

    @property
    def pid(self) -> int:
        found = json.loads(daemon_path(self.home).read_text(encoding="utf-8"))["pid"]
        assert isinstance(found, int)
        return found

    @property
    def runs(self) -> bool:
        return reachable(socket_path(self.home))

    def client(self) -> Client:
        from bough.connection import Address

        return Client(Address(socket=str(socket_path(self.home))))

    def command(self, *arguments: str) -> list[str]:
        """`bough …` as a program."""
        return [sys.executable, "-m", "bough", *arguments]

    def bough(
        self, *arguments: str, cwd: Path | None = None, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run `bough …` to its end."""
        return subprocess.run(
            self.command(*arguments),
            check=False,
            env=self.env | more.pop("env", {}),
            cwd=cwd or self.home,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS * 2,
            stdin=subprocess.DEVNULL,
            **more,
        )

    def popen(self, *arguments: str, **more: Any) -> subprocess.Popen[str]:
        """Begin `bough …`."""
        return subprocess.Popen(
            self.command(*arguments),
            env=self.env | more.pop("env", {}),
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def kill(self) -> None:
        """As a power cut would, and until it is gone."""
        pid = self.pid
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            ready, _, _ = select.select([pidfd], [], [], PATIENCE_SECONDS)
            assert ready, f"daemon {pid} lives on"
        finally:
            os.close(pidfd)

    def clear(self) -> None:
        """No job and no daemon is left."""
        if not daemon_path(self.home).exists():
            return
        if not self.runs:
            with contextlib.suppress(AssertionError):
                self.start()
        with contextlib.suppress(BoughError), self.client() as client:
            live = [job for job in client.jobs(limit=1000).jobs if job.state not in ENDED]
            for job in live:
                client.stop(job.id)
            for job in live:
                client.wait(job.id, PATIENCE_SECONDS)
        with contextlib.suppress(OSError):
            self.kill()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that runs, with some CPU slots."""
    daemon = Daemon(tmp_path / "home")
    daemon.start()
    yield daemon
    daemon.clear()


@pytest.fixture
def nobody_home(tmp_path: Path) -> Iterator[Daemon]:
    """A home that no daemon serves yet."""
    daemon = Daemon(tmp_path / "home")
    yield daemon
    daemon.clear()

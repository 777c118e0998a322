"""An attempt of its own for each test of the shim: a launch, and the shim that carries it out."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from tests.faults.witness import PATIENCE_SECONDS, Bell

from bough.backends import attempts, shim
from bough.records import Ending, Launch, WorkerLaunch

SHIM = [sys.executable, "-I", "-S", shim.__file__]
KIB, MIB = 1 << 10, 1 << 20
PREPARED = "import os, resource, signal, sys; {}; os.execv(sys.argv[1], sys.argv[1:])"
#: Goes on until a signal; a trap is run between two breaths.
FOREVER = "while :; do sleep 0.01; done"


class WatchedAttempt:
    """A directory with a launch in it, and the shim that carries it out."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bell = Bell(directory / "bell")
        os.mkfifo(directory / "news")
        self.news = os.open(directory / "news", os.O_RDWR | os.O_NONBLOCK)
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self, *scripts: str | tuple[str, ...], start: bool = True, **more: Any) -> None:
        """One worker for each script; `env` and `cwd` are the workers', the rest the launch's."""
        env = {"PATH": os.environ["PATH"], "BELL": str(self.bell.path), **more.pop("env", {})}
        cwd, serves = more.pop("cwd", "/"), more.pop("serves", ())
        workers = tuple(
            WorkerLaunch(
                rank=rank,
                role="worker",
                index=rank,
                argv=("/bin/sh", "-c", script) if isinstance(script, str) else script,
                cwd=cwd,
                env=env,
                log=f"worker-{rank}.log",
                serves=rank in serves,
            )
            for rank, script in enumerate(scripts)
        )
        given = {"grace_seconds": 10.0, "log_bytes_max": MIB} | more
        launch = Launch(job="1", epoch=1, workers=workers, **given)
        (self.directory / "launch.json").write_bytes(msgspec.json.encode(launch))
        if start:
            self.spawn()

    def spawn(self, preparation: str = "") -> None:
        """Start the shim, in a process that has done this before."""
        before = [sys.executable, "-c", PREPARED.format(preparation)] if preparation else []
        with open(self.directory / "shim.log", "wb") as log:
            self.process = subprocess.Popen(
                [*before, *SHIM, str(self.directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def tell(self, number: int) -> None:
        """Send the shim a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def heard(self) -> str:
        """The next of its news."""
        assert select.select([self.news], [], [], PATIENCE_SECONDS)[0], "no news"
        return os.read(self.news, 1).decode()

    def gate(self) -> dict[str, str]:
        """A pipe that holds a worker back until the test says so, for its environment."""
        os.mkfifo(self.directory / "gate")
        return {"GATE": str(self.directory / "gate")}

    def open_gate(self) -> None:
        (self.directory / "gate").write_text("go\n")

    def end(self) -> Ending:
        """How it ended, as soon as it has."""
        assert self.process is not None
        self.process.wait(PATIENCE_SECONDS)
        ending = attempts.read_ending(self.directory)
        assert ending is not None, (self.directory / "shim.log").read_text()
        return ending

    def log(self, rank: int = 0, part: str = "") -> str:
        return (self.directory / f"worker-{rank}.log{part}").read_text()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()  # and with it, its workers
            self.process.wait(PATIENCE_SECONDS)
        os.close(self.news)
        self.bell.close()

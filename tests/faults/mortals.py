"""A home whose daemon dies wherever a test wants it to, and the next that goes on from there."""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.faults.mortal_daemon import DOOM_BYTES, WORD_AT
from tests.faults.witness import PATIENCE_SECONDS

from bough.client import Client
from bough.connection import Address
from bough.errors import DaemonError
from bough.home import socket_path
from bough.records import JobRecord
from bough.server.clock import since_boot

T = TypeVar("T")
#: More crossings than anything needs.
NEVER = 1 << 40


class Nursery:
    """A process that forks one daemon after another; it has imported all they need."""

    def __init__(self, *before: str) -> None:
        program = str(Path(__file__).with_name("mortal_daemon.py"))
        self._process = subprocess.Popen(
            [*before, sys.executable, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )
        self._rest = b""

    def bear(self, **order: Any) -> None:
        """Fork a daemon."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def heard(self) -> tuple[str, int]:
        """`ready` and a process number, or `gone` and how it ended."""
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            ready, _, _ = select.select([output], [], [], PATIENCE_SECONDS)
            assert ready, "the daemon neither listens nor ends"
            more = os.read(output, 4096)
            assert more, "the nursery has died"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        word, number = line.split()
        return word.decode(), int(number)

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE_SECONDS)


class Mortal:
    """One home, its daemon, and a client that asks again whenever that has died."""

    def __init__(self, nursery: Nursery, home: Path, slots: int = 4) -> None:
        home.mkdir(mode=0o700)
        self.home = home.resolve()
        self.devices = f"cpu:{slots}"
        self.pid = 0
        #: The crossing at which the next daemon dies while it takes over; 0: it does not.
        self.arm_again: Callable[[], int] = lambda: 0
        #: Where daemons died.
        self.deaths: list[str] = []
        self._nursery = nursery
        doom = home / "doom"
        doom.write_bytes(bytes(DOOM_BYTES))
        with doom.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), DOOM_BYTES)
        self._left = memoryview(self._memory)[:8].cast("q")
        self._clock_set_by = memoryview(self._memory)[8:16].cast("d")
        self._booted_at = memoryview(self._memory)[16:WORD_AT].cast("d")

    # ------------------------------------------------------------------ life and death

    def arm(self, crossings: int) -> None:
        """From now on it counts, and dies before that one; 0: it does not."""
        self._left[0] = crossings

    @property
    def left(self) -> int:
        """Crossings until it dies."""
        return self._left[0]

    def start(self) -> None:
        """Until one listens, however many die before."""
        while True:
            self._nursery.bear(
                home=str(self.home),
                devices=self.devices,
                doom=str(self.home / "doom"),
            )
            word, number = self._nursery.heard()
            if word == "ready":
                self.pid = number
                return
            self._note_death(number)

    def await_death(self) -> None:
        """It dies, or has died."""
        word, code = self._nursery.heard()
        assert word == "gone"
        self.pid = 0
        self._note_death(code)

    def _note_death(self, code: int) -> None:
        assert code == -signal.SIGKILL, f"it ended by itself, with code {code}"
        where = self._memory[WORD_AT:].rstrip(b"\0").decode()
        self.deaths.append(where or "killed from outside")
        self._memory[WORD_AT:] = bytes(DOOM_BYTES - WORD_AT)

    def set_clock(self, by: float) -> None:
        """Somebody sets the machine's clock, whether a daemon runs or not."""
        self._clock_set_by[0] += by

    def switch_on(self, after_seconds: float) -> None:
        """The machine begins anew, so long after it went off."""
        self._booted_at[0] = since_boot()
        self.set_clock(after_seconds)

    def kill(self) -> None:
        """From outside."""
        assert self.pid, "nobody is alive"
        self.arm(0)
        os.kill(self.pid, signal.SIGKILL)
        self.await_death()

    def end(self) -> None:
        """As `bough down` does."""
        assert self.pid, "nobody is alive"
        self.arm(0)
        os.kill(self.pid, signal.SIGTERM)
        assert self._nursery.heard() == ("gone", 0)
        self.pid = 0

    def close(self) -> None:
        self.arm(0)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            assert self._nursery.heard()[0] == "gone"

    # ------------------------------------------------------------------ asking

    def client(self) -> Client:
        """With connections of its own: what goes wrong with them is the death of a daemon."""
        return Client(Address(socket=str(socket_path(self.home))), patience_seconds=0.0)

    def insist(self, ask: Callable[[Client], T]) -> T:
        """Ask until it is answered, through the deaths of daemons."""
        while True:
            try:
                with self.client() as client:
                    return ask(client)
            except DaemonError:
                self.await_death()
                self.arm(self.arm_again())
                self.start()

    def wait(self, id: str) -> JobRecord:
        """Until that job is over."""
        return self.insist(lambda client: client.wait(id, PATIENCE_SECONDS))

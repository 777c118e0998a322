"""A daemon in a home of its own, for benchmarks, and what the kernel tells of a process."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bough.backends.attempts import pidfd_of, read_shim
from bough.client import Client
from bough.connection import Address
from bough.core.model import JobSpec, Range
from bough.home import daemon_path, socket_path
from bough.records import Recipe, Submission

SLOTS: Final = 8
IDLE_SECONDS: Final = 20.0
CPU_LIMIT_PERCENT, RESIDENT_LIMIT_MIB = 0.2, 80.0
PATH: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
BOUGH: Final = (sys.executable, "-P", "-m", "bough")


class Served:
    """One home; `up` and `down` are the commands of that name."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BOUGH_")}
        self.env = kept | {"BOUGH_HOME": str(home)}

    def bough(self, *words: str) -> str:
        """What `bough …` prints."""
        command = [*BOUGH, *words]
        done = subprocess.run(command, env=self.env, check=True, capture_output=True, text=True)
        return done.stdout

    def up(self) -> None:
        """Until it listens."""
        self.bough("up", "--devices", f"cpu:{SLOTS}")

    @property
    def pid(self) -> int:
        found: int = json.loads(daemon_path(self.home).read_text(encoding="utf-8"))["pid"]
        return found

    def client(self) -> Client:
        return Client(Address(socket=str(socket_path(self.home))))

    def kill(self) -> None:
        """As a power cut does, but that the jobs go on."""
        _end(os.pidfd_open(self.pid), signal.SIGKILL)

    def clear(self) -> None:
        """Nobody is left."""
        with suppress(OSError):
            self.kill()
        for claim in self.home.glob("jobs/*/*/shim.json"):
            facts = read_shim(claim.parent)
            shim = pidfd_of(facts) if facts else None
            if shim is not None:
                _end(shim, signal.SIGTERM)


def _end(pidfd: int, number: int) -> None:
    """Send that, and wait until it is gone."""
    with open(pidfd, "rb", buffering=0) as process:
        signal.pidfd_send_signal(process.fileno(), number)
        select.select([process], [], [])


@contextmanager
def home(folder: Path, name: str) -> Iterator[Served]:
    """A home that nothing of is left in the end."""
    path = folder / name
    path.mkdir(mode=0o700)
    served = Served(path)
    try:
        yield served
    finally:
        served.clear()
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def daemon(folder: Path, name: str) -> Iterator[Served]:
    """One that serves a home where nothing has been."""
    with home(folder, name) as served:
        served.up()
        yield served


@contextmanager
def scratch(folder: str | None) -> Iterator[Path]:
    """Where such homes may be: the name of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="bough-", dir=folder) as name:
        yield Path(name)


def submission(*argv: str, devices: int = 1, env: dict[str, str] = PATH) -> Submission:
    """A command as a job."""
    spec = JobSpec(name="bench", user="", devices=Range(min=devices, max=devices))
    return Submission(spec=spec, recipe=Recipe(argv=argv, cwd="/", env=env))


# ------------------------------------------------------------------------------------ a process


def cpu_seconds(pid: int) -> float:
    """What it has used, all its threads, to the nanosecond: the kernel's clock for its CPU."""
    return time.clock_gettime((~pid << 3) | 2)


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident, and the same with pages shared by n processes counted as 1/n."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as file:
        found = {line.split(":")[0]: line.split()[1] for line in file if ":" in line}
    return int(found["Rss"]) / 1024, int(found["Pss"]) / 1024


def middle(values: Sequence[float]) -> float:
    """The median."""
    return sorted(values)[len(values) // 2]


# ------------------------------------------------------------------------------------ the limits


class Table:
    """Lines of figures, and whether one of them has passed its limit."""

    def __init__(self) -> None:
        self.fine = True

    def row(self, name: str, found: str, *, limit: str = "", met: bool = True) -> None:
        verdict = "" if met else "  MISSED"
        self.fine &= met
        print(f"{name:52} {found:>24}  {limit:12}{verdict}", flush=True)


def measure_idle(served: Served, table: Table, what: str) -> None:
    """What it costs while nobody asks and nothing runs."""
    before = cpu_seconds(served.pid)
    time.sleep(IDLE_SECONDS)
    percent = 100 * (cpu_seconds(served.pid) - before) / IDLE_SECONDS
    resident, own = memory_mib(served.pid)
    table.row(
        f"CPU of an idle daemon, {what}",
        f"{percent:.3f} %",
        limit=f"< {CPU_LIMIT_PERCENT} %",
        met=percent < CPU_LIMIT_PERCENT,
    )
    table.row(
        "  resident (its share)",
        f"{resident:.1f} ({own:.1f}) MiB",
        limit=f"< {RESIDENT_LIMIT_MIB:.0f} MiB",
        met=resident < RESIDENT_LIMIT_MIB,
    )

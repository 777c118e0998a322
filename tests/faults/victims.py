"""Jobs of a real daemon, asked for as clients do, to which something is about to happen."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.faults.journals import Book, assert_sound
from tests.faults.mortals import Mortal, Nursery
from tests.faults.witness import PATIENCE_SECONDS, Bell, wait_for_end

from bough.backends import attempts
from bough.client import Client
from bough.core.model import JobSpec, Range
from bough.home import attempt_dir
from bough.records import (
    ENDED,
    Attempt,
    ConfigChange,
    JobDetail,
    JobRecord,
    LogChunk,
    Recipe,
    Submission,
)

#: Tells its number and its attempt's, and stays.
TELLS = 'echo "$$ $BOUGH_EPOCH" > "$BELL"; exec sleep 1000'


class Victims:
    """One home, its daemon, and the jobs it has."""

    def __init__(self, nursery: Nursery, path: Path, slots: int = 4, home: str = "home") -> None:
        self.mortal = Mortal(nursery, path / home, slots)
        self.bell = Bell(path / "bell")
        self.mortal.start()
        self.ask(lambda client: client.configure(ConfigChange(backoff_seconds=0.01)))

    def ask(self, what: Any) -> Any:
        """One request of a client."""
        with self.mortal.client() as client:
            return what(client)

    def submit(self, script: str, devices: int | tuple[int, int] = 1, **more: Any) -> JobRecord:
        """What the recipe does not know is asked of the scheduler."""
        least, most = devices if isinstance(devices, tuple) else (devices, devices)
        known = {n: more.pop(n) for n in Recipe.__struct_fields__ if n in more}
        env = {"PATH": os.environ["PATH"], "BELL": str(self.bell.path), **known.pop("env", {})}
        recipe = Recipe(
            argv=("/bin/sh", "-c", script),
            cwd="/",
            env=env,
            **{"grace_seconds": 5.0, "launch": "one"} | known,
        )
        spec = JobSpec(name="victim", devices=Range(min=least, max=most), **more)
        job: JobRecord = self.ask(lambda c: c.submit(Submission(spec=spec, recipe=recipe)))
        return job

    def run(self, script: str = TELLS, devices: int = 1, **more: Any) -> tuple[JobRecord, int]:
        """Until it has told the number of one process."""
        job = self.submit(script, devices, **more)
        return job, self.told()[0]

    def told(self) -> tuple[int, int]:
        """By a worker: its number, and which attempt it belongs to."""
        pid, epoch = self.bell.wait().split()
        return int(pid), int(epoch)

    def until(self, id: str, state: str) -> JobDetail:
        """The job, as soon as it is in that state."""
        with self.mortal.client() as client:
            seen = client.status().seq  # what comes after it is told, however late we listen
            with closing(client.events(seen)) as happenings:
                found = client.job(id)
                while found.job.state != state:
                    next(happenings)
                    found = client.job(id)
        return found

    def end_of(self, job: JobRecord) -> JobRecord:
        """The job, as soon as it is over."""
        found: JobRecord = self.ask(lambda c: c.wait(job.id, PATIENCE_SECONDS))
        assert found.state in ENDED, found
        return found

    def stop(self, job: JobRecord) -> JobRecord:
        self.ask(lambda c: c.stop(job.id))
        return self.end_of(job)

    def detail(self, job: JobRecord) -> JobDetail:
        found: JobDetail = self.ask(lambda c: c.job(job.id))
        return found

    def attempts(self, job: JobRecord) -> tuple[Attempt, ...]:
        return self.detail(job).attempts

    def shim(self, job: JobRecord, epoch: int = 1) -> int:
        """The process that watches over it."""
        facts = attempts.read_shim(attempt_dir(self.mortal.home, job.id, epoch))
        assert facts is not None
        return facts.pid

    def log(self, job: JobRecord, rank: int | None = None) -> str:
        """All of a job that is over."""

        def read(client: Client) -> str:
            told = (c for c in client.logs(job.id) if isinstance(c, LogChunk))
            return "".join(c.text for c in told if rank is None or c.rank == rank)

        text: str = self.ask(read)
        return text

    def cut_power(self) -> None:
        """The daemon, if one runs, and all that ran are gone at once."""
        watchers = [
            facts.pid
            for path in self.mortal.home.glob("jobs/*/*")
            if path.name.isdecimal() and (facts := attempts.read_shim(path)) and facts.pid
        ]
        if self.mortal.pid:
            self.mortal.kill()
        for pid in watchers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            wait_for_end(pid)

    def sound(self) -> Book:
        """The journal is whole, and says that nothing was lost or given out twice."""
        self.mortal.end()
        return assert_sound(self.mortal.home)

    def clear(self) -> None:
        """Nothing is left."""
        if not self.mortal.pid:
            self.mortal.start()
        with self.mortal.client() as client:
            live = [job for job in client.jobs(limit=1000).jobs if job.state not in ENDED]
            for job in live:
                client.stop(job.id)
            for job in live:
                client.wait(job.id, PATIENCE_SECONDS)
        self.mortal.close()
        self.bell.close()

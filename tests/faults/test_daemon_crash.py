"""`kill -9` of the daemon at every step of a submission, a start, a change of size, a stop, a rest.

A crossing is a call by which the daemon changes anything outside of itself (`mortal_daemon.py`).
How many an operation has is measured; then it is done again and again, and a daemon is killed
before each of them, in an order drawn from a seed. The next daemon may die as well, while it takes
over. Whoever asked asks again, as the client does; and after each death everything must be as if
nothing had happened.

`make soak SEED=7 DEATHS=500` kills 500 daemons in each operation, or as many as you like.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.faults.journals import assert_sound
from tests.faults.mortals import NEVER, Mortal, Nursery
from tests.faults.witness import Bell, wait_for_end

from bough.backends import attempts
from bough.core.model import JobSpec, Range
from bough.errors import ConflictError
from bough.records import Amendment, ConfigChange, JobRecord, LogChunk, Recipe, Submission

#: Deaths for each operation at least, and one at each of its crossings: more than 300 together.
DEATHS = int(os.environ.get("SOAK_DEATHS", "50"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
#: One in so many daemons dies again while it takes over.
AGAIN = 3
#: Every attempt leaves its marks, and holds a lock while it lives.
BEGIN = """
exec 9>> "$WITNESS/$BOUGH_JOB.lock"
flock -n 9 || echo overlap >> "$WITNESS/$BOUGH_JOB"
echo "begin $BOUGH_EPOCH $BOUGH_SIZE" >> "$WITNESS/$BOUGH_JOB"
echo "attempt $BOUGH_EPOCH begins"
"""
#: Ends when it is told to, after it has saved its work.
STAYS = """
trap 'echo "saved $BOUGH_EPOCH" >> "$WITNESS/$BOUGH_JOB"; echo saved; exit 0' TERM
echo ready > "$BELL"
while :; do sleep 0.01 9>&-; done 2> /dev/null
"""
#: The first worker waits for ever; the second fails, when it has seen that the first is there.
TWO = """
exec 9>> "$WITNESS/$BOUGH_JOB.lock-$RANK"
flock -n 9 || echo overlap >> "$WITNESS/$BOUGH_JOB"
echo worker
test "$RANK" = 0 && { echo "waits $BOUGH_EPOCH 0" >> "$WITNESS/$BOUGH_JOB"; exec sleep 1000; }
until grep -qs "waits $BOUGH_EPOCH" "$WITNESS/$BOUGH_JOB"; do sleep 0.01; done
echo "fails $BOUGH_EPOCH 1" >> "$WITNESS/$BOUGH_JOB"
exit 9
"""

pytestmark = pytest.mark.skipif(not shutil.which("flock"), reason="there is no flock here")


class Stage:
    """A home with mortal daemons, and what its jobs have witnessed."""

    def __init__(self, nursery: Nursery, path: Path, seed: int) -> None:
        self.mortal = Mortal(nursery, path / "home")
        self.bell = Bell(path / "bell")
        self.random = np.random.default_rng([SEED, seed])
        self.submitted: dict[str, str] = {}
        self._witness = path / "witness"
        self._witness.mkdir()
        self.mortal.start()
        quick = ConfigChange(backoff_seconds=0.01)
        self.mortal.insist(lambda client: client.configure(quick))

    def submit(
        self, script: str, least: int = 1, most: int = 1, launch: str = "one", **more: object
    ) -> JobRecord:
        """Ask until it is taken on, always with the same key."""
        key = f"key-{len(self.submitted)}"
        env = {"PATH": os.environ["PATH"], "WITNESS": str(self._witness)}
        given = Submission(
            spec=JobSpec(name=key, devices=Range(min=least, max=max(least, most))),
            recipe=Recipe(
                argv=("/bin/sh", "-c", script),
                cwd="/",
                env=env | {"BELL": str(self.bell.path)},
                launch=launch,  # type: ignore[arg-type]
                **more,  # type: ignore[arg-type]
            ),
            key=key,
        )
        job = self.mortal.insist(lambda client: client.submit(given))
        assert job.id not in self.submitted
        self.submitted[job.id] = key
        return job

    def crossings(self, operation: Operation) -> int:
        """How many it has when nobody dies."""
        job = operation.do(self, NEVER)
        crossings = NEVER - self.mortal.left
        self.mortal.arm(0)
        operation.check(self, job)
        return crossings

    def dies_at(self, operation: Operation, crossing: int) -> None:
        """A daemon dies at that crossing of it, if it still has so many; one more may die after."""
        self.mortal.arm_again = self._again
        before = len(self.mortal.deaths)
        job = operation.do(self, crossing)
        self.mortal.arm(0)
        try:
            operation.check(self, job)
        except AssertionError as error:
            error.add_note(f"crossing {crossing}; deaths: {self.mortal.deaths[before:]}")
            raise

    def _again(self) -> int:
        return int(self.random.integers(1, 60)) if not self.random.integers(AGAIN) else 0

    def gone(self, job: JobRecord) -> None:
        """Wait until nothing of it is left: what was frozen when it was stopped says goodbye.

        Whatever daemon lives by now has seen to that.
        """
        self.mortal.insist(lambda client: client.status())
        for directory in (self.mortal.home / "jobs" / job.id).iterdir():
            facts = attempts.read_shim(directory)
            if facts is not None and facts.pid:
                wait_for_end(facts.pid)

    def marks(self, job: JobRecord) -> list[str]:
        """What its attempts have left, without the numbers of their epochs."""
        lines = (self._witness / job.id).read_text().splitlines()
        epochs = [line.split()[1] for line in lines if line.startswith("begin")]
        assert len(set(epochs)) == len(epochs), f"one epoch ran twice: {lines}"
        return [" ".join([first, *rest[1:]]) for first, *rest in map(str.split, lines)]

    def log(self, job: JobRecord) -> list[str]:
        """All its attempts have printed, without the numbers of their epochs."""
        chunks = self.mortal.insist(lambda client: list(client.logs(job.id)))
        texts = [chunk.text for chunk in chunks if isinstance(chunk, LogChunk)]
        return ["".join(c for c in line if c.isalpha()) for line in "".join(texts).splitlines()]

    def close(self) -> None:
        self.mortal.close()
        self.bell.close()


class Operation:
    """Does something with a job, and counts crossings from some moment of it on."""

    def do(self, stage: Stage, crossing: int) -> JobRecord:
        raise NotImplementedError

    def check(self, stage: Stage, job: JobRecord) -> None:
        """It is as if nobody had died."""
        raise NotImplementedError


class Start(Operation):
    """From the submission to the end of its processes."""

    def do(self, stage: Stage, crossing: int) -> JobRecord:
        stage.mortal.arm(crossing)
        job = stage.submit(BEGIN + "seq 1000 1040; exit 7")
        return stage.mortal.wait(job.id)

    def check(self, stage: Stage, job: JobRecord) -> None:
        assert (job.state, job.code, job.failures) == ("failed", 7, 1)
        assert stage.marks(job) == ["begin 1"]
        assert len(stage.log(job)) == 42


class Gang(Operation):
    """Two workers, of which one fails: the other goes with it, and none begins twice."""

    def do(self, stage: Stage, crossing: int) -> JobRecord:
        stage.mortal.arm(crossing)
        job = stage.submit(TWO, least=2, launch="each")
        return stage.mortal.wait(job.id)

    def check(self, stage: Stage, job: JobRecord) -> None:
        assert (job.state, job.code, job.failures) == ("failed", 9, 1)
        assert sorted(stage.marks(job)) == ["fails 1", "waits 0"]
        assert sorted(stage.log(job)) == ["worker", "worker"]


class Stop(Operation):
    """From the wish to the end; what it saves is there."""

    def do(self, stage: Stage, crossing: int) -> JobRecord:
        job = stage.submit(BEGIN + STAYS)
        assert stage.bell.wait() == "ready"
        stage.mortal.arm(crossing)
        stage.mortal.insist(lambda client: client.stop(job.id))
        return stage.mortal.wait(job.id)

    def check(self, stage: Stage, job: JobRecord) -> None:
        assert job.state == "cancelled"
        assert stage.marks(job) == ["begin 1", "saved"]
        assert stage.log(job) == ["attemptbegins", "saved"]


class Resize(Operation):
    """From four devices to two: it saves, and goes on with those."""

    def do(self, stage: Stage, crossing: int) -> JobRecord:
        job = stage.submit(BEGIN + 'test "$BOUGH_SIZE" = 4 || exit 5' + STAYS, most=4)
        assert stage.bell.wait() == "ready"
        stage.mortal.arm(crossing)
        two = Amendment(devices=Range(min=2, max=2))
        with suppress(ConflictError):  # it was heard, and the job is over when it is told again
            stage.mortal.insist(lambda client: client.amend(job.id, two))
        return stage.mortal.wait(job.id)

    def check(self, stage: Stage, job: JobRecord) -> None:
        assert (job.state, job.code, job.failures) == ("failed", 5, 1)
        assert stage.marks(job) == ["begin 4", "saved", "begin 2"]
        assert stage.log(job) == ["attemptbegins", "saved", "attemptbegins"]


class Rest(Operation):
    """It is frozen, thaws, and ends as if nothing had been."""

    def do(self, stage: Stage, crossing: int) -> JobRecord:
        job = stage.submit(BEGIN + STAYS, park="signal")
        assert stage.bell.wait() == "ready"
        stage.mortal.arm(crossing)
        ask = stage.mortal.insist
        ask(lambda client: client.park(job.id))
        ask(lambda client: client.unpark(job.id))
        ask(lambda client: client.stop(job.id))
        return stage.mortal.wait(job.id)

    def check(self, stage: Stage, job: JobRecord) -> None:
        assert job.state == "cancelled"
        stage.gone(job)
        assert stage.marks(job) == ["begin 1", "saved"]
        assert stage.log(job) == ["attemptbegins", "saved"]


@pytest.fixture
def stage(nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    stage = Stage(nursery, tmp_path, len(request.node.name))
    yield stage
    stage.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Start, Gang, Stop, Resize, Rest])
def test_nothing_is_lost_or_done_twice(stage: Stage, kind: type[Operation]) -> None:
    operation = kind()
    most = stage.crossings(operation)
    rounds = -(-DEATHS // most)
    for crossing in np.concatenate([stage.random.permutation(most) for _ in range(rounds)]):
        stage.dies_at(operation, int(crossing) + 1)
    while len(stage.mortal.deaths) < DEATHS:
        stage.dies_at(operation, int(stage.random.integers(most)) + 1)
    jobs = stage.mortal.insist(lambda client: client.jobs(limit=1000)).jobs
    assert {job.id: job.name for job in jobs} == stage.submitted
    stage.mortal.end()
    book = assert_sound(stage.mortal.home)
    assert book.over == stage.submitted.keys()

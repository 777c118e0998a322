"""What every body must hold to: subclass BackendContract, say how yours is made, and run pytest.

class TestMine(BackendContract):
    def make(self, home: Path) -> Backend:
        return Mine(home)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from bough.backends.base import Backend, Expected
from bough.core.model import Event, Exited, JobSpec, Place, Resize, Resized, Start, Started, Stop
from bough.records import Recipe

E = TypeVar("E", bound=Event)
#: No answer takes so long on a machine that works.
PATIENCE_SECONDS = 20.0


class Inbox:
    """What a body tells, kept in order; waited for, never slept for."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._taken: set[int] = set()
        self._change = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._change:
            self.events.append(event)
            self._change.notify_all()

    def take(self, kind: type[E], job: str, epoch: int) -> E:
        """The next such answer that was not taken yet, as soon as it is there."""
        found: list[E] = []

        def arrived() -> bool:
            for number, event in enumerate(self.events):
                if isinstance(event, kind) and number not in self._taken:
                    if (event.id, event.epoch) == (job, epoch):  # type: ignore[attr-defined]
                        self._taken.add(number)
                        found.append(event)
                        return True
            return False

        with self._change:
            if not self._change.wait_for(arrived, PATIENCE_SECONDS):
                told = [event for event in self.events if getattr(event, "id", "") == job]
                raise AssertionError(f"no {kind.__name__} of {job}/{epoch}; it told {told}")
        return found[0]

    def of(self, job: str) -> list[Event]:
        """All that was told of a job, in order."""
        return [event for event in list(self.events) if getattr(event, "id", "") == job]


class Stage:
    """A body with jobs on it that can lose its memory, as when the daemon is restarted."""

    def __init__(self, make: Callable[[], Backend], recipe: Callable[[str], Recipe]) -> None:
        self._make, self._recipe = make, recipe
        self._jobs: dict[str, tuple[int, JobSpec, Recipe]] = {}
        self.inbox = Inbox()
        self.body = make()
        self.body.open(self.inbox)

    def place(self, devices: int = 1, first: int = 0) -> Place:
        """So many devices of the first node."""
        return ((self.body.nodes()[0].name, tuple(range(first, first + devices))),)

    def start(self, job: str, script: str, devices: int = 1, epoch: int = 1, **more: Any) -> None:
        """Have a script run; what else is given belongs to the recipe, or is its spec."""
        spec = more.pop("spec", None) or JobSpec(name=job, resize_in_place=False)
        place = more.pop("place", None) or self.place(devices)
        seats = more.pop("seats", ())
        recipe = msgspec.structs.replace(self._recipe(script), **more)
        self._jobs[job] = (epoch, spec, recipe)
        self.body.execute(Start(id=job, epoch=epoch, place=place, seats=seats), spec, recipe)

    def run(self, job: str, script: str, devices: int = 1, epoch: int = 1, **more: Any) -> None:
        """The same, and wait until it runs."""
        self.start(job, script, devices, epoch, **more)
        self.inbox.take(Started, job, epoch)

    def stop(self, job: str, epoch: int = 1, park: bool = False) -> None:
        """Have it end, or leave its devices."""
        self.body.execute(Stop(id=job, epoch=epoch, park=park), *self._jobs[job][1:])

    def resize(self, job: str, place: Place) -> None:
        epoch, spec, recipe = self._jobs[job]
        self.body.execute(Resize(id=job, epoch=epoch, step=1, place=place), spec, recipe)

    def exit_of(self, job: str, epoch: int = 1) -> tuple[str, int]:
        """How it ended, as soon as it has."""
        event = self.inbox.take(Exited, job, epoch)
        return event.why, event.code

    def forget(self) -> None:
        """The daemon is gone; what it ran goes on."""
        self.body.close()

    def return_with(self, expected: Mapping[str, Expected]) -> list[Event]:
        """A new daemon that believes in these jobs; what it learns at once."""
        self.inbox = Inbox()
        self.body = self._make()
        learnt = list(self.body.observe(expected))
        self.body.open(self.inbox)
        return learnt

    def believed(self, state: str, epoch: int = 1, devices: int = 1) -> Expected:
        """What a daemon believes of an attempt."""
        return Expected(epoch, state, self.place(devices))

    def clear(self) -> None:
        """Leave nothing running."""
        for job, (epoch, _, recipe) in self._jobs.items():
            quick = msgspec.structs.replace(recipe, grace_seconds=0.0)
            self.body.execute(Stop(id=job, epoch=epoch, park=False), self._jobs[job][1], quick)
            self.inbox.take(Exited, job, epoch)
        self.body.close()


class BackendContract:
    """The rules of bough.backends.base as tests, for bodies that run shell scripts."""

    def make(self, home: Path) -> Backend:
        """The body, keeping what it must remember there."""
        raise NotImplementedError

    def recipe(self, script: str) -> Recipe:
        """How a shell script is run."""
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
        return Recipe(argv=("/bin/sh", "-c", script), cwd="/", env=env, grace_seconds=5.0)

    @pytest.fixture
    def stage(self, tmp_path: Path) -> Iterator[Stage]:
        """A body of this kind, and nothing left of its jobs afterwards."""
        stage = Stage(lambda: self.make(tmp_path), self.recipe)
        yield stage
        stage.clear()

    def test_it_has_devices(self, stage: Stage) -> None:
        """There is something to run on, and names are told apart."""
        nodes = stage.body.nodes()
        assert sum(node.devices for node in nodes) > 0
        assert len({node.name for node in nodes}) == len(nodes)

    def test_a_job_starts_and_is_done(self, stage: Stage) -> None:
        """First the one answer, then the other, each once."""
        stage.start("1", "exit 0")
        assert stage.exit_of("1") == ("done", 0)
        assert [type(event) for event in stage.inbox.of("1")] == [Started, Exited]

    def test_a_job_that_fails_says_how(self, stage: Stage) -> None:
        """The exit code is the job's own."""
        stage.start("1", "exit 3")
        assert stage.exit_of("1") == ("failed", 3)

    def test_one_failure_in_a_gang_ends_all_of_it(self, stage: Stage) -> None:
        """No half of a gang keeps devices."""
        stage.start("1", 'test "$RANK" != 1 || exit 4; exec sleep 1000', devices=3)
        assert stage.exit_of("1") == ("failed", 4)

    def test_a_command_that_does_not_exist_is_the_jobs_fault(self, stage: Stage) -> None:
        """It is an answer, not an exception."""
        stage.start("1", "", argv=("/no/such/program",))
        why, code = stage.exit_of("1")
        assert why == "failed"
        assert code > 0

    def test_a_job_is_stopped(self, stage: Stage) -> None:
        """And is not said to have failed."""
        stage.run("1", "exec sleep 1000")
        stage.stop("1")
        assert stage.exit_of("1")[0] == "stopped"

    def test_a_stop_may_come_at_once(self, stage: Stage) -> None:
        """Whether it began or not, it ends as it was told."""
        stage.start("1", "exec sleep 1000")
        stage.stop("1")
        assert stage.exit_of("1")[0] == "stopped"

    def test_a_stop_that_comes_too_late_is_answered(self, stage: Stage) -> None:
        """With what has become of the job."""
        stage.start("1", "exit 0")
        assert stage.exit_of("1") == ("done", 0)
        stage.stop("1")
        assert stage.exit_of("1") == ("done", 0)

    def test_a_parked_job_starts_again_as_another_epoch(self, stage: Stage) -> None:
        """Answers carry the epoch of the command."""
        stage.run("1", "exec sleep 1000")
        stage.stop("1", park=True)
        assert stage.exit_of("1")[0] == "stopped"
        stage.run("1", "exec sleep 1000", devices=2, epoch=2)

    def test_a_start_told_twice_is_done_once(self, stage: Stage, tmp_path: Path) -> None:
        """A command may be repeated after a restart."""
        script = (
            f"echo here >> {tmp_path}/count; while ! test -e {tmp_path}/go; do sleep 0.02; done"
        )
        stage.run("1", script)
        stage.run("1", script)
        (tmp_path / "go").touch()
        assert stage.exit_of("1") == ("done", 0)
        assert (tmp_path / "count").read_text() == "here\n"

    def test_a_resize_is_answered(self, stage: Stage) -> None:
        """By doing it, or by saying that it cannot be done."""
        stage.run("1", "exec sleep 1000")
        stage.resize("1", stage.place(2))
        assert stage.inbox.take(Resized, "1", 1).step == 1

    def test_logs_are_found(self, stage: Stage) -> None:
        """One for each worker, with what it said."""
        stage.start("1", 'echo "rank $RANK of $WORLD_SIZE"', devices=2)
        stage.exit_of("1")
        logs = stage.body.logs("1", 1)
        assert [(log.role, log.rank) for log in logs] == [("worker", 0), ("worker", 1)]
        assert [log.path.read_text() for log in logs] == ["rank 0 of 2\n", "rank 1 of 2\n"]
        assert [log.size for log in logs] == [12, 12]

    def test_jobs_outlive_the_daemon(self, stage: Stage, tmp_path: Path) -> None:
        """They go on while nobody watches, and are found again."""
        script = f"while ! test -e {tmp_path}/go; do sleep 0.02; done; exit 5"
        stage.run("1", script)
        stage.forget()
        assert stage.return_with({"1": stage.believed("running")}) == []
        (tmp_path / "go").touch()
        assert stage.exit_of("1") == ("failed", 5)

    def test_an_end_that_nobody_saw_is_found(self, stage: Stage) -> None:
        """Exit codes are kept until they are asked for."""
        stage.start("1", "exit 6")
        stage.exit_of("1")
        stage.forget()
        (end,) = stage.return_with({"1": stage.believed("running")})
        assert isinstance(end, Exited)
        assert (end.id, end.epoch, end.why, end.code) == ("1", 1, "failed", 6)

    def test_a_job_that_was_never_begun_is_lost(self, stage: Stage) -> None:
        """The order was written down, and the daemon died before it was carried out."""
        stage.forget()
        (end,) = stage.return_with({"7": stage.believed("starting")})
        assert isinstance(end, Exited)
        assert (end.id, end.why) == ("7", "lost")

    def test_a_start_that_was_not_answered_is_answered_later(self, stage: Stage) -> None:
        """It was carried out, and the daemon died before it heard of it."""
        stage.run("1", "exec sleep 1000")
        stage.forget()
        learnt = stage.return_with({"1": stage.believed("starting")})
        told = learnt or [stage.inbox.take(Started, "1", 1)]
        assert [(type(event), event.epoch) for event in told] == [(Started, 1)]  # type: ignore[attr-defined]

    def test_a_stop_that_was_not_carried_out_is_now(self, stage: Stage) -> None:
        """The order was written down, and the daemon died before it was carried out."""
        stage.run("1", "exec sleep 1000")
        stage.forget()
        assert stage.return_with({"1": stage.believed("stopping")}) == []
        assert stage.exit_of("1")[0] == "stopped"

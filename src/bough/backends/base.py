"""What every body can do; `bough.testing` has the tests that each of them must pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from bough.core.model import Event, JobSpec, Node, Place, Resize, Start, Stop
from bough.records import Ending, Recipe


class Expected(NamedTuple):
    """An attempt we believe in after a restart, and what it was told last."""

    epoch: int
    #: starting, running, resizing or stopping.
    state: str
    place: Place
    step: int = 0
    #: Stopping, it is to be frozen if it can be.
    park: bool = False


class LogFile(NamedTuple):
    """One worker's log."""

    role: str
    rank: int
    path: Path
    size: int


class Backend(Protocol):
    """One body. Answers go to `emit`, from any thread; a job's own fault is an answer too."""

    name: str

    def nodes(self) -> list[Node]:
        """What there is to run on."""

    def open(self, emit: Callable[[Event], None]) -> None:
        """From now on, answers and news go there."""

    def execute(self, command: Start | Resize | Stop, spec: JobSpec, recipe: Recipe) -> None:
        """Begin to carry it out; returns at once."""

    def observe(self, expected: Mapping[str, Expected]) -> Sequence[Event]:
        """After a restart: what became of these attempts; those that are alive are taken over."""

    def forget(self, job: str) -> None:
        """The job is over: what is frozen of it ends, too. Nothing is answered."""

    def sweep(self, live: Collection[str]) -> Sequence[str]:
        """After a restart: end what runs of other jobs than these; which jobs that were."""

    def logs(self, job: str, epoch: int) -> Sequence[LogFile]:
        """The logs of an attempt."""

    def ending(self, job: str, epoch: int) -> Ending | None:
        """How an attempt ended, with its note in words; None when it has not."""

    def close(self) -> None:
        """Let go of everything and leave it running."""

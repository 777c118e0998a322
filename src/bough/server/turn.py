"""One turn of the decision thread: all that came in since the last, and what is to be answered."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from bough.core.model import Event
from bough.server.rows import Accepted

T = TypeVar("T")


class Turn:
    """What is told to the scheduler in one step, and written down in one transaction."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.events: list[Event] = []
        self.accepted: list[Accepted] = []
        #: Of jobs accepted in this turn, by user and key.
        self.keys: dict[tuple[str, str], str] = {}
        #: The jobs that new ones repeat.
        self.retry_of: dict[str, str] = {}

    def mark(self) -> tuple[int, int]:
        """Where it stands, for `back_to`."""
        return len(self.events), len(self.accepted)

    def back_to(self, mark: tuple[int, int]) -> None:
        """As if what came since had not been asked."""
        del self.events[mark[0] :]
        for each in self.accepted[mark[1] :]:
            self.keys.pop((each.spec.user, each.key), None)
            self.retry_of.pop(each.id, None)
        del self.accepted[mark[1] :]


class Act(NamedTuple, Generic[T]):
    """Something that is to happen: it adds to the turn, and says how it is answered afterwards."""

    work: Callable[[Turn], Callable[[], T]]
    future: Future[T]


class Look(NamedTuple, Generic[T]):
    """Something that needs the state as it is between two turns."""

    work: Callable[[], T]
    future: Future[T]


def answer(future: Future[T], work: Callable[[], T]) -> None:
    """With what the work gives, or with what goes wrong in it."""
    try:
        value = work()
    except Exception as error:
        refuse(future, error)
        return
    with suppress(InvalidStateError):  # whoever asked has gone
        future.set_result(value)


def refuse(future: Future[T], error: BaseException) -> None:
    """It could not be done."""
    with suppress(InvalidStateError):
        future.set_exception(error)

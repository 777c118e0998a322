"""Those who wait for a job to end: told when it does, or when their patience is over."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from bough.records import JobRecord
from bough.server.loop import Loop
from bough.server.turn import answer, refuse


class Waiters:
    """Kept in the decision thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: dict[str, list[tuple[Future[JobRecord], Callable[[], JobRecord]]]] = {}
        loop.ledger.on_end = self._ended

    def wait(
        self, find: Callable[[], str], seconds: float, look: Callable[[], JobRecord]
    ) -> Future[JobRecord]:
        """Resolved with what `look` gives, once the job is over or the time is up."""
        future: Future[JobRecord] = Future()

        def begin() -> None:
            try:
                id = find()
            except Exception as error:
                refuse(future, error)
                return
            if id not in self._loop.ledger.live or seconds <= 0:
                answer(future, look)
                return
            self._waiting.setdefault(id, []).append((future, look))
            self._loop.later(seconds, lambda: self._give_up(id, future, look))

        asked = self._loop.look(begin)
        asked.add_done_callback(lambda done: _pass_on(done, future))
        return future

    def _ended(self, record: JobRecord) -> None:
        for future, look in self._waiting.pop(record.id, ()):
            answer(future, look)

    def _give_up(self, id: str, future: Future[JobRecord], look: Callable[[], JobRecord]) -> None:
        waiting = self._waiting.get(id, [])
        waiting[:] = [each for each in waiting if each[0] is not future]
        if not waiting:
            self._waiting.pop(id, None)
        if not future.done():
            answer(future, look)


def _pass_on(asked: Future[None], future: Future[JobRecord]) -> None:
    """What kept the question from being put."""
    error = asked.exception()
    if error is not None:
        refuse(future, error)

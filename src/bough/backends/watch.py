"""One thread that waits for many file descriptors, and does what it is asked to between them."""

from __future__ import annotations

import logging
import os
import selectors
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Watcher:
    """All that is watched is touched in this thread alone, so nothing needs a lock."""

    def __init__(self, name: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._asked: deque[Callable[[], object]] = deque()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._wake, selectors.EVENT_READ, self._answer)
        self._stopping = self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """From now on things happen."""
        self._thread.start()

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Finish what was asked, and end."""
        if self.runs:
            self.ask(self._stop)
            self._thread.join()
        self._closed = True
        self._selector.close()
        os.close(self._wake)

    def ask(self, action: Callable[[], object]) -> None:
        """Do this soon, after all that was asked before; never, once we have stopped."""
        if self._closed:
            return
        self._asked.append(action)
        os.eventfd_write(self._wake, 1)

    def call(self, action: Callable[[], T]) -> T:
        """Do this now and give back what it gives; before the start, do it here."""
        if not self.runs:
            return action()
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(action())
            except BaseException as error:
                answer.set_exception(error)

        self.ask(run)
        return answer.result()

    def watch(self, fd: int, action: Callable[[], object]) -> None:
        """Call this whenever the descriptor is readable."""
        self._selector.register(fd, selectors.EVENT_READ, action)

    def unwatch(self, fd: int) -> None:
        """No longer."""
        self._selector.unregister(fd)

    def _stop(self) -> None:
        self._stopping = True

    def _answer(self) -> None:
        os.eventfd_read(self._wake)
        while self._asked:
            self._do(self._asked.popleft())

    def _run(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select():
                # What one action closed, another of the same round may still be listed for.
                if self._selector.get_map().get(key.fd) == key:
                    self._do(key.data)

    def _do(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception:
            # One job's trouble must not end the watch over all others.
            _log.exception("watching over jobs")

"""Work side by side in forks of this process: they know what it knows, and send what they find.

For pure work only: nothing that it changes comes back but its results, which are the same whoever
does it. A fork that dies costs time and no result, as its work is done here then.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final, NamedTuple, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

#: More of them would wait for each other, and hold memory.
PROCESSES_MAX: Final = 8
#: How items are numbered in the pipe from which they are taken, two bytes at a time.
NUMBER_BYTES: Final = 2
#: A pipe holds so much at least before anybody reads it.
PIPE_BYTES: Final = 4096


class Child(NamedTuple):
    """A fork, and where it says what it found."""

    pid: int
    said: BinaryIO


def processes() -> int:
    """How many may work side by side here; macOS does not let forks use its libraries."""
    if sys.platform != "linux":
        return 1
    return min(len(os.sched_getaffinity(0)), PROCESSES_MAX)


class Forks:
    """Runs pure work on items, as so many processes, this one included."""

    def __init__(self, most: int | None = None) -> None:
        self.most = processes() if most is None else most

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results, in the order of the items."""
        most = PIPE_BYTES // NUMBER_BYTES
        if len(items) > most:
            return self(work, items[:most]) + self(work, items[most:])
        found: dict[int, Result] = {}
        if min(self.most, len(items)) > 1:
            with _numbers(len(items)) as numbers:
                children = _forked(min(self.most, len(items)) - 1, work, items, numbers)
                try:
                    found.update(_done(work, items, numbers))
                    for child in children:
                        found.update(_heard(child))
                finally:
                    _over(children)
        return [found[n] if n in found else work(item) for n, item in enumerate(items)]


@contextmanager
def _numbers(count: int) -> Iterator[int]:
    """A pipe with the numbers of all items: whoever is free takes the next."""
    numbers, end = os.pipe()
    try:
        os.write(end, b"".join(n.to_bytes(NUMBER_BYTES, "big") for n in range(count)))
    finally:
        os.close(end)
    try:
        yield numbers
    finally:
        os.close(numbers)


def _forked(
    count: int, work: Callable[[Item], Result], items: Sequence[Item], numbers: int
) -> list[Child]:
    """So many forks that have begun, or as many as this machine allows."""
    parent, children = os.getpid(), list[Child]()
    for _ in range(count):
        heard, said = os.pipe()
        try:
            with warnings.catch_warnings():
                # Libraries for matrices keep threads, which stay behind; nothing waits for them.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
        except OSError:  # no memory, or too many processes: those that are there do it
            os.close(heard)
            os.close(said)
            break
        if not pid:
            _be(parent, work, items, numbers, said)
        os.close(said)
        children.append(Child(pid, open(heard, "rb")))  # noqa: SIM115 - closed by _over
    return children


def _be(
    parent: int, work: Callable[[Item], Result], items: Sequence[Item], numbers: int, said: int
) -> None:
    """In the fork: work, say what was found, and end without a trace."""
    code = 1
    try:
        gc.disable()  # what it leaves behind goes with it
        _close_all_but(numbers, said)
        with open(said, "wb") as out:
            pickle.dump(_done(work, items, numbers, parent), out, pickle.HIGHEST_PROTOCOL)
        code = 0
    finally:
        os._exit(code)  # whatever went wrong happens again in the parent, who tells it


def _close_all_but(*kept: int) -> None:
    """Whoever waits for the end of what the parent says does not wait for a fork."""
    first = 0
    for each in sorted(kept):
        os.closerange(first, each)
        first = each + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


def _done(
    work: Callable[[Item], Result], items: Sequence[Item], numbers: int, parent: int | None = None
) -> dict[int, Result]:
    """Items are taken and worked on until none is left, or the parent is gone."""
    found: dict[int, Result] = {}
    while number := os.read(numbers, NUMBER_BYTES):
        if parent is not None and os.getppid() != parent:
            break
        at = int.from_bytes(number, "big")
        found[at] = work(items[at])
    return found


def _heard(child: Child) -> dict[int, Result]:
    """What a fork has found; nothing if it died."""
    with suppress(EOFError, pickle.UnpicklingError):
        found: dict[int, Result] = pickle.load(child.said)
        return found
    return {}


def _over(children: Sequence[Child]) -> None:
    """Nothing is left of them; whoever still works need not."""
    for child in children:
        child.said.close()
        with suppress(OSError):
            os.kill(child.pid, 9)
        with suppress(ChildProcessError):
            os.waitpid(child.pid, 0)

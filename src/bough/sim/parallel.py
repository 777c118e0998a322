"""Simulations side by side in processes, with one progress for all of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from typing import Any, TypeVar

from bough.errors import BoughError

Tell = Callable[[float], None]
Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

#: How often the progress of the workers is looked at.
LOOK_SECONDS = 0.1


def each(
    work: Callable[[Shared, Item, Tell], Result],
    shared: Shared,
    items: Sequence[Item],
    processes: int,
    tell: Tell,
) -> Iterator[tuple[int, Result]]:
    """The results with the numbers of their items, as they come.

    `work` must be a function of a module, so that another process finds it; `shared` is sent to
    every process once. With one process everything happens in this one.
    """
    if min(processes, len(items)) <= 1:
        yield from _here(work, shared, items, tell)
    else:
        yield from _elsewhere(work, shared, items, processes, tell)


def _here(
    work: Callable[[Shared, Item, Tell], Result], shared: Shared, items: Sequence[Item], tell: Tell
) -> Iterator[tuple[int, Result]]:
    for number, item in enumerate(items):

        def tell_all(share: float, number: int = number) -> None:
            tell((number + share) / len(items))

        yield number, work(shared, item, tell_all)


def _elsewhere(
    work: Callable[[Shared, Item, Tell], Result],
    shared: Shared,
    items: Sequence[Item],
    processes: int,
    tell: Tell,
) -> Iterator[tuple[int, Result]]:
    # Spawned, not forked: numpy and numba may run threads, which a fork would break.
    context = multiprocessing.get_context("spawn")
    shares = context.Array("d", len(items), lock=False)
    pool = ProcessPoolExecutor(min(processes, len(items)), context, _begin, (work, shared, shares))
    try:
        numbers = {pool.submit(_work, number, item): number for number, item in enumerate(items)}
        left: set[Future[Any]] = set(numbers)
        while left:
            done, left = wait(left, LOOK_SECONDS, FIRST_COMPLETED)
            for future in sorted(done, key=numbers.__getitem__):
                shares[numbers[future]] = 1.0
                yield numbers[future], future.result()
            tell(sum(shares) / len(items))
    except BrokenProcessPool:
        raise BoughError("a simulation's process was killed (was memory short?)") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


#: What a worker was given when it began.
_given: tuple[Any, Any, Any] | None = None


def _begin(work: Any, shared: Any, shares: Any) -> None:
    # Ctrl-C reaches all processes; the workers should just end, and the parent say so.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    global _given  # noqa: PLW0603 - the one place where a worker's state can live
    _given = (work, shared, shares)


def _end_with_parent() -> None:
    """A parent that was killed cannot stop its workers; they would wait for it for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _work(number: int, item: Any) -> Any:
    assert _given is not None
    work, shared, shares = _given

    def tell(share: float) -> None:
        shares[number] = share

    return work(shared, item, tell)

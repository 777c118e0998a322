"""Hands the journal on to those who follow it: quickly from memory, or late from the store.

Nobody is waited for. All followers share the same few last entries; one that is slower than that
reads what it has missed from the store, where everything is.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from bough.server.rows import Entry

#: Entries kept in memory for those who follow closely.
KEPT: Final = 2000
#: Entries handed over at a time.
PORTION: Final = 500
Read = Callable[[int, int], Iterator[Entry]]


class News:
    """Where entries are told, once they are on disk."""

    def __init__(self, seq: int, read: Read) -> None:
        #: The last entry there is.
        self.seq = seq
        self._read = read
        self._last: deque[Entry] = deque(maxlen=KEPT)
        self._lock = threading.Lock()
        self._followers: set[Follower] = set()
        self._over = False

    def publish(self, entries: Sequence[Entry]) -> None:
        """Told by the thread that wrote them."""
        if not entries:
            return
        with self._lock:
            self._last.extend(entries)
            self.seq = entries[-1].seq
            followers = list(self._followers)
        for follower in followers:
            follower.wake()

    def follow(self, after: int | None = None) -> Follower:
        """Everything after that entry; without one, what is yet to come.

        An entry that is not there yet is one of a journal whose end was lost: it goes on from here.
        """
        follower = Follower(self, self.seq if after is None else min(after, self.seq))
        with self._lock:
            self._followers.add(follower)
        return follower

    def leave(self, follower: Follower) -> None:
        """It is not told of anything any more."""
        with self._lock:
            self._followers.discard(follower)

    def near(self, after: int) -> list[Entry] | None:
        """The next entries, if they are in memory; None: they have to be read."""
        with self._lock:
            if after >= self.seq:
                return []
            if not self._last or self._last[0].seq > after + 1:
                return None
            skipped = max(0, after + 1 - self._last[0].seq)
            last = min(len(self._last), skipped + PORTION)
            return [self._last[i] for i in range(skipped, last)]

    def far(self, after: int) -> list[Entry]:
        """The next entries, from the store."""
        return list(self._read(after, PORTION))

    @property
    def over(self) -> bool:
        """Nothing will be told any more."""
        return self._over

    def end(self) -> None:
        """The daemon ends: followers stop once they have heard everything."""
        with self._lock:
            self._over = True
            followers = list(self._followers)
        for follower in followers:
            follower.wake()


class Follower:
    """One that follows, in an event loop of its own choice:

    async with service.follow(after) as entries:
        async for entry in entries: …
    """

    def __init__(self, news: News, after: int) -> None:
        self._news = news
        #: The last entry it has heard of.
        self.after = after
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = asyncio.Event()

    def wake(self) -> None:
        """There is something new; from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # that event loop is closed: nobody listens any more
                self._loop.call_soon_threadsafe(self._told.set)

    async def take(self, seconds: float | None = None) -> list[Entry]:
        """The next entries; none when that time has passed without any, or when it is all over."""
        self._loop = asyncio.get_running_loop()
        while True:
            self._told.clear()
            found = self._news.near(self.after)
            if found is None:
                found = await asyncio.to_thread(self._news.far, self.after)
            if found:
                self.after = found[-1].seq
                return found
            if self._news.over:
                return []
            try:
                await asyncio.wait_for(self._told.wait(), seconds)
            except TimeoutError:
                return []

    async def __aiter__(self) -> AsyncIterator[Entry]:
        while entries := await self.take():
            for entry in entries:
                yield entry

    async def __aenter__(self) -> Follower:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """It follows no longer."""
        self._news.leave(self)

"""Wakes who follows a job: when its files grow, when the journal tells of it, or after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final

from bough.server.bell import Bell
from bough.server.news import Follower

#: Something is said to the listener when there was nothing else for so long.
ALIVE_SECONDS: Final = 15.0
#: After news of the job, its files are looked for so soon; then later and later.
_SOON_SECONDS, _LATE_SECONDS = 0.005, 1.0


class Told(Enum):
    """Why one wakes."""

    BYTES = "its files have grown"
    NEWS = "it may have other files now, or be over"
    NOTHING = "a while has passed"


class Alarm:
    """Of one follower of one job."""

    def __init__(self, bell: Bell, follower: Follower, job: str) -> None:
        self._bell = bell
        self._follower = follower
        self._job = job
        self._watches: dict[Path, int] = {}
        self._woken, self._news = asyncio.Event(), asyncio.Event()
        self._pause = _SOON_SECONDS
        self._listening: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Alarm:
        self._listening = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.watch(())
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    def watch(self, places: Collection[Path]) -> None:
        """Listen to what happens there, and nowhere else."""
        for place in self._watches.keys() - set(places):
            self._bell.leave(self._watches.pop(place), self._woken)
        for place in set(places) - self._watches.keys():
            self._watches[place] = self._bell.watch(place, self._woken)

    async def wait(self) -> Told:
        """Until there may be something new."""
        heard = all(watch >= 0 for watch in self._watches.values())
        soon = self._pause <= _LATE_SECONDS
        pause = self._pause if soon else ALIVE_SECONDS if heard else _LATE_SECONDS
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._woken.wait()
        rung = self._woken.is_set()
        self._woken.clear()
        if self._news.is_set():
            self._news.clear()
            self._pause = _SOON_SECONDS
            return Told.NEWS
        if rung:
            return Told.BYTES
        self._pause *= 2
        return Told.NEWS if soon else Told.NOTHING

    async def _listen(self) -> None:
        async for entry in self._follower:
            if getattr(entry.what, "id", None) == self._job:
                self._news.set()
                self._woken.set()

"""What workers print, sent on as it comes: chunks of whole lines, from all workers and attempts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from bough.backends.base import LogFile
from bough.errors import NotFoundError
from bough.records import ENDED, LogChunk, LogEnd
from bough.server.alarm import Alarm, Told
from bough.server.log_files import Begins, LogSource, last_lines, parts_of, read_lines, text_of
from bough.server.operations import Ask, Stream

MEDIA: Final = "application/x-ndjson"
#: One who writes line by line is read so often at most.
_REST_SECONDS: Final = 0.02
#: Chunks of a worker before it is the next one's turn.
_TURN: Final = 16
_ENCODE: Final = msgspec.json.Encoder().encode


class Wanted(NamedTuple):
    """Which lines of a job's logs."""

    attempt: int | None = None
    rank: int | None = None
    role: str | None = None
    tail: int | None = None
    follow: bool = False


@dataclass(slots=True)
class Worker:
    """One worker's log, and how far it was read."""

    attempt: int
    role: str
    rank: int
    path: Path
    #: Only the last so many lines.
    tail: int | None = None
    #: Place of the next line; None: it was not looked at yet.
    at: int | None = None
    #: Nothing beyond is wanted.
    until: int | None = None
    begins: Begins = field(default_factory=dict)
    #: The latest attempt that writes to it: one that was frozen goes on with the same processes.
    latest: int = 0
    #: Inode and size when everything was read, and whether nothing more can come.
    seen: tuple[int, int] = (0, -1)
    done: bool = False

    def read(self, *, ended: bool, follow: bool) -> list[LogChunk]:
        """Some of what is new; with the end of what ends no line, once it has `ended`."""
        now = self._now()
        if self.done or (now == self.seen and not ended):
            return []
        found: list[LogChunk] = []
        with parts_of(self.path, self.begins) as parts:
            if self.at is None:
                self.at = 0 if self.tail is None else last_lines(parts, self.tail)
                self.until = None if follow or not parts else parts[-1].end
            while len(found) < _TURN:
                begin, data = read_lines(parts, self.at, ended=ended)
                if not data or (self.until is not None and begin >= self.until):
                    self.seen, self.done = now, ended
                    break
                self.at = begin + len(data)
                found.append(self._chunk(begin, data))
        return found

    def _chunk(self, at: int, data: bytes) -> LogChunk:
        text = text_of(data)
        return LogChunk(attempt=self.attempt, role=self.role, rank=self.rank, at=at, text=text)

    def _now(self) -> tuple[int, int]:
        try:
            about = self.path.stat(follow_symlinks=False)
        except OSError:
            return 0, 0
        return about.st_ino, about.st_size


class Reader:
    """All the logs that one listener wants."""

    def __init__(self, wanted: Wanted, source: LogSource) -> None:
        self._wanted = wanted
        self._workers: dict[tuple[str, str, int], Worker] = {}
        self._last = max((epoch for epoch, _ in source.attempts), default=0)
        #: Attempts before are not wanted.
        self._first = self._last if wanted.tail is not None else 0
        self.look(source, wanted.tail)

    def look(self, source: LogSource, tail: int | None = None) -> None:
        """What logs there are now."""
        wanted = self._wanted
        self.source = source
        for epoch, files in source.attempts:
            if epoch < self._first or wanted.attempt not in (None, epoch):
                continue
            for file in files:
                if wanted.rank in (None, file.rank) and wanted.role in (None, file.role):
                    self._note(epoch, file, tail)
            self._last = max(self._last, epoch)

    def _note(self, epoch: int, file: LogFile, tail: int | None) -> None:
        folder = str(file.path.parent)
        fresh = Worker(epoch, file.role, file.rank, file.path, tail)
        worker = self._workers.setdefault((folder, file.role, file.rank), fresh)
        worker.path = file.path  # its newest part comes last
        worker.done = worker.done and worker.latest == epoch
        worker.latest = epoch

    @property
    def over(self) -> bool:
        """Nothing will be logged any more."""
        return self.source.state in ENDED

    @property
    def places(self) -> set[Path]:
        """Where something may happen yet."""
        return {each.path.parent for each in self._workers.values() if each.latest == self._last}

    def read(self) -> bytes:
        """Some of what is new, as lines of JSON."""
        found = []
        for worker in self._workers.values():
            ended = self.over or worker.latest != self._last
            chunks = worker.read(ended=ended, follow=self._wanted.follow)
            found += [_ENCODE(chunk) + b"\n" for chunk in chunks]
        return b"".join(found)


async def stream(ask: Ask, ref: str, wanted: Wanted) -> Stream:
    """The logs of a job; refused before anything is sent if the caller may not see them."""
    look = partial(ask.service.logs, ask.caller, ref)
    source = await ask.around.in_thread(look)
    epochs = [epoch for epoch, _ in source.attempts]
    if wanted.attempt is not None and not wanted.follow and wanted.attempt not in epochs:
        raise NotFoundError(f"Job {source.job} has no attempt {wanted.attempt}.")
    reader = Reader(wanted, source)
    pieces = _followed(ask, reader, look) if wanted.follow else _whole(ask, reader)
    return Stream(pieces, MEDIA, endless=wanted.follow)


async def _whole(ask: Ask, reader: Reader) -> AsyncGenerator[bytes, None]:
    while pieces := await ask.around.in_thread(reader.read):
        yield pieces
    if reader.over:
        yield _end(reader.source)


async def _followed(
    ask: Ask, reader: Reader, look: Callable[[], LogSource]
) -> AsyncGenerator[bytes, None]:
    in_thread = ask.around.in_thread
    bell, job = ask.around.bell, reader.source.job
    async with ask.service.follow() as follower, Alarm(bell, follower, job) as alarm:
        while True:
            reader.look(await in_thread(look))
            while True:
                alarm.watch(reader.places)
                over = reader.over
                while pieces := await in_thread(reader.read):
                    yield pieces
                    await asyncio.sleep(0 if over else _REST_SECONDS)
                if over:
                    yield _end(reader.source)
                    return
                told = await alarm.wait()
                if told is Told.NOTHING:
                    yield b"\n"
                if told is not Told.BYTES:
                    break


def _end(source: LogSource) -> bytes:
    return _ENCODE(LogEnd(end=source.state, code=source.code)) + b"\n"

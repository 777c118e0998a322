"""One worker's log as one long text: the file that is written, and before it those rotated away.

A byte's place in it never changes, though the oldest parts are dropped: the newest tells how many
bytes are gone.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bough.backends.base import LogFile
from bough.records import State

#: What is read at once, and the longest piece that goes out without the end of its line.
PIECE: Final = 1 << 16
#: A log that is just being rotated is looked at again.
TRIES: Final = 50
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: First line of a log whose oldest parts are gone, as bough.backends.outlet writes it.
_DROPPED: Final = re.compile(rb"bough: ([0-9]{1,15}) bytes of earlier output were dropped \(logs")


class Part(NamedTuple):
    """One of its files, open."""

    fd: int
    inode: int
    #: Place of its first byte in the whole text.
    begin: int
    size: int

    @property
    def end(self) -> int:
        """Place after its last byte."""
        return self.begin + self.size

    def read(self, at: int, count: int) -> bytes:
        """Bytes from a place of the whole text on."""
        return os.pread(self.fd, min(count, self.end - at), at - self.begin)


Begins = dict[int, int]


class AttemptLogs(NamedTuple):
    """The logs of one attempt; those of one worker from the oldest part to the newest."""

    epoch: int
    files: Sequence[LogFile]


class LogSource(NamedTuple):
    """Where a job's logs are, as far as it has any."""

    job: str
    state: State
    code: int | None
    attempts: Sequence[AttemptLogs]


@contextmanager
def parts_of(path: Path, begins: Begins | None = None) -> Iterator[list[Part]]:
    """Its parts, oldest first. `begins` keeps where files begin, for those who look again."""
    with ExitStack() as stack:
        for _ in range(TRIES):
            found = _open_all(path, stack)
            if found is not None:
                break
            time.sleep(0.001)  # between two names of a rotation
        yield _placed(found or [], {} if begins is None else begins)


def _open_all(path: Path, stack: ExitStack) -> list[tuple[int, os.stat_result]] | None:
    """From the newest to the oldest, so that none is missed between; None: that has changed."""
    found: dict[int, tuple[int, os.stat_result]] = {}
    number = 0
    while number == 0 or len(found) >= number:
        opened = _open(path if number == 0 else path.with_name(f"{path.name}.{number}"), stack)
        if opened is None and number == 0:
            return None
        if opened is None:
            break
        found.setdefault(opened[1].st_ino, opened)
        number += 1
    newest = next(iter(found), None)
    with contextlib.suppress(OSError):
        if path.stat(follow_symlinks=False).st_ino == newest:
            return list(found.values())[::-1]
    return None


def _open(path: Path, stack: ExitStack) -> tuple[int, os.stat_result] | None:
    try:
        fd = os.open(path, _FLAGS)
    except OSError:
        return None
    stack.callback(os.close, fd)
    about = os.fstat(fd)
    return (fd, about) if stat.S_ISREG(about.st_mode) else None


def _placed(found: list[tuple[int, os.stat_result]], begins: Begins) -> list[Part]:
    """Where each begins: as was known, or as many bytes further on as the newest says."""
    if not found:
        return []
    begin = 0
    if len(found) > 1 and (said := _DROPPED.match(os.pread(found[-1][0], 200, 0))):
        begin = int(said[1])
    before = 0
    for _, about in found:
        if about.st_ino in begins:
            begin = begins[about.st_ino] - before
            break
        before += about.st_size
    parts = []
    for fd, about in found:
        parts.append(Part(fd, about.st_ino, begin, about.st_size))
        begin += about.st_size
    begins.clear()
    begins.update({part.inode: part.begin for part in parts})
    return parts


def read_lines(parts: list[Part], at: int, *, ended: bool) -> tuple[int, bytes]:
    """Whole lines from a place on, and that place; the rest of a line too once it has `ended`."""
    for part in parts:
        if at >= part.end:
            continue
        at = max(at, part.begin)
        data = part.read(at, PIECE)
        end = data.rfind(b"\n") + 1 or data.rfind(b"\r") + 1
        if not end and (ended or part is not parts[-1] or len(data) == PIECE):
            end = _characters(data)
        return at, data[:end]
    return at, b""


def last_lines(parts: list[Part], count: int) -> int:
    """Where the last so many lines begin."""
    if not parts:
        return 0
    at = parts[-1].end
    if not count:
        return at
    last = True  # the newline at the very end begins no line
    for part in reversed(parts):
        for begin in range(part.size - 1 - (part.size - 1) % PIECE, -1, -PIECE):
            data = part.read(part.begin + begin, PIECE)
            end = len(data) - (last and data.endswith(b"\n"))
            last = False
            while (found := data.rfind(b"\n", 0, end)) >= 0:
                count -= 1
                if not count:
                    return part.begin + begin + found + 1
                end = found
    return parts[0].begin


def text_of(data: bytes) -> str:
    """As many bytes in UTF-8 as there were: what is none is shown as question marks."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        pieces = []
        while data:
            try:
                pieces.append(data.decode())
                break
            except UnicodeDecodeError as error:
                marks = "?" * (error.end - error.start)
                pieces.append(data[: error.start].decode() + marks)
                data = data[error.end :]
        return "".join(pieces)


def _characters(data: bytes) -> int:
    """How many bytes are whole characters; at least one."""
    for cut in range(1, min(4, len(data)) + 1):
        first = data[-cut]
        if first & 0xC0 != 0x80:  # it begins a character of that many bytes
            needs = 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)
            return len(data) - cut if needs > cut and len(data) > cut else len(data)
    return len(data)

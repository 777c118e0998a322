"""A worker's output becomes a log that cannot grow without bound, and says what it lost.

The shim imports this, so it keeps to the standard library and to modules that are small.
"""

from __future__ import annotations

import contextlib
import os

#: A line that outgrows its file by so much is cut.
LINE_BYTES_MAX = 1 << 16
_NEW = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class Outlet:
    """One log: `path` and, older, `path.1`, `path.2` …, each of about `bytes_max` bytes
    at most: a file ends where a line ends.

    A full disk is no reason to stop a worker: what cannot be written is counted and dropped, and
    said as soon as there is room again.
    """

    __slots__ = (
        "_begun", "_clean", "_fd", "_room", "bytes_max", "dropped", "keep", "path", "trouble",
    )  # fmt: skip

    def __init__(self, path: str, bytes_max: int, keep: int) -> None:
        self.path = path
        self.bytes_max = max(bytes_max, 4096)
        self.keep = keep
        #: Bytes that are in none of the files.
        self.dropped = 0
        #: Why they could not be written; empty while all is well.
        self.trouble = ""
        self._fd = -1
        #: Bytes until the file is full.
        self._room = 0
        #: The next byte begins a line; the file has something in it.
        self._clean, self._begun = True, False
        self._open()

    def write(self, data: bytes) -> None:
        """Take this; it never fails."""
        while data:
            if len(data) <= self._room:
                self._put(data)
                return
            end = data.rfind(b"\n", 0, max(self._room, 0)) + 1
            if not end and not (self._clean and self._begun):
                # The line began in this file: let it end there too, if it does so soon.
                end = min(data.find(b"\n") + 1 or len(data), self._room + LINE_BYTES_MAX)
            self._put(data[:end])
            data = data[end:]
            if data and (self._clean or self._room <= -LINE_BYTES_MAX):
                self._rotate()

    def say(self, sentence: str) -> None:
        """A line of ours."""
        start = "" if self._clean else "\n"
        self._put(f"{start}bough: {sentence}\n".encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """No more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # ------------------------------------------------------------------ the files

    def _put(self, data: bytes) -> None:
        if not data:
            return
        if self.trouble:
            self._recover()
        self._room -= len(data)
        self._clean = data.endswith(b"\n")
        self._begun = True
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError as error:
            self.trouble = error.strerror or str(error)
            self.dropped += len(left)

    def _recover(self) -> None:
        """If there is room again, say what is missing."""
        note = f"{self.dropped} bytes of output could not be written: {self.trouble}"
        line = f"\nbough: {note}\n".encode()
        try:
            if self._fd < 0:
                self._open()
            if os.write(self._fd, line) == len(line):
                self.trouble = ""
        except OSError:
            pass

    def _open(self) -> None:
        try:
            self._fd = os.open(self.path, _NEW, 0o600)
            self._room = self.bytes_max - os.fstat(self._fd).st_size
        except OSError as error:
            self._fd, self._room = -1, self.bytes_max
            self.trouble = error.strerror or str(error)

    def _rotate(self) -> None:
        """The file becomes the newest of the old ones, and the oldest goes."""
        self.close()
        names = [self.path, *(f"{self.path}.{number}" for number in range(1, self.keep + 1))]
        try:
            self.dropped += os.stat(names[-1]).st_size
            os.unlink(names[-1])
        except OSError:
            pass  # there is no oldest yet
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            with contextlib.suppress(OSError):  # it does not exist yet
                os.rename(newer, older)
        self._open()
        self._clean = True
        if self.dropped and not self.trouble:
            kept = f"logs are kept to {self.keep + 1} files of {self.bytes_max} bytes"
            self.say(f"{self.dropped} bytes of earlier output were dropped ({kept})")
        self._begun = False

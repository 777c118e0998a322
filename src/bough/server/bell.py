"""Rings when something happens in a directory: inotify, asked of the C library.

Where there is none, or too many directories are watched already, nobody is told, and whoever waits
looks again after a while anyway.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from pathlib import Path
from typing import Final

_EVENT: Final = struct.Struct("iIII")
_MODIFY, _MOVED_TO, _CREATE, _ONLY_DIRECTORY = 0x2, 0x80, 0x100, 0x0100_0000
_MASK: Final = _MODIFY | _MOVED_TO | _CREATE | _ONLY_DIRECTORY
_READ_BYTES: Final = 1 << 16


class Bell:
    """All directories that are watched in one event loop."""

    def __init__(self) -> None:
        self._fd = -1
        self._waiting: dict[int, set[asyncio.Event]] = {}

    def watch(self, directory: Path, event: asyncio.Event) -> int:
        """Set the event whenever something changes there; the watch's number, or -1."""
        if self._fd < 0:
            self._open()
        if self._fd < 0:
            return -1
        watch: int = _libc().inotify_add_watch(self._fd, os.fsencode(directory), _MASK)
        if watch >= 0:
            self._waiting.setdefault(watch, set()).add(event)
        return watch

    def leave(self, watch: int, event: asyncio.Event) -> None:
        """That event is no longer set."""
        waiting = self._waiting.get(watch)
        if waiting is None:
            return
        waiting.discard(event)
        if not waiting:
            del self._waiting[watch]
            _libc().inotify_rm_watch(self._fd, watch)

    def close(self) -> None:
        """Let go of it."""
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        try:
            self._fd = _libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError):  # no such function here
            return
        if self._fd >= 0:
            asyncio.get_running_loop().add_reader(self._fd, self._ring)

    def _ring(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            watch, mask, _, size = _EVENT.unpack_from(data, at)
            at += _EVENT.size + size
            if watch < 0:  # some were lost: all may have changed
                for events in self._waiting.values():
                    for event in events:
                        event.set()
            for event in self._waiting.get(watch, ()):
                event.set()
            if mask & 0x8000:  # the directory is gone, and its number may be given out again
                self._waiting.pop(watch, None)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)

"""Means to wait for what processes do, without ever sleeping: bells they ring, and their ends."""

from __future__ import annotations

import os
import select
from pathlib import Path

PATIENCE_SECONDS = 20.0


class Bell:
    """A named pipe: a script rings by writing a line to it, as in `echo ready > "$BELL"`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path, 0o622)
        path.chmod(0o622)  # whoever a worker runs as
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._rest = b""

    def wait(self) -> str:
        """The next line."""
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._fd], [], [], PATIENCE_SECONDS)
            assert ready, f"nobody rang {self.path}"
            self._rest += os.read(self._fd, 4096)
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def pid(self) -> int:
        """The next line, a process number."""
        return int(self.wait())

    @property
    def silent(self) -> bool:
        """Nobody has rung."""
        return not self._rest and not select.select([self._fd], [], [], 0)[0]

    def close(self) -> None:
        os.close(self._fd)


def is_alive(pid: int) -> bool:
    """Whether that process runs; one that ended and was not reaped does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text[text.rindex(")") + 2] not in "ZX"


def state_of(pid: int) -> str:
    """As ps shows it: R, S, T …"""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return text[text.rindex(")") + 2]


def wait_for_end(pid: int) -> None:
    """Until that process is gone."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([pidfd], [], [], PATIENCE_SECONDS)
        assert ready, f"process {pid} lives on"
    finally:
        os.close(pidfd)

"""A terminal with a program in it: what it shows, what is typed, how it ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PATIENCE_SECONDS = 20.0
CTRL_C = "\x03"
#: Colours, movements of the cursor, and switches of a terminal.
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A program whose standard streams are one terminal, of which it is in control."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        plain = {k: v for k, v in env.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *command],
            env=plain | {"TERM": "xterm-256color"},
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        #: All that was shown, as it came.
        self.raw = ""

    @property
    def text(self) -> str:
        """What was shown, without colours."""
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def until(self, text: str, times: int = 1) -> None:
        """Read on until it has shown this."""
        end = time.monotonic() + PATIENCE_SECONDS
        while self.text.count(text) < times:
            assert self._more(end - time.monotonic()), f"{text!r} did not come; it said {self.text}"

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def resize(self, columns: int, rows: int = 24) -> None:
        """As when somebody drags the window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ended(self) -> int:
        """Read to the end; the exit code."""
        end = time.monotonic() + PATIENCE_SECONDS
        while self._more(end - time.monotonic()):
            pass
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)
        os.close(self._master)

    def _more(self, seconds: float) -> bool:
        """Read a piece; False at the end, or when it does not come in time."""
        if not select.select([self._master], [], [], max(seconds, 0.0))[0]:
            return False
        try:
            piece = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # that one: nobody has the other end open any more
                raise
            return False
        self.raw += piece.decode("utf-8", "replace")
        return bool(piece)

"""Daemons that die by `kill -9` at a chosen crossing: the n-th call by which they change the world.

Imports once; then for each line of JSON on its input it forks one daemon, which says on the output
that it is ready, and says itself when that is gone. Where each dies is told by numbers in a file
that the test shares: as long as the first is 0, nothing is counted. The second is by how much
somebody has set the machine's clock, the third for how long the machine had been there when it was
last switched on: a sham restart.

A crossing is a call from Python into C that writes, sends, makes, renames, removes or starts
something. Between two of them nothing reaches the disk, a client or another process.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from bough.core.model import JobSpec
from bough.server import clock, daemon
from bough.server.assembly import Wish
from bough.server.daemon import Notice, Ways

#: Of a doom's file: three numbers, then a word for where it died.
DOOM_BYTES, WORD_AT = 256, 24
CROSSINGS = {
    "posix": {
        "open", "mkdir", "mkfifo", "rename", "replace", "link", "unlink", "write", "pwrite",
        "ftruncate", "fsync", "chmod", "fchmod", "chown", "close", "posix_spawn", "rmdir",
    },
    "_io": {"open", "write", "flush", "close"},
    "socket": {"send", "bind", "listen"},
    "_signal": {"pidfd_send_signal"},
    "fcntl": {"flock"},
    "sqlite3": {"connect", "execute", "executemany", "executescript", "close"},
}  # fmt: skip
ALL = frozenset().union(*CROSSINGS.values())


class Doom:
    """Counts the crossings of all threads, and kills the process before the last of them."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), DOOM_BYTES)
        self._left = memoryview(self._memory)[:8].cast("q")
        self.clock_set_by = memoryview(self._memory)[8:16].cast("d")
        self.booted_at = memoryview(self._memory)[16:WORD_AT].cast("d")

    def begin(self) -> None:
        """From now on, here and in threads to come."""
        threading.setprofile(self.count)
        sys.setprofile(self.count)

    def count(self, frame: Any, event: str, what: Any) -> None:
        if event != "c_call" or not self._left[0] or what.__name__ not in ALL:
            return
        if what.__name__ not in CROSSINGS.get(room_of(what), ()):
            return
        self._left[0] -= 1
        if not self._left[0]:
            code = frame.f_code
            place = f"{what.__name__} in {Path(code.co_filename).name}:{code.co_name}".encode()
            self._memory[WORD_AT : WORD_AT + len(place)] = place
            os.kill(os.getpid(), signal.SIGKILL)


def room_of(what: Any) -> str:
    """The module of a function, or of what a method belongs to."""
    owner = getattr(what, "__self__", None)
    if owner is None or hasattr(owner, "__loader__"):  # a module's function
        return str(what.__module__)
    return type(owner).__module__


def live(order: dict[str, Any]) -> None:
    """One daemon's life."""
    doom = Doom(order["doom"])
    real, since_boot = time.time, clock.since_boot
    time.time = lambda: real() + doom.clock_set_by[0]
    clock.since_boot = lambda: since_boot() - doom.booted_at[0]
    doom.begin()

    def ready(notice: Notice) -> None:
        os.write(1, f"ready {notice.pid}\n".encode())

    try:
        daemon.run(Wish(Path(order["home"]), order["devices"]), Ways(), ready)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> None:
    JobSpec(name="x")
    for line in sys.stdin:
        child = os.fork()
        if not child:
            live(json.loads(line))
        _, status = os.waitpid(child, 0)
        os.write(1, f"gone {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()

"""Starts a daemon that outlives whoever starts it, and waits until it listens or says why not."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bough.connection import reachable
from bough.errors import DaemonError
from bough.home import daemon_path, socket_path

#: What a daemon that listens says; anything else it says is what went wrong.
READY: Final = b"ready\n"
_PIECE: Final = 1 << 16
#: How a daemon was last told to be, for one that is started without being told anything.
LAST: Final = "up.args"


def ensure(home: Path, arguments: Sequence[str] | None = None) -> bool:
    """See that a daemon serves this home; whether it had to be started.

    `arguments` are those of `bough up`; None: as it was started last.
    """
    with _alone(home):
        if reachable(socket_path(home)):
            return False
        if arguments is None:
            arguments = last(home)
        spawn(home, arguments)
    return True


def spawn(home: Path, arguments: Sequence[str]) -> None:
    """Start one, and wait until it listens."""
    said, saying = os.pipe()
    command = [sys.executable, "-P", "-m", "bough", "up", "--foreground", "--detached", *arguments]
    try:
        os.posix_spawn(
            sys.executable,
            command,
            os.environ | {"BOUGH_HOME": os.fspath(home)},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, saying, 1),
                (os.POSIX_SPAWN_DUP2, saying, 2),
            ],
            setsid=True,
        )
    finally:
        os.close(saying)
    heard = b""
    with open(said, "rb", buffering=0) as pipe:
        while piece := pipe.read(_PIECE):
            heard += piece
            if heard.endswith(READY):
                return
    text = heard.decode(errors="replace").strip().removeprefix("bough: ")
    raise DaemonError(f"The daemon did not start: {text or 'it said nothing'}")


def last(home: Path) -> list[str]:
    """How it was started last."""
    try:
        return (home / LAST).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def remember(home: Path, arguments: Sequence[str]) -> None:
    """So that one that starts by itself is as this one was; a full disk keeps nobody from it."""
    if last(home) == [*arguments]:
        return
    fresh = home / f"{LAST}.part"
    with suppress(OSError):
        fresh.write_text("".join(f"{word}\n" for word in arguments), encoding="utf-8")
        os.replace(fresh, home / LAST)


def pid_of(home: Path) -> int | None:
    """Of the daemon that serves this home, or did last."""
    from bough.server.daemon import read_notice

    notice = read_notice(home) if daemon_path(home).exists() else None
    return notice.pid if notice else None


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Of those who start a daemon at once, one does, and the others find it."""
    with open(os.open(home / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

"""Where a user's bough keeps what must survive: the store, the socket, the jobs' directories."""

from __future__ import annotations

import os
import stat
from pathlib import Path

#: Of the daemon that root runs for all users of a machine.
SYSTEM_HOME = Path("/var/lib/bough")
SYSTEM_SOCKET = Path("/run/bough/bough.sock")
#: A path to a Unix socket may have so many bytes; longer ones are refused by the kernel.
SOCKET_BYTES_MAX = 100


def home() -> Path:
    """$BOUGH_HOME, or bough's place in the state directory of the XDG rules; made if need be."""
    given = os.environ.get("BOUGH_HOME")
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(given) if given else Path(state) / "bough"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path.resolve()


def system_home() -> Path:
    """$BOUGH_HOME, or where a daemon for all users keeps its things; made if need be."""
    path = Path(os.environ.get("BOUGH_HOME") or SYSTEM_HOME)
    path.mkdir(mode=0o711, parents=True, exist_ok=True)
    return path.resolve()


def system_socket() -> Path | None:
    """Of the daemon for all users of this machine, unless BOUGH_HOME names another one."""
    if os.environ.get("BOUGH_HOME") or not SYSTEM_SOCKET.exists():
        return None
    return SYSTEM_SOCKET


def store_path(home: Path) -> Path:
    """The SQLite file."""
    return home / "bough.db"


def daemon_path(home: Path) -> Path:
    """Who serves this home: written when it listens."""
    return home / "daemon.json"


def job_dir(home: Path, id: str) -> Path:
    """What one job keeps between its attempts."""
    return home / "jobs" / id


def attempt_dir(home: Path, id: str, epoch: int) -> Path:
    """Everything of one attempt: what was to be run, its logs, how it ended."""
    return job_dir(home, id) / str(epoch)


def socket_path(home: Path) -> Path:
    """The daemon's socket; elsewhere, under a short name, when the home's own path is too long."""
    if home == SYSTEM_HOME:
        return SYSTEM_SOCKET
    path = home / "bough.sock"
    if len(os.fsencode(path)) <= SOCKET_BYTES_MAX:
        return path
    import hashlib
    import tempfile

    runtime = os.environ.get("XDG_RUNTIME_DIR")
    room = Path(runtime) if runtime else Path(tempfile.gettempdir()) / f"bough-{os.getuid()}"
    room.mkdir(mode=0o700, parents=True, exist_ok=True)
    # In a directory of everybody's, a link that leads to ours could lead elsewhere later.
    owner = room.stat() if runtime else room.lstat()
    if not stat.S_ISDIR(owner.st_mode) or owner.st_uid != os.getuid() or owner.st_mode & 0o077:
        raise PermissionError(0, "must belong to you alone", str(room))
    return room / f"{hashlib.sha256(os.fsencode(home)).hexdigest()[:16]}.sock"

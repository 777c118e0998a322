"""Whether the daemon and its files are in order: state directory, store, and who answers."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bough import __version__
from bough.cli.finding import Finding, fail, ok, warn
from bough.core.units import format_size
from bough.errors import BoughError

#: File systems of other machines: SQLite's log in shared memory does not work there.
REMOTE: Final = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "beegfs", "gpfs",
    "glusterfs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "orangefs",
}  # fmt: skip
#: Gone after the next start of the machine.
FLEETING: Final = {"tmpfs", "ramfs"}
ROOM_MIN, ROOM_ENOUGH = 64 << 20, 1 << 30
#: The first with the form of our upserts and a log that can be read while it is written.
SQLITE_MIN: Final = (3, 35, 0)
COMMITS: Final = 9
COMMIT_SECONDS_MAX: Final = 0.05
#: Files may not be so much younger than the present.
AHEAD_SECONDS: Final = 120.0


def look() -> Iterator[Finding]:
    """State directory, store, daemon."""
    from bough.home import home

    try:
        place = home()
    except OSError as error:
        todo = "set BOUGH_HOME to a directory of yours"
        yield fail("state", f"{error.filename}: {error.strerror}", todo)
        return
    yield from state(place)
    yield disk(place)
    yield sqlite(place)
    yield from daemon(place)


def state(place: Path) -> Iterator[Finding]:
    """It is there, ours, and ours alone; there is room in it."""
    owner = place.stat()
    if owner.st_uid != os.getuid():
        yield fail("state", f"{place} belongs to another account", "set BOUGH_HOME to your own")
        return
    if not os.access(place, os.W_OK | os.X_OK):
        yield fail("state", f"{place} may not be written", f"chmod u+rwx {place}")
        return
    if owner.st_mode & 0o022:
        yield warn("state", f"{place} may be written by others", f"chmod go-w {place}")
    else:
        yield ok("state", str(place))
    newest = max((p.stat().st_mtime for p in place.glob("bough.db*")), default=0.0)
    if newest > time.time() + AHEAD_SECONDS:
        yield warn("clock", "files here are from the future", "see whether the clock went back")
    free = shutil.disk_usage(place).free
    if free < ROOM_MIN:
        yield fail("room", f"{format_size(free)} free: nothing can be saved", "delete something")
    elif free < ROOM_ENOUGH:
        yield warn("room", f"{format_size(free)} free: logs may soon fill it", "make room")
    else:
        yield ok("room", f"{format_size(free)} free")


def disk(place: Path) -> Finding:
    """A disk of this machine, that survives its next start."""
    kind = file_system(place)
    if kind in REMOTE:
        todo = "set BOUGH_HOME to a directory on a disk of this machine"
        return fail("disk", f"{kind}: a disk of another machine can lose what was saved", todo)
    if kind in FLEETING:
        text = f"{kind}: jobs are forgotten when this machine is started anew"
        return warn("disk", text, "set BOUGH_HOME to a directory on a disk")
    return ok("disk", f"{kind or 'unknown kind'}, of this machine")


def file_system(path: Path, table: Path = Path("/proc/self/mountinfo")) -> str:
    """Kind of the file system that holds it; empty where nobody knows."""
    best, kind = -1, ""
    try:
        lines = table.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        words = line.split()
        if "-" not in words:
            continue
        point = words[4].replace(r"\040", " ")
        if path.is_relative_to(point) and len(point) >= best:
            best, kind = len(point), words[words.index("-") + 1]
    return kind


def sqlite(place: Path) -> Finding:
    """What a saved submission costs: one commit that is on the disk when it returns."""
    text = f"SQLite {sqlite3.sqlite_version}"
    if sqlite3.sqlite_version_info < SQLITE_MIN:
        return fail("store", text, "install a Python whose SQLite is 3.35 or newer")
    try:
        seconds = commit_seconds(place)
    except (sqlite3.Error, OSError) as error:
        return fail("store", f"{text}: {error}", f"see whether {place} can be written")
    text += f", a commit is on disk in {1000 * seconds:.1f} ms"
    if seconds > COMMIT_SECONDS_MAX:
        todo = "every submission waits for it: set BOUGH_HOME to a quicker disk"
        return warn("store", text, todo)
    return ok("store", text)


def commit_seconds(place: Path) -> float:
    """The usual one of a few, in a file of its own beside the store."""
    with (
        tempfile.TemporaryDirectory(prefix=".doctor-", dir=place) as room,
        contextlib.closing(sqlite3.connect(Path(room, "probe.db"))) as db,
    ):
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE t (data BLOB)")
        db.commit()
        times = []
        for _ in range(COMMITS):
            begun = time.perf_counter()
            db.execute("INSERT INTO t VALUES (zeroblob(1000))")
            db.commit()
            times.append(time.perf_counter() - begun)
    return statistics.median(times)


def daemon(place: Path) -> Iterator[Finding]:
    """Who answers, of which version, and what it has to say."""
    from bough.client import Client
    from bough.home import daemon_path

    server = os.environ.get("BOUGH_SERVER", "")
    try:
        with Client.connect(start=False) as client:
            client.patience_seconds = 0.0
            begun = time.perf_counter()
            status = client.status()
            took = time.perf_counter() - begun
    except BoughError as error:
        if server:
            yield fail("daemon", str(error), "see BOUGH_SERVER and BOUGH_TOKEN")
        elif daemon_path(place).exists():
            yield warn("daemon", "it was started, and does not answer", "bough up starts it again")
        else:
            yield ok("daemon", "none runs; bough up or bough run starts it")
        return
    text = f"{status.version}, process {status.pid}, answers in {1000 * took:.0f} ms"
    if status.version != __version__:
        todo = "bough down && bough up; jobs go on meanwhile"
        yield warn("daemon", f"{text}; this is {__version__}", todo)
    else:
        yield ok("daemon", text)
    for note in status.notes:
        yield warn("daemon", note)

"""The SQLite file under the store: who may open it, its form, and its errors in plain words."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from bough.errors import BoughError

#: "boug": what marks a file as ours (PRAGMA application_id).
APPLICATION_ID: Final = 0x626F7567
#: Another program may have the file open for a moment, say to look into it.
BUSY_SECONDS: Final = 5.0
#: The log in front of the file is cut back to this after it was emptied.
LOG_BYTES_MAX: Final = 64 << 20


class StoreError(BoughError):
    """The store cannot be used."""


class Rows(Protocol):
    """The answer to a question in SQL."""

    def __iter__(self) -> Iterator[Any]: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    @property
    def rowcount(self) -> int: ...


class Db(Protocol):
    """A connection, of SQLite or another database, that takes `?` for a value."""

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Rows: ...
    def executemany(self, query: str, rows: Iterable[Sequence[Any]], /) -> object: ...


class Closing(Protocol):
    """What can be closed."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closing)


class Migration(NamedTuple):
    """From one form of the tables to the next."""

    number: int
    name: str
    sql: str


def migrations(room: str = "") -> list[Migration]:
    """Those that come with this program, in order; `room` is a folder among SQLite's."""
    folder = resources.files(__package__) / "migrations"
    folder = folder / room if room else folder
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    found = [
        Migration(int(name[:4]), name, (folder / name).read_text(encoding="utf-8"))
        for name in files
    ]
    assert [each.number for each in found] == list(range(1, len(found) + 1)), files
    return found


# ------------------------------------------------------------------------------------- errors

#: Primary result codes of SQLite: what a user can make of them.
_SENTENCES: Final = {
    sqlite3.SQLITE_FULL: "there is no space left; nothing of this was saved",
    sqlite3.SQLITE_READONLY: "may not be written",
    sqlite3.SQLITE_BUSY: "another program is writing to it",
    sqlite3.SQLITE_LOCKED: "another program is writing to it",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is no database: it is damaged, or something else",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_IOERR: "the disk does not work as it should; nothing of this was saved",
    sqlite3.SQLITE_PERM: "may not be opened",
    sqlite3.SQLITE_CONSTRAINT: "what is to be saved is there already; nothing of it was saved",
    sqlite3.SQLITE_TOOBIG: "what is to be saved is too large",
}


class DamageError(sqlite3.DatabaseError):
    """The file does not hang together, found by looking and not by tripping over it."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def _primary(error: sqlite3.Error) -> int:
    """Its kind; the rest of the code says more than a user can use."""
    return (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR) & 0xFF


def is_damage(error: BaseException | None) -> bool:
    """Whether parts of the file are broken."""
    if isinstance(error, StoreError):
        error = error.__cause__
    return isinstance(error, sqlite3.Error) and _primary(error) == sqlite3.SQLITE_CORRUPT


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Errors of SQLite become one plain sentence about this file."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {_SENTENCES.get(_primary(error), error)}") from error


# ------------------------------------------------------------------------------------ opening


class Lock:
    """One daemon at a time; the lock falls with its process, however it ends."""

    def __init__(self, path: Path) -> None:
        name = path.with_name(f"{path.name}.lock")
        self._file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        pid, _, boot = os.pread(self._file, 100, 0).decode(errors="replace").strip().partition(" ")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            who = f"the daemon with process id {pid}" if pid else "another daemon"
            raise StoreError(f"{path}: {who} is using it") from None
        #: The machine went down while somebody used the file.
        self.after_power_cut = bool(pid) and boot != boot_id()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()} {boot_id()}\n".encode(), 0)

    def release(self) -> None:
        """Let another one have it."""
        os.ftruncate(self._file, 0)
        os.close(self._file)


def boot_id() -> str:
    """Another one after each start of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def create(path: Path) -> None:
    """A file that nobody else may read, as there are users' environments in it."""
    if not path.parent.is_dir():
        raise StoreError(f"{path}: there is no folder {path.parent}")
    readable = path if path.exists() else path.parent
    if not os.access(readable, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise StoreError(f"{path}: may not be written")
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def connect(path: Path, *, writes: bool) -> sqlite3.Connection:
    """A connection that leaves transactions to us and may go from thread to thread."""
    mode = "mode=rw" if writes else "mode=ro"
    if not writes and not os.access(path.parent, os.W_OK) and not _log(path).exists():
        mode = "immutable=1"  # on an archive nobody writes; SQLite would want to coordinate there
    return sqlite3.connect(
        f"{path.resolve().as_uri()}?{mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _log(path: Path) -> Path:
    """What SQLite has written, and not yet moved to its place."""
    return path.with_name(f"{path.name}-wal")


def tune(db: sqlite3.Connection, synchronous: str) -> None:
    """How a writer writes: readers do not wait for it, and FULL survives a power cut."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_MAX}")


def check_form(db: sqlite3.Connection, path: Path, known: int) -> int:
    """The file's version; refuses files that are not ours or of a later program."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    (mark,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if mark != APPLICATION_ID and (tables or version or mark):
        raise StoreError(f"{path}: is a database of another program")
    if version > known:
        raise StoreError(
            f"{path}: was written by a newer bough (version {version} of the store, "
            f"this one reads up to version {known}); use that one, or another BOUGH_HOME"
        )
    return version


def migrate(db: sqlite3.Connection, path: Path, steps: Sequence[Migration] | None = None) -> None:
    """Bring the file to the form of this program, each step whole or not at all."""
    steps = migrations() if steps is None else steps
    version = check_form(db, path, len(steps))
    for step in steps[version:]:
        mark = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {step.number};"
        try:
            db.executescript(f"BEGIN IMMEDIATE;\n{step.sql}\n{mark}\nCOMMIT;")
        except sqlite3.Error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


class Readers(Generic[C]):
    """Connections for reading, lent one at a time, so that reading waits for nobody."""

    #: Kept open when nobody reads.
    IDLE_MAX = 4

    def __init__(
        self, connect: Callable[[], C], is_good: Callable[[C], bool] = lambda _: True
    ) -> None:
        self._connect = connect
        self._is_good = is_good
        self._idle: list[C] = []
        self._closed = False

    def _one(self) -> C:
        """An idle one that is still good, or a new one."""
        while True:
            try:
                db = self._idle.pop()  # of a list, this is one step: no two threads get the same
            except IndexError:
                return self._connect()
            if self._is_good(db):
                return db
            db.close()

    @contextmanager
    def lent(self) -> Iterator[C]:
        """One for a single thread and a single query."""
        db = self._one()
        try:
            yield db
        except BaseException:
            db.close()
            raise
        if self._closed or len(self._idle) >= self.IDLE_MAX:
            db.close()
        else:
            self._idle.append(db)

    def close(self) -> None:
        """Those lent close when they are given back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

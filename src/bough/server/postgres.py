"""The daemon's memory on a PostgreSQL server: the same store, for a machine that many share.

One connection writes, and holds an advisory lock that keeps other daemons out: the server lets go
of it when the daemon dies. Others read beside it. With synchronous_commit, what `append` has
returned from survives whatever happens to the server, as long as its disk does.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bough.server import rows
from bough.server.address import Address, is_ambiguous, not_understood
from bough.server.database import Db, Migration, Readers, Rows, StoreError, migrations
from bough.server.lookup import Lookup, setting_of
from bough.server.writing import DoubtError, Writing

Connection = psycopg.Connection[Any]

#: The schema of our tables, and the number of the lock that only one daemon holds: "boug".
SCHEMA: Final = "bough"
LOCK: Final = 0x626F7567
#: How long it is waited for the server: for an answer at first, and to find out whether a step was
#: written when the connection broke over it.
CONNECT_SECONDS: Final = 5
DOUBT_SECONDS: Final = 5.0
#: How long one that is about to end is waited for.
LOCK_MILLISECONDS: Final = 1000
#: How many times a daemon took the store over: one that comes back sees whether it was replaced.
TENURE: Final = "tenure"

#: What a session begins with. A daemon that went away without a word is noticed in half a minute.
BEGIN: Final = (
    f"SET search_path = {SCHEMA}; SET synchronous_commit = on; SET tcp_keepalives_idle = 10; "
    "SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 4"
)
CREATE: Final = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}; "
    "CREATE TABLE IF NOT EXISTS versions (number bigint PRIMARY KEY, name text NOT NULL, "
    "at timestamptz NOT NULL DEFAULT now())"
)
HOLDER: Final = (
    "SELECT pid, application_name FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid = %s AND objsubid = 1 "
    "AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)

# ------------------------------------------------------------------------------------- errors

#: States of SQL, or their first two letters: what a user can make of them.
_SENTENCES: Final = {
    "22": "what is to be saved cannot be kept there",
    "23": "what is to be saved is there already; nothing of it was saved",
    "25006": "it can only be read; is it a standby?",
    "3D000": "there is no such database; `createdb` makes one",
    "3F000": "there is no store in it yet; `bough up` makes one",
    "42P01": "there is no store in it yet; `bough up` makes one",
    "42501": "this user may not do that there; the database should be its own",
    "53100": "there is no space left; nothing of this was saved",
    "53300": "the server has no connection left for us",
    "54": "what is to be saved is too large",
    "57P01": "the server is going down",
    "57P02": "the server has crashed",
    "57P03": "the server is not ready yet",
    "58": "the server's disk does not work as it should; nothing of this was saved",
    "XX001": "is damaged",
    "XX002": "is damaged: `reindexdb` makes its indexes anew",
}


def address_of(dsn: str) -> Address:
    """Complaints of libpq may quote a part of the password, and are not passed on."""
    if is_ambiguous(dsn):
        raise not_understood()
    try:
        return Address.of(dsn, conninfo_to_dict(dsn))
    except psycopg.Error:
        raise not_understood() from None


def sentence(error: psycopg.Error, address: Address) -> str:
    """One line without a password."""
    state = error.sqlstate or ""
    known = _SENTENCES.get(state) or _SENTENCES.get(state[:2])
    return f"{address.label}: {known or address.clean(str(error))}"


@contextmanager
def told(address: Address) -> Iterator[None]:
    """Errors of PostgreSQL become one plain sentence about this database."""
    try:
        yield
    except psycopg.Error as error:
        raise StoreError(sentence(error, address)) from error


# ---------------------------------------------------------------------------------- sessions


class Session:
    """A connection that is spoken to as SQLite is."""

    def __init__(self, connection: Connection, *, streams: bool = False) -> None:
        self._connection = connection
        #: Answers come in portions, within a transaction.
        self._streams = streams
        self._names = count()
        self._open: list[psycopg.ServerCursor[Any]] = []

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Rows:
        if not self._streams or not query.startswith("SELECT"):
            return self._connection.execute(_marked(query), _kept(values))
        cursor = self._connection.cursor(f"c{next(self._names)}")
        self._open.append(cursor)
        return cursor.execute(_marked(query), _kept(values))

    def executemany(self, query: str, rows: Iterable[Sequence[Any]], /) -> None:
        every = [_kept(row) for row in rows]
        if every:
            self._connection.cursor().executemany(_marked(query), every)

    def close(self) -> None:
        """No answer is read any further."""
        for cursor in self._open:
            with suppress(psycopg.Error):
                cursor.close()


@lru_cache(maxsize=256)
def _marked(query: str) -> str:
    return query.replace("?", "%s")


def _kept(values: Sequence[Any]) -> list[Any]:
    """PostgreSQL's text has no zero character; what is shown is in the bytes beside it."""
    return [
        value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
        for value in values
    ]


def connect(address: Address, *, writes: bool) -> Connection:
    """A session that leaves transactions to us."""
    name = f"bough {os.getpid()} on {socket.gethostname()}"[:60]
    usual = {"connect_timeout": CONNECT_SECONDS, "keepalives_idle": 10, "keepalives_interval": 5,
             "keepalives_count": 4, "tcp_user_timeout": 30_000}  # fmt: skip
    ours = {key: value for key, value in usual.items() if key not in address.given}
    db: Connection = psycopg.connect(
        make_conninfo(address.dsn, **ours, application_name=name, client_encoding="UTF8"),
        autocommit=True,
    )
    try:
        db.execute(BEGIN if writes else f"{BEGIN}; SET default_transaction_read_only = on")
        db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    except BaseException:
        db.close()
        raise
    return db


def is_good(db: Connection) -> bool:
    """A connection at rest has nothing to say, unless the server is gone or going."""
    if db.closed:
        return False
    poll = select.poll()
    poll.register(db.fileno(), select.POLLIN)
    return not poll.poll(0)


# -------------------------------------------------------------------------------------- form


def check_form(db: Connection, address: Address, known: int) -> int:
    """The version of the tables; refuses those of a later program."""
    (version,) = db.execute("SELECT coalesce(max(number), 0) FROM versions").fetchone() or (0,)
    if version > known:
        raise StoreError(
            f"{address.label}: was written by a newer bough (version {version} of the store, "
            f"this one reads up to version {known}); use that one, or another database"
        )
    return int(version)


def migrate(db: Connection, address: Address, steps: Sequence[Migration] | None = None) -> None:
    """Bring the tables to the form of this program, each step whole or not at all."""
    steps = migrations("postgres") if steps is None else steps
    db.execute(CREATE)
    version = check_form(db, address, len(steps))
    for step in steps[version:]:
        with db.transaction():
            db.execute(step.sql)
            add = "INSERT INTO versions (number, name) VALUES (%s, %s)"
            db.execute(add, (step.number, step.name))


# ------------------------------------------------------------------------------------- stores


class PostgresReader(Lookup):
    """A store on a server that can only be read."""

    def __init__(self, dsn: str) -> None:
        self._address = address_of(dsn)
        self.where = self._address.label
        self._readers = Readers(lambda: connect(self._address, writes=False), is_good)
        known = len(migrations("postgres"))
        with told(self._address), self._readers.lent() as db:
            if check_form(db, self._address, known) < known:
                raise StoreError(f"{self.where}: is of an older bough, which `bough up` will renew")

    def close(self) -> None:
        """Let go of the server."""
        self._readers.close()

    @contextmanager
    def _lent(self, *, whole: bool = False) -> Iterator[Db]:
        with told(self._address), self._readers.lent() as db:
            if not whole:
                yield Session(db)
                return
            with db.transaction():
                session = Session(db, streams=True)
                try:
                    yield session
                finally:
                    session.close()


class PostgresStore(Writing, PostgresReader):
    """Everything that must be there after a restart. Whoever appends is one thread."""

    def __init__(self, dsn: str) -> None:
        Writing.__init__(self)
        self.name = f"schema {SCHEMA}"
        self._busy = threading.RLock()
        self._writer: Connection | None = None
        self._tenure = self._backend = 0
        address = address_of(dsn)
        with told(address):
            writer = self._locked(address)
            try:
                migrate(writer, address)
                PostgresReader.__init__(self, dsn)
                self._begin(writer)
            except BaseException:
                writer.close()
                raise

    @classmethod
    def open(cls, dsn: str) -> PostgresStore:
        """Make the tables, or bring them to the form of this program; are they whole?"""
        return cls(dsn)

    def close(self) -> None:
        """Another daemon may have the store from now on. Nothing is lost without it."""
        super().close()
        if self._writer is not None:
            self._writer.close()

    # -------------------------------------------------------------------- the connection

    def _locked(self, address: Address) -> Connection:
        """A connection that keeps other daemons out."""
        db = connect(address, writes=True)
        try:
            pid, name = db.execute(HOLDER, (LOCK,)).fetchone() or (0, "")
            if pid and pid == self._backend:
                # Our own connection, of whose end the server has not heard.
                db.execute("SELECT pg_terminate_backend(%s)", (pid,))
            # One that was killed a moment ago is about to let go.
            db.execute(f"SET lock_timeout = {LOCK_MILLISECONDS}")
            db.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
            db.execute("SET lock_timeout = DEFAULT")
        except psycopg.errors.LockNotAvailable:
            db.close()
            who = name.replace("bough ", "the daemon with process id ", 1) or "another daemon"
            raise StoreError(f"{address.label}: {who} is using it") from None
        except BaseException:
            db.close()
            raise
        return db

    def _begin(self, db: Connection) -> None:
        """Find the end of the journal, once the store is ours; again, once it is ours again."""
        with db.transaction():
            session = Session(db, streams=True)
            last = setting_of(session, TENURE, int) or 0
            if self._tenure and last != self._tenure:
                raise StoreError(
                    f"{self.where}: another daemon has used it since; this one has to be restarted"
                )
            if not self._tenure:
                session.execute(rows.SET_SETTING, (TENURE, rows.pack(last + 1)))
            self._find_end(session)
            session.close()
        if not self._tenure and db.execute("SHOW fsync").fetchone() == ("off",):
            self.notes.append("The server runs with fsync off: a power cut may destroy the store.")
        self._tenure, self._backend = self._tenure or last + 1, db.info.backend_pid
        self._writer = db

    def _ready(self) -> Connection:
        """The connection that writes, made anew when it broke."""
        with self._busy:
            if self._writer is not None and is_good(self._writer):
                return self._writer
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            db = self._locked(self._address)
            try:
                self._begin(db)
            except BaseException:
                db.close()
                raise
            return db

    @contextmanager
    def _lent(self, *, whole: bool = False) -> Iterator[Db]:
        # What was written last is known for certain before anything is read.
        with told(self._address):
            if self._writer is None:
                self._ready()
        with super()._lent(whole=whole) as db:
            yield db

    # ------------------------------------------------------------------------- writing

    @contextmanager
    def _writing(self) -> Iterator[Db]:
        """All of it or nothing."""
        with self._busy, told(self._address):
            db = self._ready()
            try:
                with db.transaction():
                    yield Session(db)
            except psycopg.Error as error:
                if not db.closed:
                    raise
                self._writer = None
                raise DoubtError(sentence(error, self._address)) from error

    def _prepare(self) -> None:
        with told(self._address):
            self._ready()

    def _is_written(self, step: int) -> bool:
        """Whether a step got there over whose writing the connection broke."""
        end = time.monotonic() + DOUBT_SECONDS
        while True:
            try:
                self._prepare()
            except StoreError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
            else:
                return self.step == step

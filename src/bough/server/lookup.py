"""What can be looked up in any store: the same questions in SQL, whatever database answers them.

Only what SQLite and PostgreSQL both understand is used; `?` stands for a value. Names that one of
them keeps for itself are quoted.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar
from zlib import crc32

import msgspec

from bough.core.model import Command, Event, JobSpec
from bough.errors import InputError
from bough.records import JobRecord, Recipe, State
from bough.server import rows, soundness
from bough.server.database import Db, StoreError
from bough.server.rows import Account, Conditions, Entry, Step, Token

T = TypeVar("T")

#: Entries read at a time.
CHUNK: Final = 1000

GET_ENTRIES = "SELECT seq, at, step, what, reason FROM journal WHERE seq > ? ORDER BY seq LIMIT ?"
GET_HISTORY = (
    "SELECT seq, at, step, what, reason FROM journal WHERE job = ? AND seq > ? ORDER BY seq LIMIT ?"
)
GET_SNAPSHOTS = "SELECT seq, data, crc FROM snapshots ORDER BY seq DESC"
GET_CONDITIONS = 'SELECT seq, what FROM conditions ORDER BY "row"'
GET_BETWEEN = (
    "SELECT record, account FROM jobs LEFT JOIN accounts USING (id) "
    'WHERE (ended IS NULL OR ended > ?) AND submitted < ? ORDER BY "row"'
)
#: Jobs of arrays whose names begin so, and of how many it is looked whose they are.
ARRAYS = (
    "SELECT number, record FROM jobs WHERE id <> CAST(number AS TEXT) AND substr(name, 1, ?) = ?"
)
ARRAY_LOOKS = 1000
GET_TOKENS = 'SELECT name, "user", scopes, created, expires FROM tokens'


class Lookup(ABC):
    """A store that can be asked."""

    #: What errors begin with.
    where: str

    @abstractmethod
    def _lent(self, *, whole: bool = False) -> AbstractContextManager[Db]:
        """A connection for one question; `whole`: for several that must see the same moment."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""

    def _found(self, query: str, *values: object) -> list[Any]:
        """All rows."""
        with self._lent() as db:
            return db.execute(query, values).fetchall()

    def _value(self, query: str, *values: object) -> Any:
        """The one value that is asked for, if there is one."""
        with self._lent() as db:
            row = db.execute(query, values).fetchone()
        return None if row is None else row[0]

    # ------------------------------------------------------------------------- the journal

    def events(self, after: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Entries after one of them, events and commands alike."""
        return self._entries(GET_ENTRIES, (), after, limit)

    def history(self, job: str, after: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Entries about one job."""
        return self._entries(GET_HISTORY, (job,), after, limit)

    def _entries(
        self, query: str, about: tuple[str, ...], after: int, limit: int | None
    ) -> Iterator[Entry]:
        """In portions, so that a slow reader holds no connection."""
        while limit is None or limit > 0:
            count = CHUNK if limit is None else min(limit, CHUNK)
            found = self._found(query, *about, after, count)
            for seq, at, step, what, reason in found:
                why = None if reason is None else rows.read_reason(reason)
                yield Entry(seq, at, step, self._said(seq, what), why)
            if len(found) < count:
                return
            after = found[-1][0]
            limit = None if limit is None else limit - count

    def snapshot(self) -> tuple[int, bytes] | None:
        """The last one that is whole, and the entry after which it was taken."""
        with self._lent() as db:
            return whole_snapshot(db)

    def oldest_snapshot(self) -> tuple[int, bytes] | None:
        """The one from which a journal that was pruned can be replayed."""
        found = self._found(GET_SNAPSHOTS)
        return next(((seq, data) for seq, data, crc in found[::-1] if crc32(data) == crc), None)

    def tail(self) -> Iterator[Step]:
        """What a scheduler with the state of that snapshot has yet to be told, step by step."""
        last = self.snapshot()
        return self.steps(last[0] if last else 0)

    def steps(self, after: int = 0) -> Iterator[Step]:
        """Steps after the one that ended with this entry."""
        with self._lent(whole=True) as db:
            for _, entries, _ in soundness.examine(db, after, None):
                if entries:
                    yield self._step_of(entries)

    def _step_of(self, entries: list[soundness.RawEntry]) -> Step:
        said = [self._said(entry[0], entry[3]) for entry in entries]
        events = tuple(what for what in said if isinstance(what, Event))
        commands = tuple(what for what in said if isinstance(what, Command))
        return Step(entries[0][1], entries[0][2], entries[-1][0], events, commands)

    def _said(self, seq: int, raw: bytes) -> Event | Command:
        try:
            return rows.read_what(raw)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise StoreError(f"{self.where}: entry {seq} cannot be understood: {error}") from None

    def conditions(self) -> list[tuple[int, Conditions]]:
        """After which entries decisions began to be made by what, oldest first."""
        return [(seq, rows.read_conditions(raw)) for seq, raw in self._found(GET_CONDITIONS)]

    def check(self) -> list[str]:
        """Everything that is wrong, one sentence each."""
        begins_after = self.begins_after()
        with self._lent(whole=True) as db:
            return soundness.check(db, begins_after)

    def dropped(self) -> int:
        """Entries that were put aside because they could not be read."""
        found: int = self._value("SELECT count(*) FROM dropped")
        return found

    def begins_after(self) -> int:
        """The entry before the first of the journal: 0, unless it was pruned."""
        return self.setting(rows.BEGINS_AFTER, int) or 0

    # ------------------------------------------------------------------------------- jobs

    def jobs(
        self,
        *,
        states: Iterable[State] | None = None,
        user: str | None = None,
        queue: str | None = None,
        name: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[JobRecord]:
        """The latest submitted first; `before` is the last job of the page before."""
        top = None
        if before is not None:
            top = self._value('SELECT "row" FROM jobs WHERE id = ?', before)
            if top is None:
                raise InputError(f"no job is called {before}", field="before")
        if name is None:
            query, values = listing(states, user, queue, top, limit)
        else:
            query, values = named(name, states, user, queue, top, limit)
        return [rows.read_record(raw) for (raw,) in self._found(query, *values)]

    def live(self) -> list[str]:
        """Every job that is not over, in order of submission."""
        query = f'SELECT id FROM jobs WHERE {rows.LIVE} ORDER BY "row"'
        return [id for (id,) in self._found(query)]

    def job(self, id: str) -> JobRecord | None:
        """One job as it is shown."""
        raw = self._value("SELECT record FROM jobs WHERE id = ?", id)
        return None if raw is None else rows.read_record(raw)

    def account(self, id: str) -> Account | None:
        """What is kept of a job beside what is shown."""
        raw = self._value("SELECT account FROM accounts WHERE id = ?", id)
        return None if raw is None else rows.read_account(raw)

    def members(self, number: int) -> list[str]:
        """Jobs submitted under a number: one, or all of an array."""
        query = 'SELECT id FROM jobs WHERE number = ? ORDER BY "row"'
        return [id for (id,) in self._found(query, number)]

    def array(self, name: str, user: str | None) -> int | None:
        """The latest array of that name, whose jobs have names that begin with it."""
        text, values = ARRAYS, [len(name), name, *([] if user is None else [user])]
        text += "" if user is None else ' AND "user" = ?'
        found = self._found(f'{text} ORDER BY "row" DESC LIMIT ?', *values, ARRAY_LOOKS)
        jobs = ((number, rows.read_record(record)) for number, record in found)
        return next((number for number, job in jobs if job.array_of == name), None)

    def between(self, since: float, until: float) -> Iterator[tuple[JobRecord, Account | None]]:
        """Jobs that were there at some moment of that time, with what is kept of them."""
        with self._lent(whole=True) as db:
            for record, account in db.execute(GET_BETWEEN, (since, until)):
                kept = None if account is None else rows.read_account(account)
                yield rows.read_record(record), kept

    def counts(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        return dict(self._found("SELECT state, count(*) FROM jobs GROUP BY state"))

    def used(self) -> dict[str, float]:
        """Device-seconds of each user."""
        return dict(self._found('SELECT "user", sum(device_seconds) FROM jobs GROUP BY "user"'))

    def spec(self, id: str) -> JobSpec | None:
        """What was asked for."""
        raw = self._value("SELECT spec FROM recipes WHERE id = ?", id)
        return None if raw is None else rows.read_spec(raw)

    def recipe(self, id: str) -> Recipe | None:
        """How it is run."""
        raw = self._value("SELECT recipe FROM recipes WHERE id = ?", id)
        return None if raw is None else rows.read_recipe(raw)

    def uid(self, id: str) -> int | None:
        """Whom it runs as; -1: as the daemon itself."""
        found: int | None = self._value("SELECT uid FROM recipes WHERE id = ?", id)
        return found

    def by_key(self, user: str, key: str) -> str | None:
        """The job that this user submitted with this key."""
        query = 'SELECT id FROM keys WHERE "user" = ? AND key = ?'
        found: str | None = self._value(query, user, key)
        return found

    # ---------------------------------------------------------------- settings and tokens

    def setting(self, name: str, kind: type[T]) -> T | None:
        """What was set, if it was."""
        with self._lent() as db:
            return setting_of(db, name, kind)

    def tokens(self) -> list[Token]:
        """All there are, expired ones among them."""
        return [_token(*row) for row in self._found(f"{GET_TOKENS} ORDER BY name")]

    def find_token(self, secret: str, now: float) -> Token | None:
        """Whose it is, if it is still good."""
        found = self._found(f"{GET_TOKENS} WHERE hash = ?", digest(secret))
        token = _token(*found[0]) if found else None
        expired = token is not None and token.expires is not None and token.expires <= now
        return None if expired else token


def digest(secret: str) -> bytes:
    """What is kept of a token: long random text needs no salt."""
    return hashlib.sha256(secret.encode()).digest()


def setting_of(db: Db, name: str, kind: type[T]) -> T | None:
    """What was set under this name."""
    row = db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
    return None if row is None else msgspec.json.decode(row[0], type=kind)


def whole_snapshot(db: Db) -> tuple[int, bytes] | None:
    """The last one that is as it was written."""
    for seq, data, crc in db.execute(GET_SNAPSHOTS):
        if crc32(data) == crc:
            return seq, data
    return None


def listing(
    states: Iterable[State] | None,
    user: str | None,
    queue: str | None,
    top: int | None,
    limit: int,
) -> tuple[str, list[object]]:
    """One query for each state, each answered in order by an index, and the first of them all."""
    asked: dict[str, object] = {'"user" = ?': user, "queue = ?": queue, '"row" < ?': top}
    where = [(term, value) for term, value in asked.items() if value is not None]
    wanted = [None] if states is None and user is None and queue is None else _all(states)
    parts, values = [], list[object]()
    for state in wanted:
        terms = where if state is None else [("state = ?", state), *where]
        text = " AND ".join(term for term, _ in terms) or "TRUE"
        first = f'SELECT "row" FROM jobs WHERE {text} ORDER BY "row" DESC LIMIT ?'
        parts.append(f"SELECT * FROM ({first}) AS part")
        values += [*(value for _, value in terms), limit]
    found = " UNION ALL ".join(parts) or "SELECT 0 WHERE FALSE"
    return (
        f'SELECT record FROM jobs WHERE "row" IN ({found}) ORDER BY "row" DESC LIMIT ?',
        [*values, limit],
    )


def named(
    name: str,
    states: Iterable[State] | None,
    user: str | None,
    queue: str | None,
    top: int | None,
    limit: int,
) -> tuple[str, list[object]]:
    """Jobs of a name, which are few."""
    asked: dict[str, object] = {'"user" = ?': user, "queue = ?": queue, '"row" < ?': top}
    terms = {"name = ?": name} | {term: v for term, v in asked.items() if v is not None}
    wanted = None if states is None else _all(states)
    where = " AND ".join(terms)
    if wanted is not None:
        where += f" AND state IN ({', '.join('?' * len(wanted))})" if wanted else " AND FALSE"
    values = [*terms.values(), *(wanted or ()), limit]
    return f'SELECT record FROM jobs WHERE {where} ORDER BY "row" DESC LIMIT ?', values


def _all(states: Iterable[State] | None) -> list[State]:
    """Each of them once."""
    from typing import get_args

    return list(dict.fromkeys(get_args(State) if states is None else states))


def _token(name: str, user: str, scopes: bytes, created: float, expires: float | None) -> Token:
    read = rows.read_scopes(scopes)
    return Token(name=name, user=user, scopes=read, created=created, expires=expires)

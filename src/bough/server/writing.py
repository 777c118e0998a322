"""Writing a step whole before it is carried out: the same for every database under the store."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import chain
from typing import Final
from zlib import crc32

from bough.core.model import Command, Event
from bough.core.reason import Reason
from bough.records import JobRecord
from bough.server import rows, soundness
from bough.server.database import Db, StoreError
from bough.server.lookup import Lookup, digest, setting_of, whole_snapshot
from bough.server.rows import Accepted, Batch, Conditions, Token

#: Snapshots kept: when the last one turns out to be damaged, there is the one before it.
SNAPSHOTS_KEPT: Final = 2

ADD_ENTRY = "INSERT INTO journal (seq, step, at, job, what, reason) VALUES (?, ?, ?, ?, ?, ?)"
ADD_STEP = "INSERT INTO steps (step, at, seq, entries, crc) VALUES (?, ?, ?, ?, ?)"
ADD_RECIPE = "INSERT INTO recipes (id, uid, spec, recipe) VALUES (?, ?, ?, ?)"
ADD_KEY = 'INSERT INTO keys ("user", key, id) VALUES (?, ?, ?)'
SET_JOB = (
    'INSERT INTO jobs (id, number, "user", queue, state, record, name, submitted, ended, '
    "device_seconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET queue = excluded.queue, state = excluded.state, "
    "record = excluded.record, ended = excluded.ended, device_seconds = excluded.device_seconds"
)
SET_ACCOUNT = (
    "INSERT INTO accounts (id, account) VALUES (?, ?) "
    "ON CONFLICT (id) DO UPDATE SET account = excluded.account"
)
SET_SNAPSHOT = (
    "INSERT INTO snapshots (seq, data, crc) VALUES (?, ?, ?) "
    "ON CONFLICT (seq) DO UPDATE SET data = excluded.data, crc = excluded.crc"
)
DROP_SNAPSHOTS = (
    "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)"
)
ADD_TOKEN = (
    'INSERT INTO tokens (name, hash, "user", scopes, created, expires) VALUES (?, ?, ?, ?, ?, ?)'
)
#: The last entry that may be pruned: none that a kept snapshot needs, none of a younger step.
LAST_TO_PRUNE = (
    "SELECT max(seq) FROM steps WHERE seq <= (SELECT min(seq) FROM snapshots) "
    "AND step < (SELECT coalesce(min(step), 9000000000000000000) FROM steps WHERE at >= ?)"
)


class DoubtError(StoreError):
    """The connection broke while a step was written: it is there, or nothing of it is."""


class Writing(Lookup):
    """A store that can also be written. Whoever appends is one thread."""

    #: What its tables are part of, in a few words.
    name: str

    def __init__(self) -> None:
        #: What a user should know about the state the store was found in.
        self.notes: list[str] = []
        #: The last entry and the last step written, and the last number given out.
        self.seq = self.step = self._number = 0

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Db]:
        """A transaction: all of it or nothing."""

    def _prepare(self) -> None:
        """Before a step is numbered: see that what was written last is known."""

    def _is_written(self, step: int) -> bool:
        """Whether a step got there that was in doubt."""
        return False

    def _find_end(self, db: Db) -> None:
        """Where the journal ends; what follows its last whole step is put aside.

        It belongs into one transaction.
        """
        last = whole_snapshot(db)
        (snapshots,) = db.execute("SELECT count(*) FROM snapshots").fetchone()
        if snapshots and (last is None or last[0] != _one(db, "SELECT max(seq) FROM snapshots")):
            self.notes.append("The last snapshot is damaged; an older one was taken.")
        if last is not None:
            self.seq = last[0]
            self.step = _one(db, "SELECT max(step) FROM steps WHERE seq <= ?", self.seq)
        else:
            self.seq = setting_of(db, rows.BEGINS_AFTER, int) or 0
            self.step = _one(db, "SELECT min(step) - 1 FROM steps WHERE seq > ?", self.seq)
        for step, entries, problem in soundness.examine(db, self.seq, self.step):
            if problem:
                self._put_aside(db, step, problem)
                break
            self.step, self.seq = step, entries[-1][0]
        left_out = setting_of(db, rows.NUMBERS_AFTER, int) or 0
        self._number = max(self._number, _one(db, "SELECT max(number) FROM jobs"), left_out)

    def _put_aside(self, db: Db, step: int, problem: str) -> None:
        """Nothing after a step that is not whole can be believed."""
        entries, steps = soundness.put_aside(db, self.seq, f"step {step} {problem}")
        self.notes.append(
            f"The journal is damaged from step {step} on, which {problem}: the {entries} entries "
            f"of its last {steps} steps, from entry {self.seq + 1} on, were put aside "
            f"(table dropped of {self.name})."
        )

    # --------------------------------------------------------------------------- one step

    def append(self, batch: Batch) -> int:
        """Write a step with all that follows from it; the number of the last entry."""
        self._prepare()
        step = batch.step or self.step + 1
        assert step == self.step + 1, f"step {step} after step {self.step}"
        said: Iterator[tuple[Event | Command, Reason | None]] = chain(
            ((event, None) for event in batch.events), batch.commands
        )
        entries = [
            (seq, step, batch.at, getattr(what, "id", None), rows.pack(what),
             None if reason is None else rows.pack(reason))
            for seq, (what, reason) in enumerate(said, self.seq + 1)
        ]  # fmt: skip
        recipes = [_recipe_row(each) for each in batch.submissions]
        keys = [(each.spec.user, each.key, each.id) for each in batch.submissions if each.key]
        jobs = [_job_row(record) for record in batch.records]
        accounts = [(each.id, rows.pack(each)) for each in batch.accounts]
        try:
            with self._writing() as db:
                if entries:
                    crc = soundness.crc_of([entry[4:] for entry in entries])
                    db.executemany(ADD_ENTRY, entries)
                    db.execute(ADD_STEP, (step, batch.at, entries[-1][0], len(entries), crc))
                db.executemany(ADD_RECIPE, recipes)
                db.executemany(ADD_KEY, keys)
                db.executemany(SET_JOB, jobs)
                db.executemany(SET_ACCOUNT, accounts)
        except DoubtError:
            if not entries or not self._is_written(step):
                raise
        if entries:
            self.seq, self.step = entries[-1][0], step
        self._number = max([self._number, *(rows.number_of(each.id) for each in batch.records)])
        return self.seq

    def next_number(self) -> int:
        """For the next submission. One that was not written is given out again after a restart."""
        self._number += 1
        return self._number

    def save_snapshot(self, seq: int, data: bytes) -> None:
        """The scheduler's state after the step that ended with this entry."""
        with self._writing() as db:
            db.execute(SET_SNAPSHOT, (seq, data, crc32(data)))
            db.execute(DROP_SNAPSHOTS, (SNAPSHOTS_KEPT,))

    def set_conditions(self, conditions: Conditions) -> None:
        """From now on decisions are made by these; told anew at each start, kept when changed."""
        known = self.conditions()
        if known and known[-1][1] == conditions:
            return
        with self._writing() as db:
            add = "INSERT INTO conditions (seq, what) VALUES (?, ?)"
            db.execute(add, (self.seq, rows.pack(conditions)))

    def prune(self, before: float) -> int:
        """Forget entries of steps before a moment that no snapshot needs; jobs are kept.

        The journal then replays from its oldest snapshot on; what is lost are the decisions about
        jobs of that time. Returns how many entries went.
        """
        with self._writing() as db:
            last = _one(db, LAST_TO_PRUNE, before)
            gone = db.execute("DELETE FROM journal WHERE seq <= ?", (last,)).rowcount
            if gone:
                db.execute("DELETE FROM steps WHERE seq < ?", (last,))  # one remains to count on
                db.execute(rows.SET_SETTING, (rows.BEGINS_AFTER, rows.pack(last)))
        return gone

    # ---------------------------------------------------------------- settings and tokens

    def set_setting(self, name: str, value: object) -> None:
        """Anything that is JSON, by a name."""
        with self._writing() as db:
            db.execute(rows.SET_SETTING, (name, rows.pack(value)))

    def add_token(self, token: Token, secret: str) -> None:
        """Let in who says this. The secret itself is not kept."""
        if any(token.name == other.name for other in self.tokens()):
            raise StoreError(f"there is already a token called {token.name}")
        scopes = rows.pack(token.scopes)
        told = (token.name, digest(secret), token.user, scopes, token.created, token.expires)
        with self._writing() as db:
            db.execute(ADD_TOKEN, told)

    def revoke_token(self, name: str) -> bool:
        """Whether there was one."""
        with self._writing() as db:
            return db.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount > 0


def _one(db: Db, query: str, *values: object) -> int:
    """A single number; 0 for none."""
    (found,) = db.execute(query, values).fetchone()
    return found or 0


def _recipe_row(each: Accepted) -> tuple[str, int, bytes, bytes]:
    return each.id, each.uid, rows.pack(each.spec), rows.pack(each.recipe)


def _job_row(record: JobRecord) -> tuple[str | int | float | bytes | None, ...]:
    """In the order of SET_JOB."""
    return (
        record.id, rows.number_of(record.id), record.user, record.queue, record.state,
        rows.pack(record), record.name, record.submitted, record.ended, record.device_seconds,
    )  # fmt: skip

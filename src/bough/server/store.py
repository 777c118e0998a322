"""The daemon's memory: one SQLite file in which a step is written whole before it is carried out.

One connection writes, under a lock that keeps other daemons out; others read beside it and wait
for nobody. With synchronous FULL, what `append` has returned from survives a power cut.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bough.server import database
from bough.server.database import DamageError, Db, Lock, StoreError, told
from bough.server.reading import StoreReader
from bough.server.salvage import is_sound, salvage
from bough.server.writing import Writing


class Store(Writing, StoreReader):
    """Everything that must be there after a restart. Whoever appends is one thread."""

    def __init__(self, path: Path, writer: sqlite3.Connection, lock: Lock) -> None:
        Writing.__init__(self)
        StoreReader.__init__(self, path)
        self.name = path.name
        self._writer = writer
        self._lock: Lock | None = lock
        self._busy = threading.Lock()

    @classmethod
    def open(cls, path: Path, *, synchronous: str = "FULL") -> Store:
        """Make the file, or bring it to the form of this program and look whether it is whole."""
        database.create(path)
        lock = Lock(path)
        try:
            with told(path):
                try:
                    return cls._begin(path, lock, synchronous)
                except (sqlite3.Error, StoreError) as error:
                    if not database.is_damage(error):
                        raise
                note = salvage(path)
                store = cls._begin(path, lock, synchronous)
                store.notes.insert(0, note)
                return store
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _begin(cls, path: Path, lock: Lock, synchronous: str) -> Store:
        """Once the file is ours."""
        writer = database.connect(path, writes=True)
        try:
            database.migrate(writer, path)
            database.tune(writer, synchronous)
            if lock.after_power_cut and not is_sound(writer):
                raise DamageError
            store = cls(path, writer, lock)
        except BaseException:
            writer.close()
            raise
        try:
            with store._writing() as db:
                store._find_end(db)
        except BaseException:
            store._let_go()
            raise
        return store

    def close(self) -> None:
        """Another daemon may have the file from now on. Nothing is lost without it."""
        self._let_go()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _let_go(self) -> None:
        """Of the file, not of the lock."""
        super().close()
        self._writer.close()

    @contextmanager
    def _writing(self) -> Iterator[Db]:
        """All of it or nothing."""
        db = self._writer
        with self._busy, told(self.path):
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                raise

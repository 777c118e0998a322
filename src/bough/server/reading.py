"""Looking into the SQLite file, by the daemon's threads and by onlookers beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bough.server import database
from bough.server.database import Db, Readers, StoreError, told
from bough.server.lookup import Lookup


class StoreReader(Lookup):
    """A store that can only be read."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise StoreError(f"{path}: there is no such file")
        self.path = path
        self.where = str(path)
        self._readers = Readers(partial(database.connect, path, writes=False))
        with told(path), self._readers.lent() as db:
            known = len(database.migrations())
            if database.check_form(db, path, known) < known:
                raise StoreError(f"{path}: is of an older bough, which `bough up` will renew")

    def close(self) -> None:
        """Let go of the file."""
        self._readers.close()

    @contextmanager
    def _lent(self, *, whole: bool = False) -> Iterator[Db]:
        with told(self.path), self._readers.lent() as db:
            if whole:
                db.execute("BEGIN")
            yield db
            if whole:
                db.execute("COMMIT")

    def check(self) -> list[str]:
        """Everything that is wrong, one sentence each."""
        told = [said for (said,) in self._found("PRAGMA quick_check(9)") if said != "ok"]
        return [f"The file is damaged: {each}." for each in told] + super().check()

"""Which store is meant: a file of SQLite, or a database on a PostgreSQL server."""

from __future__ import annotations

import os
from pathlib import Path

from bough.errors import InputError
from bough.home import store_path
from bough.server.anystore import AnyStore
from bough.server.lookup import Lookup

#: The variable that says where the store is when nothing else does.
VARIABLE = "BOUGH_STORE"
SCHEMES = ("postgresql://", "postgres://")


def open_store(where: str | None, home: Path) -> AnyStore:
    """To write in, for a daemon; what it was told is kept, so that the next one finds the same."""
    from bough.server.store import Store

    place = chosen(where, home)
    if isinstance(place, Path):
        store: AnyStore = Store.open(place)
    else:
        _postgres_is_there()
        from bough.server.postgres import PostgresStore

        store = PostgresStore.open(place)
    try:
        _remember(place, home)
    except BaseException:
        store.close()
        raise
    return store


def open_reader(where: str | None, home: Path) -> Lookup:
    """To look into, beside a daemon or without one."""
    from bough.server.reading import StoreReader

    place = chosen(where, home)
    if isinstance(place, Path):
        if not place.exists():
            raise InputError("there is no store yet; `bough up` makes one", file=str(place))
        return StoreReader(place)
    _postgres_is_there()
    from bough.server.postgres import PostgresReader

    return PostgresReader(place)


def chosen(where: str | None, home: Path) -> Path | str:
    """What is asked for, else the variable, else the last one of this home, else its own file."""
    kept = _note(home)
    given = where or os.environ.get(VARIABLE) or (kept.read_text() if kept.exists() else "")
    if given.startswith(SCHEMES):
        return given
    if "://" in given:
        hint = "a path, or postgresql://user@host/database"
        raise InputError("a store of this kind is not known", field="store", hint=hint)
    return Path(given).expanduser().absolute() if given else store_path(home)


def label(where: str | None, home: Path) -> str:
    """The store as it may be shown to anybody: without a password."""
    place = chosen(where, home)
    if isinstance(place, Path):
        return str(place)
    _postgres_is_there()
    from bough.server.postgres import address_of

    return address_of(place).label


def _note(home: Path) -> Path:
    """Where a home's store is, when it is not the file that usually is."""
    return home / "store"


def _remember(place: Path | str, home: Path) -> None:
    """For its owner alone, as there may be a password in it."""
    note = _note(home)
    if place == store_path(home):
        note.unlink(missing_ok=True)
    elif not note.exists() or note.read_text() != str(place):
        fresh = note.with_suffix(".part")
        fresh.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(str(place))
        os.replace(fresh, note)


def _postgres_is_there() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        hint = "install it with: pip install 'bough[postgres]'"
        raise InputError("a store on PostgreSQL needs psycopg", field="store", hint=hint) from None

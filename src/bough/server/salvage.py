"""A damaged file: what can still be read of it moves to a new one, and it is said what cannot."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bough.server import database, rows

#: Every table that holds something of its own, the dearest first.
TABLES: Final = (
    "recipes", "jobs", "accounts", "keys", "steps", "journal", "snapshots", "conditions",
    "settings", "tokens", "dropped",
)  # fmt: skip

#: A longer file than this is none of ours; zeros take no room on the disk.
LENGTH_MAX: Final = 1 << 40

#: Numbers left out for jobs that may have been lost: what they left behind is not to be found
#: under the number of another job.
NUMBERS_LEFT_OUT: Final = 1000
LAST_NUMBER = (
    "SELECT max(CAST(id AS INTEGER)) FROM "
    "(SELECT id FROM jobs UNION ALL SELECT id FROM recipes UNION ALL SELECT id FROM keys)"
)

Row = tuple[object, ...]


def is_sound(db: sqlite3.Connection) -> bool:
    """Whether the file is in order, by reading all of it."""
    return bool(db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")


def salvage(path: Path) -> str:
    """Put a new file in the place of the damaged one, which is kept; says what was done."""
    fresh = path.with_name(f"{path.name}.salvaged")
    fresh.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    _lengthen(path)
    damaged = database.connect(path, writes=True)
    new = database.connect(fresh, writes=True)
    try:
        # Without a log beside it, the file is all there is: a log left over would be taken for one
        # of the new file.
        damaged.execute("PRAGMA journal_mode = DELETE").fetchall()
        damaged.text_factory = lambda raw: raw.decode(errors="replace")
        database.migrate(new, fresh)
        found = {table: _copy(damaged, new, table) for table in TABLES}
        (last,) = new.execute(LAST_NUMBER).fetchone()
        number = rows.pack((last or 0) + NUMBERS_LEFT_OUT)
        new.execute(rows.SET_SETTING, (rows.NUMBERS_AFTER, number))
    finally:
        damaged.close()
        new.close()
    kept = next(
        name
        for n in range(1, 10_000)
        if not (name := path.with_name(f"{path.name}.damaged-{n}")).exists()
    )
    os.link(path, kept)
    os.replace(fresh, path)
    _sync(path.parent)
    return (
        f"The file is damaged. What could be read of it was saved, among it {found['jobs']} jobs "
        f"and {found['journal']} entries of the journal; the damaged file is kept as {kept.name}."
    )


def _lengthen(path: Path) -> None:
    """Zeros in the place of an end that was cut off: without it SQLite reads nothing at all."""
    with path.open("rb") as file:
        header = file.read(100)
    page = int.from_bytes(header[16:18], "big") or 1
    whole = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    if path.stat().st_size < whole < LENGTH_MAX:
        os.truncate(path, whole)


def _copy(damaged: sqlite3.Connection, new: sqlite3.Connection, table: str) -> int:
    """Every row that can be read and makes sense; how many."""
    names = [name for _, name, *_ in new.execute(f"PRAGMA table_info({table})")]
    columns, marks = ", ".join(["rowid", *names]), ", ".join("?" for _ in ["rowid", *names])
    add = f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})"
    copied = 0
    new.execute("BEGIN")
    for row in _readable(damaged, f"SELECT {columns} FROM {table} NOT INDEXED"):
        try:
            copied += new.execute(add, row).rowcount
        except sqlite3.IntegrityError:
            continue  # of a kind that never was in this column
    new.execute("COMMIT")
    return copied


def _readable(damaged: sqlite3.Connection, query: str) -> Iterator[Row]:
    """From the first row up to the damage, and from the last row back to it."""
    for order in ("ASC", "DESC"):
        try:
            yield from damaged.execute(f"{query} ORDER BY rowid {order}")
        except sqlite3.Error:
            continue
        return


def _sync(folder: Path) -> None:
    """The new names are on the disk, too."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

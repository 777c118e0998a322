"""The store's file: its form, who may open it, and what is said when it cannot be used."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bough.core import model as m
from bough.records import Recipe
from bough.server import database
from bough.server.database import Migration, StoreError, migrate, migrations
from bough.server.reading import StoreReader
from bough.server.rows import Accepted, Batch
from bough.server.store import Store
from bough.testing.stores import a_record, a_spec, submit, ticks

Schema = list[tuple[str, str, str]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bough.db"


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as any program may see it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db


def schema_of(path: Path) -> Schema:
    with raw(path) as db:
        found: Schema = db.execute(
            "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
        ).fetchall()
        return found


# ------------------------------------------------------------------------------------- its form


@pytest.mark.parametrize("version", range(1, len(migrations()) + 1))
def test_a_migrated_file_has_the_schema_of_a_fresh_one(tmp_path: Path, version: int) -> None:
    fresh, old = tmp_path / "fresh.db", tmp_path / "old.db"
    Store.open(fresh).close()
    with raw(old) as db:
        migrate(db, old, migrations()[:version])
    Store.open(old).close()
    assert schema_of(old) == schema_of(fresh)
    with raw(old) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(migrations()),)


def test_a_migration_keeps_what_is_there(path: Path) -> None:
    number = len(migrations()) + 1
    more = Migration(number, "more.sql", "ALTER TABLE jobs ADD COLUMN more TEXT;")
    with closing(Store.open(path)) as store:
        submit(store, 1.0)
    with raw(path) as db:
        migrate(db, path, [*migrations(), more])
        assert db.execute("SELECT id, more FROM jobs").fetchall() == [("1", None)]
        assert db.execute("PRAGMA user_version").fetchone() == (number,)


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    Store.open(path).close()
    before = schema_of(path)
    sql = "CREATE TABLE more (x INTEGER); SELECT nothing;"
    broken = Migration(len(migrations()) + 1, "broken.sql", sql)
    with raw(path) as db, pytest.raises(sqlite3.OperationalError):
        migrate(db, path, [*migrations(), broken])
    assert schema_of(path) == before
    Store.open(path).close()


def test_a_newer_file_is_refused_in_a_sentence_with_both_versions(path: Path) -> None:
    Store.open(path).close()
    with raw(path) as db:
        db.execute("PRAGMA user_version = 77")
    known = len(migrations())
    for opening in (Store.open, StoreReader):
        with pytest.raises(StoreError, match=rf"version 77 .* up to version {known}\)"):
            opening(path)


def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    with raw(path) as db:
        db.execute("CREATE TABLE photos (name TEXT)")
    with pytest.raises(StoreError, match="a database of another program"):
        Store.open(path)
    with raw(path) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 1000)
    with pytest.raises(StoreError, match="is no database"):
        Store.open(path)
    assert path.read_bytes() == b"Dear diary, " * 1000


def test_all_tables_are_strict(path: Path) -> None:
    Store.open(path).close()
    with raw(path) as db:
        tables = db.execute("PRAGMA table_list").fetchall()
    loose = [row[1] for row in tables if not row[1].startswith("sqlite_") and not row[5]]
    assert loose == []


def test_nobody_else_may_read_the_file(path: Path) -> None:
    with closing(Store.open(path)) as store:
        submit(store, 1.0)
        files = [path, *path.parent.glob("bough.db-*"), *path.parent.glob("*.lock")]
        assert len(files) == 4
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_migrations_come_with_the_package(tmp_path: Path) -> None:
    """They are read through the package, so that they are found in a wheel, zipped or not."""
    packed = tmp_path / "packed.zip"
    source = Path(database.__file__).parent.parent
    with zipfile.ZipFile(packed, "w") as archive:
        for file in source.rglob("*"):
            if file.suffix in {".py", ".sql"}:
                archive.write(file, file.relative_to(source.parent))
    code = "from bough.server.database import migrations; print(len(migrations()))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(packed)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [str(len(migrations()))]


# ----------------------------------------------------------------------------- who may open it


def test_a_second_daemon_is_told_who_has_the_file(path: Path) -> None:
    told = f"daemon with process id {os.getpid()} is using it"
    with closing(Store.open(path)), pytest.raises(StoreError, match=told):
        Store.open(path)
    Store.open(path).close()


def test_the_lock_falls_with_its_process(path: Path) -> None:
    code = "import sys, os, signal; from pathlib import Path; from bough.server.store import Store"
    code += "\nStore.open(Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    with closing(Store.open(path)) as store:
        assert store.notes == []


def test_onlookers_see_what_a_daemon_wrote_and_change_nothing(path: Path) -> None:
    with closing(Store.open(path)) as store, closing(StoreReader(path)) as onlooker:
        id = submit(store, 1.0)
        assert onlooker.job(id) == a_record(id)
        assert [entry.seq for entry in onlooker.events()] == [1, 2]
        with onlooker._readers.lent() as db, pytest.raises(sqlite3.OperationalError):
            db.execute("DELETE FROM jobs")
    with pytest.raises(StoreError, match="there is no such file"):
        StoreReader(path.with_name("nothing.db"))


def test_many_threads_read_while_one_writes(path: Path) -> None:
    """Nobody waits, nobody sees half a step, and few connections stay."""
    steps, wrong = 300, list[object]()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            entries = list(store.events())
            if len(entries) % 2 or [entry.seq for entry in entries] != [
                *range(1, len(entries) + 1)
            ]:
                wrong.append(entries)
            if len(store.jobs(limit=1000)) < len(entries) // 2:
                wrong.append("a job is shown later than its step")

    with closing(Store.open(path, synchronous="OFF")) as store:
        readers = [threading.Thread(target=look) for _ in range(4)]
        for reader in readers:
            reader.start()
        try:
            for n in range(steps):
                submit(store, float(n))
        finally:
            over.set()
            for reader in readers:
                reader.join()
        assert wrong == []
        assert len(store._readers._idle) <= store._readers.IDLE_MAX


# ------------------------------------------------------------------------- what may go wrong


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no folder .*nowhere"):
        Store.open(tmp_path / "nowhere" / "bough.db")


def test_a_full_disk_loses_nothing_that_was_saved(path: Path) -> None:
    with closing(Store.open(path)) as store:
        submit(store, 1.0)
        (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
        store._writer.execute(f"PRAGMA max_page_count = {pages + 2}")
        before = list(store.events())
        large = Accepted("2", a_spec(), Recipe(env={"LARGE": "x" * 100_000}))
        batch = Batch(at=2.0, events=[m.Tick(at=2.0)], submissions=[large], records=[a_record("2")])
        with pytest.raises(StoreError, match=r"bough\.db: there is no space left; nothing of this"):
            store.append(batch)
        assert list(store.events()) == before
        store._writer.execute("PRAGMA max_page_count = 1000000")
        assert store.append(batch) == 3
        assert store.check() == []


@pytest.mark.parametrize("room", [200_000, 400_000])
def test_a_file_that_may_not_grow_keeps_what_was_acknowledged(path: Path, room: int) -> None:
    """As on a full disk, the system refuses to write in the middle of a step."""
    code = """
import sys
from pathlib import Path
from bough.server.database import StoreError
from bough.server.store import Store
from bough.testing.stores import submit
store = Store.open(Path(sys.argv[1]))
try:
    for n in range(10_000):
        submit(store, float(n))
        print(store.seq, flush=True)
except StoreError as error:
    print(error, file=sys.stderr)
"""

    def bound() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        preexec_fn=bound, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "nothing of this was saved" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    acknowledged = int(done.stdout.split()[-1])
    with closing(Store.open(path)) as store:
        assert (store.notes, store.check()) == ([], [])
        assert acknowledged <= store.seq <= acknowledged + 2
        assert ticks(store, 1.0) == store.seq


@pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    try:
        with closing(Store.open(tmp_path / "bough.db")) as store:
            with pytest.raises(StoreError, match="nothing of this was saved"):
                deque(submit(store, float(n)) for n in range(10_000))
            saved = store.seq
            assert [entry.seq for entry in store.events()] == list(range(1, saved + 1))
        with closing(Store.open(tmp_path / "bough.db")) as store:
            assert (store.seq, store.notes) == (saved, [])
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_file_that_may_not_be_written_can_be_read() -> None:
    """By a user without special rights: to root, nothing is read-only."""
    code = """
import os, sys
from pathlib import Path
from bough.server.database import StoreError
from bough.server.reading import StoreReader
from bough.server.store import Store
path = Path(sys.argv[1])
elsewhere = path.parent.parent / "elsewhere.db"
Store.open(elsewhere).close()  # what is imported late may be out of reach later
StoreReader(elsewhere).jobs()
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    Store.open(path)
except StoreError as error:
    print(error)
print(StoreReader(path).jobs())
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "archive" / "bough.db"
        path.parent.mkdir()
        Store.open(path).close()
        path.chmod(0o444)
        path.parent.chmod(0o555)
        path.parent.parent.chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        )
        path.parent.chmod(0o755)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{path}: may not be written", "[]"]


def test_another_writer_is_waited_for_and_then_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    with closing(Store.open(path)) as store, raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another program is writing to it"):
            ticks(store, 1.0)
        other.execute("ROLLBACK")
        assert ticks(store, 2.0) == 1

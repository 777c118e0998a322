"""The store on PostgreSQL holds to the rules of every store, on a real server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.server.histories import SHARING, Daemon
from tests.server.postgres_server import Server, started

from bough.cli import main
from bough.core import model as m
from bough.errors import InputError
from bough.server.anystore import AnyStore
from bough.server.database import Migration, StoreError, migrations
from bough.server.journal import lines, of_store
from bough.server.postgres import PostgresReader, PostgresStore, address_of, connect, migrate
from bough.server.rows import Accepted, Batch
from bough.server.store import Store
from bough.testing.stores import StoreContract, a_record, a_spec, submit, ticks


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = started()
    yield found
    found.close()


@pytest.fixture
def dsn(server: Server) -> str:
    """Of a database that is empty."""
    return server.empty()


def change(dsn: str, *queries: str) -> None:
    """Behind the store's back."""
    with psycopg.connect(dsn) as db:
        db.execute("SET search_path = bough")
        for query in queries:
            db.execute(query)


class TestPostgresStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _dsn(self, dsn: str) -> None:
        self.dsn = dsn

    def open(self, folder: Path) -> AnyStore:
        return PostgresStore.open(self.dsn)


# ------------------------------------------------------------------------------------ its form


def test_a_newer_database_is_refused_in_a_sentence_with_both_versions(dsn: str) -> None:
    PostgresStore.open(dsn).close()
    change(dsn, "INSERT INTO versions (number, name) VALUES (77, 'later.sql')")
    known = len(migrations("postgres"))
    for opening in (PostgresStore.open, PostgresReader):
        with pytest.raises(StoreError, match=rf"version 77 .* up to version {known}\)"):
            opening(dsn)


def test_a_migration_keeps_what_is_there_or_changes_nothing(dsn: str) -> None:
    with closing(PostgresStore.open(dsn)) as store:
        submit(store, 1.0)
    known, address = migrations("postgres"), address_of(dsn)
    more = Migration(len(known) + 1, "more.sql", "ALTER TABLE jobs ADD COLUMN more text;")
    broken = Migration(len(known) + 2, "broken.sql", "CREATE TABLE x (y text); SELECT nothing;")
    with closing(connect(address, writes=True)) as db:
        with pytest.raises(psycopg.Error):
            migrate(db, address, [*known, more, broken])
        assert db.execute("SELECT id, more FROM jobs").fetchall() == [("1", None)]
        assert db.execute("SELECT max(number) FROM versions").fetchone() == (more.number,)
        assert db.execute("SELECT to_regclass('x')").fetchone() == (None,)


def test_the_tables_of_others_are_left_alone(dsn: str) -> None:
    change(dsn, "CREATE TABLE public.jobs (photo text)")
    with closing(PostgresStore.open(dsn)) as store:
        submit(store, 1.0)
    with psycopg.connect(dsn) as db:
        assert db.execute("SELECT count(*) FROM public.jobs").fetchone() == (0,)


def test_a_database_without_a_store_is_told(dsn: str) -> None:
    with pytest.raises(StoreError, match="there is no store in it yet"):
        PostgresReader(dsn)


# ----------------------------------------------------------------------------- who may open it


def test_a_second_daemon_is_told_who_has_the_store(dsn: str) -> None:
    told = f"the daemon with process id {os.getpid()} on .* is using it"
    with closing(PostgresStore.open(dsn)), pytest.raises(StoreError, match=told):
        PostgresStore.open(dsn)
    PostgresStore.open(dsn).close()


def test_the_lock_falls_with_its_process(dsn: str) -> None:
    code = "import sys, os, signal; from bough.server.postgres import PostgresStore"
    code += "\nstore = PostgresStore.open(sys.argv[1]); os.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", code, dsn], check=False)
    assert done.returncode == -signal.SIGKILL
    with closing(PostgresStore.open(dsn)) as store:
        assert store.notes == []


def test_onlookers_see_what_a_daemon_wrote_and_change_nothing(dsn: str) -> None:
    with closing(PostgresStore.open(dsn)) as store, closing(PostgresReader(dsn)) as onlooker:
        id = submit(store, 1.0)
        assert onlooker.job(id) == a_record(id)
        assert [entry.seq for entry in onlooker.events()] == [1, 2]
        with pytest.raises(StoreError, match="it can only be read"), onlooker._lent() as db:
            db.execute("DELETE FROM jobs")


def test_many_threads_read_while_one_writes(dsn: str) -> None:
    """Nobody waits, nobody sees half a step, and few connections stay."""
    wrong, over = list[object](), threading.Event()

    def look() -> None:
        while not over.is_set():
            entries = [entry.seq for entry in store.events()]
            if len(entries) % 2 or entries != [*range(1, len(entries) + 1)]:
                wrong.append(entries)
            if problems := store.check():
                wrong.append(problems)

    with closing(PostgresStore.open(dsn)) as store:
        readers = [threading.Thread(target=look) for _ in range(4)]
        for reader in readers:
            reader.start()
        try:
            for n in range(100):
                submit(store, float(n))
        finally:
            over.set()
            for reader in readers:
                reader.join()
        assert wrong == []
        assert len(store._readers._idle) <= store._readers.IDLE_MAX


# ---------------------------------------------------------------------------------- its words


def test_no_error_tells_the_password(server: Server, dsn: str) -> None:
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as db:
        db.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
    rules = server.data / "pg_hba.conf"
    rules.write_text("local all locked scram-sha-256\n" + rules.read_text())
    assert server.run("pg_ctl", "reload", "-D", str(server.data)).returncode == 0
    where = f"@/postgres?host={server.folder}"
    for wrong in (
        f"postgresql://locked:hunter2{where}",
        f"postgresql://locked{where}&password=hunter2",
        "postgresql://locked:hunter2@127.0.0.1:1/postgres",
        "postgresql://locked:hunter2@127.0.0.1:many/postgres",
        "postgresql://locked:see@hunter2@127.0.0.1:1/postgres",
        "postgresql://locked:hunter2/see@127.0.0.1:1/postgres",
        "postgresql://locked:hunter2%zz@127.0.0.1:1/postgres",
        f"postgresql://locked:hunter2@/postgres?host={server.folder}&hunter2=1",
    ):
        with pytest.raises((StoreError, InputError)) as caught:
            PostgresStore.open(wrong)
        assert "hunter2" not in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
    with pytest.raises(StoreError, match=r"postgresql:///postgres: .*password authentication"):
        PostgresStore.open(f"postgresql://locked:hunter2{where}")


def test_text_that_postgresql_cannot_hold_is_shown_as_it_was(dsn: str) -> None:
    with closing(PostgresStore.open(dsn)) as store:
        id = submit(store, 1.0, name="a\0b", user="c\0d")
        shown = store.job(id)
        assert shown is not None
        assert (shown.name, shown.user) == ("a\0b", "c\0d")
        assert [job.id for job in store.jobs(name="a\0b", user="c\0d")] == [id]


def test_a_database_that_may_only_be_read_is_told(dsn: str) -> None:
    PostgresStore.open(dsn).close()
    change(dsn, "ALTER DATABASE store SET default_transaction_read_only = on")
    with pytest.raises(StoreError, match="it can only be read"):
        PostgresStore.open(dsn)
    with closing(PostgresReader(dsn)) as onlooker:
        assert onlooker.jobs() == []


# -------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    ("query", "problem", "dropped"),
    [
        ("UPDATE journal SET what = '\\x00ff' WHERE seq = 9", "is not as it was written", 4),
        ("DELETE FROM journal WHERE seq = 9", "has 1 of its 2 entries", 3),
        ("DELETE FROM steps WHERE step = 5", "belongs to no step", 4),
    ],
)
def test_what_follows_the_last_whole_step_is_put_aside(
    dsn: str, query: str, problem: str, dropped: int
) -> None:
    with closing(PostgresStore.open(dsn)) as store:
        for n in range(6):
            submit(store, float(n))
            if n == 2:
                store.save_snapshot(store.seq, b"state")
    change(dsn, query)
    with closing(PostgresStore.open(dsn)) as store:
        (note,) = store.notes
        assert f"damaged from step 5 on, which {problem}: the {dropped} entries" in note
        assert (store.seq, store.step, store.dropped(), store.check()) == (8, 4, dropped, [])
        assert ticks(store, 9.0) == 9
    with closing(PostgresStore.open(dsn)) as store:
        assert (store.notes, store.seq) == ([], 9)


# ------------------------------------------------------------------------------------- history


def test_a_history_is_the_same_on_both_and_is_replayed_from_both(
    tmp_path: Path, dsn: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "bough.db", tmp_path / "out.jsonl"
    with closing(Store.open(path, synchronous="OFF")) as one:
        Daemon(one, SHARING, seed=3).live(150)
    with closing(PostgresStore.open(dsn)) as two:
        Daemon(two, SHARING, seed=3).live(150)
        there = b"".join(lines(of_store(two)))
    assert main(["journal", "export", str(path), "-o", str(out)]) == 0
    assert out.read_bytes() == there
    assert main(["journal", "export", dsn, "-o", str(out)]) == 0
    assert out.read_bytes() == there
    for source in (str(path), dsn, str(out)):
        assert main(["journal", "replay", source]) == 0
        assert "The same, byte for byte: 1" in capfd.readouterr().out
    assert main(["journal", "verify", dsn]) == 0


def test_a_large_tail_is_read_in_portions(dsn: str) -> None:
    with closing(PostgresStore.open(dsn)) as store:
        large = Accepted("9", a_spec())
        store.append(Batch(at=1.0, events=[m.Tick(at=1.0)] * 5000, submissions=[large]))
        ticks(store, *map(float, range(2, 10)))
        steps = store.steps()
        assert next(steps).seq == 5000
        del steps  # whoever stops reading leaves nothing behind
        assert [step.seq for step in store.tail()] == [*range(5000, 5009)]

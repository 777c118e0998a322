"""What a power cut or a broken disk leaves is kept as far as it is whole, and the rest is told."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from bough.core import model as m
from bough.server.database import StoreError
from bough.server.reading import StoreReader
from bough.server.rows import Batch
from bough.server.store import Store
from bough.testing.stores import submit, ticks

STEPS = 6


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a store with six steps of two entries, the first three in a snapshot."""
    path = tmp_path / "bough.db"
    with closing(Store.open(path, synchronous="OFF")) as store:
        for n in range(STEPS):
            submit(store, float(n))
            if n == 2:
                store.save_snapshot(store.seq, b"state")
    return path


def change(path: Path, *queries: str) -> None:
    """Behind the store's back."""
    with closing(sqlite3.connect(path)) as db, db:
        for query in queries:
            db.execute(query)


@pytest.mark.parametrize(
    ("query", "problem", "dropped"),
    [
        ("UPDATE journal SET what = x'00ff' WHERE seq = 9", "is not as it was written", 4),
        ("UPDATE journal SET what = x'' WHERE seq = 10", "is not as it was written", 4),
        ("UPDATE journal SET reason = NULL WHERE seq = 10", "is not as it was written", 4),
        ("DELETE FROM journal WHERE seq = 9", "has 1 of its 2 entries", 3),
        ("DELETE FROM journal WHERE seq IN (9, 10)", "has 0 of its 2 entries", 2),
        ("DELETE FROM steps WHERE step = 5", "belongs to no step", 4),
        ("UPDATE journal SET step = 6 WHERE seq = 10", "has 1 of its 2 entries", 4),
        ("UPDATE steps SET entries = 3 WHERE step = 5", "has 2 of its 3 entries", 4),
    ],
)
def test_what_follows_the_last_whole_step_is_put_aside(
    path: Path, query: str, problem: str, dropped: int
) -> None:
    change(path, query)
    with closing(Store.open(path)) as store:
        (note,) = store.notes
        assert f"damaged from step 5 on, which {problem}: the {dropped} entries" in note
        assert (store.seq, store.step, store.dropped()) == (8, 4, dropped)
        assert [entry.seq for entry in store.events()] == list(range(1, 9))
        assert [step.step for step in store.tail()] == [4]
        assert store.check() == []
        assert ticks(store, 9.0) == 9
        assert len(store.jobs()) == STEPS, "submissions that were answered are still known"
    with closing(Store.open(path)) as store:
        assert (store.notes, store.seq) == ([], 9)


def test_put_aside_is_kept_as_it_was_found(path: Path) -> None:
    change(path, "UPDATE journal SET what = x'00ff' WHERE seq = 11")
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT seq, step, what, why FROM dropped").fetchall()
    assert [row[:2] for row in found] == [(11, 6), (12, 6)]
    assert found[0][2:] == (b"\x00\xff", "step 6 is not as it was written")


def test_a_damaged_snapshot_gives_way_to_the_one_before_it(path: Path) -> None:
    with closing(Store.open(path)) as store:
        store.save_snapshot(store.seq, b"later state")
    change(path, f"UPDATE snapshots SET data = x'00' WHERE seq = {2 * STEPS}")
    with closing(Store.open(path)) as store:
        assert store.notes == ["The last snapshot is damaged; an older one was taken."]
        assert store.snapshot() == (6, b"state")
        assert [step.step for step in store.tail()] == [4, 5, 6]
        assert store.seq == 2 * STEPS
    with closing(StoreReader(path)) as onlooker:
        assert onlooker.check() == ["The snapshot after entry 12 is not as it was written."]


def test_damage_before_the_snapshot_does_not_keep_a_daemon_from_starting(path: Path) -> None:
    """It needs none of that; `verify` tells."""
    change(path, "DELETE FROM journal WHERE seq = 2", "UPDATE journal SET what = x'' WHERE seq = 4")
    with closing(Store.open(path)) as store:
        assert (store.notes, store.seq) == ([], 2 * STEPS)
        problems = store.check()
    assert problems[0] == "Step 1 has 1 of its 2 entries."
    assert problems[1] == "Step 2 is not as it was written."
    assert problems[2].startswith("Entry 4 cannot be understood: ")


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("DELETE FROM steps WHERE step = 2", "Step 2 belongs to no step."),
        ("UPDATE jobs SET record = x'7b' WHERE id = '3'", "What is shown of job 3 cannot be"),
        ("DELETE FROM recipes WHERE id = '3'", "Job 3 has no recipe."),
        ("DELETE FROM jobs WHERE id = '3'", "Job 3 was submitted and is not shown."),
        ("UPDATE snapshots SET crc = 1", "The snapshot after entry 6 is not as it was written."),
    ],
)
def test_verify_tells(path: Path, query: str, problem: str) -> None:
    change(path, query)
    with closing(StoreReader(path)) as onlooker:
        assert any(problem in told for told in onlooker.check())


def test_verify_tells_of_commands_that_nothing_led_to(path: Path) -> None:
    with closing(Store.open(path)) as store:
        store.append(Batch(at=9.0, commands=[(m.Stop("1", 1), None)]))
        assert store.check() == ["Step 7 has no event: nothing can have led to it."]


def test_a_word_of_another_program_is_told_with_its_entry(path: Path) -> None:
    with closing(Store.open(path)) as store:
        with store._writing() as db:
            db.execute("UPDATE journal SET what = ? WHERE seq = 1", (b'{"type":"Grown","at":1}',))
        with pytest.raises(StoreError, match=r"entry 1 cannot be understood: .*Grown"):
            list(store.events())


# --------------------------------------------------------------------------- pages of the file


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store of a hundred jobs, as the bytes of its file."""
    path = tmp_path_factory.mktemp("whole") / "bough.db"
    with closing(Store.open(path, synchronous="OFF")) as store:
        for n in range(100):
            submit(store, float(n))
            if n in (30, 60):
                store.save_snapshot(store.seq, b"state" * 2000)
        store._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return path.read_bytes()


def overwritten(data: bytearray, random: np.random.Generator) -> None:
    page = random.integers(1, len(data) // 4096)
    data[page * 4096 : (page + 1) * 4096] = random.bytes(4096)


def zeroed(data: bytearray, random: np.random.Generator) -> None:
    page = random.integers(1, len(data) // 4096)
    data[page * 4096 : (page + 1) * 4096] = bytes(4096)


def scratched(data: bytearray, random: np.random.Generator) -> None:
    for place in random.integers(4096, len(data), 40):
        data[place] ^= 1 << int(random.integers(8))


def cut_short(data: bytearray, random: np.random.Generator) -> None:
    del data[int(random.integers(len(data) // 2, len(data))) :]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("damage", [overwritten, zeroed, scratched, cut_short])
def test_a_damaged_file_is_saved_as_far_as_it_can_be_read(
    tmp_path: Path,
    whole: bytes,
    damage: Callable[[bytearray, np.random.Generator], None],
    seed: int,
) -> None:
    """After a power cut all of it is looked at; what comes of it is in order, and works."""
    path, data = tmp_path / "bough.db", bytearray(whole)
    damage(data, np.random.default_rng(seed))
    path.write_bytes(data)
    path.with_name("bough.db.lock").write_text("1 another-boot\n")
    with closing(Store.open(path, synchronous="OFF")) as store:
        assert [told for told in store.check() if "file is damaged" in told] == []
        if any("damaged file is kept" in note for note in store.notes):
            assert path.with_name("bough.db.damaged-1").read_bytes()[:9] == b"SQLite fo"
        before = store.seq
        id = submit(store, 1000.0)
        assert store.seq == before + 2
    with closing(Store.open(path)) as store:
        assert store.job(id) is not None
        assert store.notes == [note for note in store.notes if "snapshot" in note]


def test_a_lost_page_costs_no_more_than_what_was_on_it(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "bough.db"
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as db:
        try:
            pages = db.execute(
                "SELECT pageno FROM dbstat WHERE name = 'jobs' AND pagetype = 'leaf' ORDER BY path"
            ).fetchall()
        except sqlite3.OperationalError:
            pytest.skip("this SQLite cannot tell which page is whose")
    assert len(pages) > 4
    data = bytearray(whole)
    start = (pages[len(pages) // 2][0] - 1) * 4096
    data[start : start + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    path.with_name("bough.db.lock").write_text("1 another-boot\n")
    with closing(Store.open(path)) as store:
        (note,) = store.notes
        assert "The file is damaged" in note
        assert 100 - 4096 // 150 <= len(store.jobs(limit=200)) < 100
        assert len(list(store.events())) == 200
        assert store.seq == 200
        assert store.next_number() > 1000, "what lost jobs left behind is nobody else's"

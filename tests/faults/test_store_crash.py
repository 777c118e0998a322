"""However a daemon is killed, what the store has acknowledged is there, and no half of a step.

Real processes that write as fast as they can are killed with SIGKILL at moments drawn from a seed:
while a file is made, within a transaction, a checkpoint, a snapshot, a pruning.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from bough.core import model as m
from bough.server.store import Store
from bough.testing.stores import submit

KILLS = 25

#: Imports once, then has one child after another do the writing.
NURSERY = """
import os, sys
from pathlib import Path
import numpy as np
from bough.core import model as m
from bough.records import Recipe
from bough.server.rows import Accepted, Batch
from bough.server.store import Store
from bough.testing.stores import a_record, a_spec, a_start

def write(path, seed):
    random = np.random.default_rng(seed)
    store = Store.open(path)
    store._writer.execute("PRAGMA wal_autocheckpoint = 20")
    at = float(store.step)
    while True:
        at += 1.0
        ids = [str(store.next_number()) for _ in range(random.integers(1, 20))]
        recipe = Recipe(argv=("true",), env={"X": "x" * int(random.integers(5000))})
        seq = store.append(Batch(
            at=at,
            events=[m.Submitted(at=at, id=id, spec=a_spec()) for id in ids],
            commands=[a_start(id) for id in ids],
            submissions=[Accepted(id, a_spec(), recipe, key=id) for id in ids],
            records=[a_record(id) for id in ids],
        ))
        os.write(1, b"ack %d\\n" % seq)
        if random.random() < 0.2:
            store.save_snapshot(seq, random.bytes(20_000))
        if random.random() < 0.1:
            store.prune(at - 5.0)

for line in sys.stdin:
    path, seed = line.split()
    child = os.fork()
    if not child:
        os.write(1, b"pid %d\\n" % os.getpid())
        write(Path(path), int(seed))
    os.waitpid(child, 0)
    os.write(1, b"gone 0\\n")
"""


class Nursery:
    """Children that write until they are killed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.buffer = b""

    def told(self) -> tuple[str, int]:
        """The next line."""
        while b"\n" not in self.buffer:
            assert self.process.stdout is not None
            more = os.read(self.process.stdout.fileno(), 4096)
            assert more, "the nursery has died"
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        word, number = line.split()
        return word.decode(), int(number)

    def killed(self, path: Path, seed: int, after: int, seconds: float) -> int:
        """The last entry acknowledged by a child killed so long after so many steps."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{path} {seed}\n".encode())
        self.process.stdin.flush()
        word, pid = self.told()
        assert word == "pid"
        last = 0
        for _ in range(after):
            word, last = self.told()
            assert word == "ack", "it ended by itself"
        select.select([], [], [], seconds)
        os.kill(pid, signal.SIGKILL)
        while (found := self.told())[0] != "gone":
            last = found[1]
        return last

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    found = Nursery()
    yield found
    found.close()


@pytest.mark.parametrize("seed", range(4))
def test_what_was_acknowledged_survives_kill_9(nursery: Nursery, tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    path = tmp_path / "bough.db"
    acknowledged = 0
    for kill in range(KILLS):
        after = int(random.choice([0, 0, 1, 2, 5, 12]))
        last = nursery.killed(path, 100 * seed + kill, after, float(random.uniform(0, 0.012)))
        acknowledged = max(acknowledged, last)
        with closing(Store.open(path)) as store:
            assert (store.notes, store.check()) == ([], []), f"kill {kill}"
            assert store.seq >= acknowledged, f"kill {kill}"
            assert_steps_are_whole(store)
            acknowledged = store.seq
    assert acknowledged > 100


def assert_steps_are_whole(store: Store) -> None:
    """Each submission of a step with its start, its job, its recipe and its key."""
    submitted, started = list[str](), list[str]()
    for step in store.steps(store.begins_after()):
        submitted += [each.id for each in step.events if isinstance(each, m.Submitted)]
        started += [each.id for each in step.commands]
        assert submitted == started
    jobs = [record.id for record in store.jobs(limit=1_000_000)][::-1]
    assert jobs[len(jobs) - len(submitted) :] == submitted
    assert jobs == [str(number) for number in range(1, len(jobs) + 1)]
    for id in submitted[-20:]:
        assert store.recipe(id) is not None
        assert store.by_key("ada", id) == id
    assert store.next_number() == len(jobs) + 1


def test_a_daemon_killed_in_the_middle_does_not_hold_up_the_next(
    nursery: Nursery, tmp_path: Path
) -> None:
    path = tmp_path / "bough.db"
    nursery.killed(path, 1, 3, 0.0)
    began = time.perf_counter()
    with closing(Store.open(path)) as store:
        assert submit(store, 1e6)
    assert time.perf_counter() - began < 2.0

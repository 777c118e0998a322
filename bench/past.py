"""A daemon with a long past: 100,000 finished jobs, and a restart with 100,000 journal entries.

The past is made as the daemon makes it, by the scheduler, the ledger and the store, but without
processes and without waiting for the disk. Listing is measured as somebody types it; beside it
stands `bough --version`, which asks nobody. A restart is that of a daemon that was killed: from
`bough up` until it listens; beside it, the start of one whose home is empty, and a restart without
any snapshot, which has to decide everything again. Exits with 1 when a limit is passed.
"""

from __future__ import annotations

import argparse
import getpass
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from bough.core import model as m
from bough.hardware.probe import probe
from bough.home import store_path
from bough.records import Config, Recipe
from bough.server.ledger import Ledger
from bough.server.loop import SNAPSHOT_ENTRIES
from bough.server.replay import resume
from bough.server.rows import Accepted, Batch
from bough.server.rules import conditions_of
from bough.server.store import Store
from bough.server.turn import Turn
from served import SLOTS, Served, Table, home, measure_idle, middle, scratch

JOBS, ENTRIES, RUNS = 100_000, 100_000, 15
LIST_LIMIT_MS, RESTART_LIMIT_SECONDS = 250.0, 2.0
#: Entries of one job: submitted, start, started, exited, ended.
ENTRIES_EACH = 5
RECIPE = Recipe(
    argv=("python", "train.py", "--lr", "0.1"),
    cwd="/",
    env={f"VARIABLE_{i}": "x" * 40 for i in range(20)},
)
SECONDS_EACH = 0.4


class Body:
    """Nothing is left of what it ran."""

    def ending(self, job: str, epoch: int) -> None:
        return None


class Past:
    """What a daemon decides, writes and remembers while jobs come and go, all slots busy."""

    def __init__(self, store: Store, jobs: int, *, snapshots: bool) -> None:
        machine = probe(f"cpu:{SLOTS}")
        self.store = store
        self.scheduler, _ = resume(store, conditions_of(Config(), machine))
        self.ledger = Ledger(store, Body())  # type: ignore[arg-type]
        self.now = time.time() - (2 * jobs + 10) * SECONDS_EACH
        self.snapshots, self.snapshot_at = snapshots, 0
        self.step([m.NodeUp(at=self.now, node=node) for node in machine.nodes])

    def step(self, events: Sequence[m.Event], accepted: Sequence[Accepted] = ()) -> list[m.Command]:
        """As the daemon's thread does it."""
        turn, scheduler = Turn(self.now), self.scheduler
        turn.events += events
        turn.accepted += accepted
        commands = [(each, scheduler.reason_for(each)) for each in scheduler.handle(turn.events)]
        draft = self.ledger.draft(turn, commands, scheduler)
        self.store.append(
            Batch(
                at=turn.at,
                events=turn.events,
                commands=commands,
                submissions=turn.accepted,
                records=draft.records,
                accounts=draft.accounts,
            )
        )
        self.ledger.keep(draft)
        if self.snapshots and self.store.seq - self.snapshot_at >= SNAPSHOT_ENTRIES:
            self.snapshot_at = self.store.seq
            self.store.save_snapshot(self.store.seq, scheduler.to_bytes())
        self.now += SECONDS_EACH
        return [command for command, _ in commands]

    def live(self, jobs: int, at_once: int) -> None:
        """So many come whenever so many have ended, until there are no more."""
        user = getpass.getuser()
        spec = m.JobSpec(name="train", user=user, devices=m.Range(min=1), resize_in_place=False)
        over: list[m.Event] = []
        while jobs or over:
            ids = [str(self.store.next_number()) for _ in range(min(at_once, jobs))]
            jobs -= len(ids)
            come = [m.Submitted(at=self.now, id=id, spec=spec) for id in ids]
            commands = self.step([*over, *come], [Accepted(id, spec, RECIPE) for id in ids])
            starts = [each for each in commands if isinstance(each, m.Start)]
            if starts:
                self.step([m.Started(at=self.now, id=s.id, epoch=s.epoch) for s in starts])
            over = [m.Exited(at=self.now, id=s.id, epoch=s.epoch, why="done") for s in starts]


def make(served: Served, jobs: int, at_once: int, *, snapshots: bool = True) -> int:
    """Entries of the journal of such a past, which ends as with `kill -9`."""
    with closing(Store.open(store_path(served.home), synchronous="OFF")) as store:
        Past(store, jobs, snapshots=snapshots).live(jobs, at_once)
        return store.seq


def milliseconds(ask: Callable[[], object], runs: int = RUNS) -> list[float]:
    """Of each of several times."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        ask()
        times.append(1e3 * (time.perf_counter() - began))
    return times


def measure_listing(served: Served, table: Table) -> None:
    """As somebody types it; the job that ended last is the first line."""
    assert served.bough("ls").splitlines()[1].startswith(str(JOBS)), served.bough("ls")
    alone = middle(milliseconds(lambda: served.bough("--version")))
    table.row("bough --version", f"p50 {alone:5.0f} ms")
    for words in (("ls",), ("ls", "-a", "--state", "failed"), ("history", "-n", "50"), ("status",)):
        times = milliseconds(lambda words=words: served.bough(*words))  # type: ignore[misc]
        found = middle(times)
        limit = f"< {LIST_LIMIT_MS:.0f} ms" if words == ("ls",) else ""
        table.row(
            f"  bough {' '.join(words)}, {JOBS:,} finished jobs",
            f"p50 {found:5.0f}, best {min(times):.0f} ms",
            limit=limit,
            met=not limit or found < LIST_LIMIT_MS,
        )


def measure_restart(folder: Path, table: Table) -> None:
    """Killed, and started again."""
    empty = []
    for run in range(3):
        with home(folder, f"empty-{run}") as served:
            empty += milliseconds(served.up, 1)
    table.row("bough up where nothing has been", f"best {min(empty) / 1e3:.2f} s")
    for snapshots in (True, False):
        with home(folder, f"restart-{snapshots}") as served:
            entries = make(served, ENTRIES // ENTRIES_EACH, 1, snapshots=snapshots)
            times = []
            for _ in range(3 if snapshots else 1):
                times += milliseconds(served.up, 1)
                with served.client() as client:
                    assert client.status().ended == ENTRIES // ENTRIES_EACH
                served.kill()
            found = min(times) / 1e3
            what = "with snapshots" if snapshots else "all to be decided again"
            table.row(
                f"  with {entries:,} entries, {what}",
                f"best {found:.2f} s",
                limit=f"< {RESTART_LIMIT_SECONDS:.0f} s" if snapshots else "",
                met=not snapshots or found < RESTART_LIMIT_SECONDS,
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="on the disk that is meant; else the place for such files")
    table = Table()
    with scratch(parser.parse_args().folder) as folder:
        measure_restart(folder, table)
        with home(folder, "long") as served:
            began = time.perf_counter()
            entries = make(served, JOBS, SLOTS)
            took = time.perf_counter() - began
            table.row(f"making {JOBS:,} jobs, {entries:,} entries", f"{took:.0f} s")
            served.up()
            measure_listing(served, table)
            measure_idle(served, table, f"{JOBS:,} finished jobs")
    return 0 if table.fine else 1


if __name__ == "__main__":
    sys.exit(main())

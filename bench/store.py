"""The daemon's store: durable submissions, a page of a long list, and what a restart reads.

Submissions are durable before they are answered, so that what is measured is how many share one
write to the disk; the same submissions with a transaction for each event and row are measured
beside it. A page of fifty among 100,000 jobs is asked for in several ways, beside reading them all
and choosing. A restart opens a store whose 100,000 entries are all to be told to the scheduler
again, beside reading the same history from a file of JSON lines with the standard library. Exits
with 1 when a limit is passed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from bough.core import model as m
from bough.core.reason import Reason
from bough.records import ENDED, JobRecord, Recipe, State
from bough.server.journal import lines, of_store
from bough.server.rows import Accepted, Batch
from bough.server.store import Store

SUBMISSIONS = 2_000
JOBS = 100_000
ENTRIES = 100_000
#: Durable submissions a second in groups of eight, and how many times faster than one by one.
SUBMISSIONS_LEAST = 500.0
RATIOS_LEAST = {8: 1.5, 64: 2.0}
PAGE_LIMIT_MS = 30.0
RESTART_LIMIT_SECONDS = 2.0

#: About what a shell has.
ENVIRONMENT = {f"VARIABLE_{i}": "x" * 40 for i in range(60)}
RECIPE = Recipe(argv=("python", "train.py", "--lr", "0.1"), cwd="somewhere", env=ENVIRONMENT)
PLACED = Reason(code="placed", facts={"devices": 2, "nodes": 1}, text="It starts on 2 devices.")


def record(id: str, state: State) -> JobRecord:
    """One of seven users' jobs in one of three queues."""
    number = int(id)
    return JobRecord(
        id=id, name="train", user=f"user-{number % 7}", queue=f"queue-{number % 3}", state=state,
        devices=0, sizes=(1, 2, 4), place=(), epoch=1, priority=0, submitted=float(number),
        reason=Reason(code="done", text="It finished its work."), command=RECIPE.argv,
    )  # fmt: skip


def submission(id: str) -> tuple[m.Event, m.Command, Accepted]:
    spec = m.JobSpec(name="train", user=f"user-{int(id) % 7}", devices=m.Range(min=1, max=4))
    start = m.Start(id, 1, (("node-0", (0, 1)),))
    return m.Submitted(at=1.0, id=id, spec=spec), start, Accepted(id, spec, RECIPE, key=id)


def batch(store: Store, size: int, state: State = "starting") -> Batch:
    """So many submissions in one step."""
    ids = [str(store.next_number()) for _ in range(size)]
    events, commands, accepted = zip(*map(submission, ids), strict=True)
    return Batch(
        at=1.0,
        events=events,
        commands=[(each, PLACED) for each in commands],
        submissions=accepted,
        records=[record(id, state) for id in ids],
    )


def per_second(folder: Path, name: str, append: Callable[[Store, Batch], None], size: int) -> float:
    """Submissions a second."""
    with closing(Store.open(folder / f"{name}.db")) as store:
        batches = [batch(store, size) for _ in range(SUBMISSIONS // size)]
        began = time.perf_counter()
        for each in batches:
            append(store, each)
        return len(batches) * size / (time.perf_counter() - began)


def together(store: Store, batch: Batch) -> None:
    store.append(batch)


def apart(store: Store, batch: Batch) -> None:
    """A transaction for each of the event, the command, the recipe and the row."""
    for event, command in zip(batch.events, batch.commands, strict=True):
        store.append(Batch(at=1.0, events=[event]))
        store.append(Batch(at=1.0, commands=[command]))
    for accepted, row in zip(batch.submissions, batch.records, strict=True):
        store.append(Batch(at=1.0, submissions=[accepted]))
        store.append(Batch(at=1.0, records=[row]))


def measure_submissions(folder: Path) -> bool:
    """Groups against one by one."""
    plain = per_second(folder, "apart", apart, 1)
    print(f"durable submissions/s, a transaction for each event and row: {plain:8,.0f}")
    fine = True
    for size in (1, 8, 64):
        found = per_second(folder, f"together-{size}", together, size)
        ratio = found / plain
        print(f"                       {size:2} in one transaction: {found:8,.0f}  {ratio:5.1f}x")
        fine &= ratio >= RATIOS_LEAST.get(size, 0.0)
        fine &= size != 8 or found >= SUBMISSIONS_LEAST
    return fine


def milliseconds(ask: Callable[[], Sequence[JobRecord]], runs: int = 20) -> tuple[float, int]:
    """The longest of several, and how many rows came."""
    longest, rows = 0.0, 0
    for _ in range(runs):
        began = time.perf_counter()
        rows = len(ask())
        longest = max(longest, time.perf_counter() - began)
    return 1e3 * longest, rows


def measure_pages(folder: Path) -> bool:
    """Pages among jobs that are nearly all over."""
    path = folder / "jobs.db"
    with closing(Store.open(path, synchronous="OFF")) as store:
        for n in range(JOBS // 500):
            store.append(batch(store, 500, ENDED[n % 3]))
        store.append(batch(store, 20, "running"))
    questions: dict[str, dict[str, Any]] = {
        "the latest": {},
        "from the middle on": {"before": str(JOBS // 2)},
        "those that run": {"states": ["waiting", "running"]},
        "those that failed": {"states": ["failed"]},
        "of one user": {"user": "user-3"},
        "of one user that run": {"user": "user-3", "states": ["running"]},
        "of a queue nobody uses": {"queue": "nowhere"},
        "of one user in that queue": {"user": "user-3", "queue": "nowhere"},
    }
    fine = True
    with closing(Store.open(path)) as store:
        began = time.perf_counter()
        everything = store.jobs(limit=2 * JOBS)
        plain = [job for job in everything if job.user == "user-3"][:50]
        took = 1e3 * (time.perf_counter() - began)
        assert plain == store.jobs(user="user-3")
        print(f"a page of 50 among {len(everything):,} jobs, reading them all: {took:8.2f} ms")
        for name, question in questions.items():
            found, rows = milliseconds(partial(store.jobs, **question))
            print(f"  {name:28} {rows:3} rows: {found:8.2f} ms  {took / found:8.0f}x")
            fine &= found <= PAGE_LIMIT_MS
    return fine


def measure_restart(folder: Path) -> bool:
    """Open, and read all there is to be told again."""
    path, exported = folder / "restart.db", folder / "restart.jsonl"
    with closing(Store.open(path, synchronous="OFF")) as store:
        for _ in range(ENTRIES // 16):
            store.append(batch(store, 8))
        with exported.open("wb") as out:
            out.writelines(lines(of_store(store)))
    began = time.perf_counter()
    with exported.open("rb") as file:
        plain = [json.loads(line) for line in file]
    took = time.perf_counter() - began
    began = time.perf_counter()
    with closing(Store.open(path)) as store:
        opened = time.perf_counter() - began
        count = sum(len(step.events) + len(step.commands) for step in store.tail())
    found = time.perf_counter() - began
    assert len(plain) == count + 1
    print(f"{count:,} entries from JSON lines: {took:.2f} s")
    print(f"  opening the store: {opened:.2f} s, with reading: {found:.2f} s  {took / found:.1f}x")
    return found <= RESTART_LIMIT_SECONDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="on the disk that is meant; else the place for such files")
    with tempfile.TemporaryDirectory(dir=parser.parse_args().folder) as name:
        folder = Path(name)
        measures = (measure_submissions, measure_pages, measure_restart)
        fine = [measure(folder) for measure in measures]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())

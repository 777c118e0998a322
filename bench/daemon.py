"""A daemon from outside: how soon a job's first line is there, how many jobs go through, and rest.

The time to the first line is that of the user's program (a Python that prints) beyond what the same
program takes when it is started by hand, once as a client of the API sees it and once as somebody
who types `bough run`. Submissions come from eight processes at once, while a job has all slots, and
each is answered once it is on the disk; beside it the same rows, one transaction each, in plain
SQLite on the same disk. A thousand jobs of `true` run through eight slots, beside eight threads
that each start a bare Python with `true` in it. Exits with 1 when a limit is passed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec

from bough.backends.attempts import read_shim
from bough.home import attempt_dir
from bough.records import Submission
from served import (
    BOUGH,
    SLOTS,
    Served,
    Table,
    cpu_seconds,
    daemon,
    measure_idle,
    memory_mib,
    middle,
    scratch,
    submission,
)

ROUNDS, SUBMISSIONS, CLIENTS, JOBS = 31, 2_000, 8, 1_000
FIRST_LINE_LIMIT_MS = 150.0
SUBMISSIONS_LEAST, JOBS_LEAST = 500.0, 40.0
SHIM_LIMIT_MIB = 12.0

PRINTS = (sys.executable, "-c", "print(1, flush=True)")
#: About what a shell has.
ENVIRONMENT = {"PATH": "/usr/bin:/bin"} | {f"VARIABLE_{i}": "x" * 40 for i in range(60)}
#: What a shim is at the least: an interpreter beside each job.
BARE_SHIM = (sys.executable, "-I", "-S", "-c", "import os; os.spawnlp(os.P_WAIT, 'true', 'true')")


# ------------------------------------------------------------------------------ the first line


def line_of(command: tuple[str, ...], env: dict[str, str]) -> float:
    """Milliseconds until a program has printed its first line."""
    began = time.perf_counter()
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        took = time.perf_counter() - began
    assert line == b"1\n", line
    return 1e3 * took


def measure_first_line(served: Served, table: Table) -> None:
    """All three in turn, so that a busy moment meets each of them."""
    asked, typed, bare = list[float](), list[float](), list[float]()
    run = (*BOUGH, "run", "--", *PRINTS)
    with served.client() as client:
        for _ in range(ROUNDS):
            bare.append(line_of(PRINTS, served.env))
            began = time.perf_counter()
            job = client.submit(submission(*PRINTS, env=served.env))
            next(iter(client.logs(job.id, follow=True)))
            asked.append(1e3 * (time.perf_counter() - began))
            client.wait(job.id)
            typed.append(line_of(run, served.env))
    alone = middle(bare)
    table.row("first line of the program by hand", f"p50 {alone:7.1f} ms")
    for name, times in (("the API", asked), ("bough run", typed)):
        found, best = middle(times) - alone, min(times) - min(bare)
        table.row(
            f"  beyond it, through {name}",
            f"p50 {found:5.1f}, best {best:5.1f} ms",
            limit=f"< {FIRST_LINE_LIMIT_MS:.0f} ms",
            met=found < FIRST_LINE_LIMIT_MS,
        )


# -------------------------------------------------------------------------------- submissions


def measure_submissions(served: Served, table: Table) -> None:
    """Eight processes, each with one connection; the clock runs from the first to the last."""
    given = submission("true", env=ENVIRONMENT)
    plain = plain_inserts(served.home / "plain.db", given)
    with served.client() as client:
        blocker = client.submit(submission("sleep", "600", devices=SLOTS))
        wait_until(lambda: client.wait(blocker.id, 0.0).state == "running")
        before = cpu_seconds(served.pid)
        took = posted(served, given)
        busy = (cpu_seconds(served.pid) - before) / SUBMISSIONS
        assert client.status().waiting == SUBMISSIONS
    found = SUBMISSIONS / took
    table.row("rows/s, one transaction each, by sqlite3", f"{plain:,.0f}")
    table.row(
        f"POST /v1/jobs a second, from {CLIENTS} clients",
        f"{found:,.0f} ({found / plain:.1f}x)",
        limit=f">= {SUBMISSIONS_LEAST:.0f}",
        met=found >= SUBMISSIONS_LEAST,
    )
    table.row("  CPU of the daemon for each", f"{1e3 * busy:.2f} ms")


def plain_inserts(path: Path, given: Submission) -> float:
    """Rows a second."""
    row = msgspec.json.encode(given)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, given BLOB)")
        began = time.perf_counter()
        for _ in range(SUBMISSIONS):
            db.execute("INSERT INTO jobs (given) VALUES (?)", (row,))
        return SUBMISSIONS / (time.perf_counter() - began)


def posted(served: Served, given: Submission) -> float:
    """Seconds until all are answered."""
    here = multiprocessing.get_context("fork")
    ready = here.Barrier(CLIENTS + 1)

    def post() -> None:
        with served.client() as client:
            client.status()
            ready.wait()
            for _ in range(SUBMISSIONS // CLIENTS):
                client.submit(given)

    clients = [here.Process(target=post) for _ in range(CLIENTS)]
    for each in clients:
        each.start()
    ready.wait()
    began = time.perf_counter()
    for each in clients:
        each.join()
        assert each.exitcode == 0
    return time.perf_counter() - began


def wait_until(test: Callable[[], bool], seconds: float = 60.0) -> None:
    """Look again and again."""
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


# -------------------------------------------------------------------------------- small jobs


def measure_jobs(served: Served, table: Table) -> None:
    """From the submission of all of them in one request until the last is over."""
    plain = plain_jobs()
    with served.client() as client:
        over = client.status().ended
        before = cpu_seconds(served.pid)
        began = time.perf_counter()
        jobs = client.submit_all([submission("true")] * JOBS)
        for job in jobs[-SLOTS:]:
            client.wait(job.id)
        wait_until(lambda: client.status().ended == over + JOBS)
        took = time.perf_counter() - began
        busy = (cpu_seconds(served.pid) - before) / JOBS
        assert {client.wait(job.id, 0.0).state for job in jobs[::100]} == {"done"}
    found = JOBS / took
    table.row("bare interpreters with `true`/s, eight at a time", f"{plain:.0f}")
    table.row(
        f"jobs of `true` a second through {SLOTS} slots",
        f"{found:.0f} ({found / plain:.2f}x)",
        limit=f">= {JOBS_LEAST:.0f}",
        met=found >= JOBS_LEAST,
    )
    table.row("  CPU of the daemon for each", f"{1e3 * busy:.2f} ms")


def plain_jobs() -> float:
    """Jobs a second, without anybody who decides, writes or watches."""
    count = JOBS // 5
    with ThreadPoolExecutor(SLOTS) as threads:
        began = time.perf_counter()
        list(threads.map(lambda _: subprocess.run(BARE_SHIM, check=True), range(count)))
        return count / (time.perf_counter() - began)


# -------------------------------------------------------------------------- while nothing happens


def measure_shim(served: Served, table: Table) -> None:
    """Beside a job that sleeps."""
    with served.client() as client:
        job = client.submit(submission("sleep", "600"))
        wait_until(lambda: client.wait(job.id, 0.0).state == "running")
        epoch = client.wait(job.id, 0.0).epoch
        facts = read_shim(attempt_dir(served.home, job.id, epoch))
        assert facts is not None
        resident, own = memory_mib(facts.pid)
        client.stop(job.id)
        client.wait(job.id)
    pause = (sys.executable, "-I", "-S", "-c", "print(flush=True); import time; time.sleep(600)")
    with subprocess.Popen(pause, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        bare = memory_mib(process.pid)
        process.kill()
    table.row("bare Python, resident (its share)", f"{bare[0]:.1f} ({bare[1]:.1f}) MiB")
    table.row(
        "  a shim, resident (its share)",
        f"{resident:.1f} ({own:.1f}) MiB",
        limit=f"<= {SHIM_LIMIT_MIB:.0f} MiB",
        met=resident <= SHIM_LIMIT_MIB,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="on the disk that is meant; else the place for such files")
    table = Table()
    with scratch(parser.parse_args().folder) as folder:
        with daemon(folder, "one") as served:
            measure_first_line(served, table)
            measure_jobs(served, table)
            measure_shim(served, table)
            measure_idle(served, table, f"after {JOBS:,} jobs")
        with daemon(folder, "two") as served:
            measure_submissions(served, table)
    return 0 if table.fine else 1


if __name__ == "__main__":
    sys.exit(main())

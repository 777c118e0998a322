"""Is the journal whole? What a power cut or a broken disk left of it, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple
from zlib import crc32

import msgspec

from bough.core.model import Event
from bough.server import rows
from bough.server.database import Db

#: seq, step, at, what, reason: an entry as it lies in the file.
RawEntry = tuple[int, int, float, bytes, bytes | None]
#: step, at, seq of its last entry, number of entries, CRC-32 of them.
RawStep = tuple[int, float, int, int, int]

ENTRIES = "SELECT seq, step, at, what, reason FROM journal WHERE seq > ? ORDER BY seq"
#: Jobs that are not over by what is shown of them, and that nobody could run.
WITHOUT_RECIPE = (
    f"SELECT id FROM jobs LEFT JOIN recipes USING (id) WHERE recipe IS NULL AND {rows.LIVE}"
)
NOT_SHOWN = "SELECT recipes.id FROM recipes LEFT JOIN jobs USING (id) WHERE record IS NULL"
STEPS = "SELECT step, at, seq, entries, crc FROM steps WHERE seq > ? ORDER BY step"


class Found(NamedTuple):
    """A step as it lies in the file."""

    step: int
    entries: list[RawEntry]
    #: What is wrong with it; empty when it is whole.
    problem: str


def crc_of(entries: Sequence[tuple[bytes, bytes | None]]) -> int:
    """Of what an entry says and why, one after another."""
    crc = 0
    for what, reason in entries:
        crc = crc32(what, crc)
        if reason is not None:
            crc = crc32(reason, crc)
    return crc


def examine(db: Db, after: int, before_step: int | None) -> Iterator[Found]:
    """Every step after an entry, which was the last of the step before (None: no matter which)."""
    groups = (
        (step, list(rows)) for step, rows in groupby(db.execute(ENTRIES, (after,)), itemgetter(1))
    )
    group = next(groups, None)
    for header in db.execute(STEPS, (after,)):
        step = header[0]
        while group is not None and group[0] < step:
            yield Found(*group, "belongs to no step")
            group = next(groups, None)
        entries: list[RawEntry] = []
        if group is not None and group[0] == step:
            entries, group = group[1], next(groups, None)
        problem = _problem(header, entries, after + 1)
        if before_step is not None and step != before_step + 1:
            problem = f"follows step {before_step}"
        yield Found(step, entries, problem)
        after, before_step = header[2], step
    while group is not None:
        yield Found(*group, "belongs to no step")
        group = next(groups, None)


def _problem(header: RawStep, entries: Sequence[RawEntry], first: int) -> str:
    """What is wrong with a step whose first entry should have this number."""
    _, _, last, count, crc = header
    if len(entries) != count:
        return f"has {len(entries)} of its {count} entries"
    if count and [entry[0] for entry in entries] != list(range(first, last + 1)):
        return f"has entries {entries[0][0]} to {entries[-1][0]} in place of {first} to {last}"
    if crc_of([entry[3:] for entry in entries]) != crc:
        return "is not as it was written"
    return ""


def put_aside(db: Db, after: int, why: str) -> tuple[int, int]:
    """Move all entries from there on into the table `dropped`; how many entries and steps.

    It belongs into one transaction.
    """
    (steps,) = db.execute("SELECT count(*) FROM steps WHERE seq > ?", (after,)).fetchone()
    moved = db.execute(
        "INSERT INTO dropped (seq, step, at, what, reason, why) "
        "SELECT seq, step, at, what, reason, ? FROM journal WHERE seq > ? ORDER BY seq",
        (why, after),
    ).rowcount
    for table in ("journal", "steps", "snapshots", "conditions"):
        db.execute(f"DELETE FROM {table} WHERE seq > ?", (after,))
    return moved, steps


# ----------------------------------------------------------------------------------- checking


def check(db: Db, begins_after: int) -> list[str]:
    """Everything that is wrong with what is written in a store, one sentence each."""
    problems = list[str]()
    before: int | None = None
    for step, entries, problem in examine(db, begins_after, None):
        missing = before is not None and step != before + 1
        wrong = problem or (f"follows step {before}" if missing else "")
        before = step
        problems += [f"Step {step} {wrong}."] if wrong else []
        problems += filter(None, map(_misunderstood, entries))
        if entries and not wrong and not _begins_with_event(entries[0]):
            problems.append(f"Step {step} has no event: nothing can have led to it.")
    for seq, data, crc in db.execute("SELECT seq, data, crc FROM snapshots"):
        if crc32(data) != crc:
            problems.append(f"The snapshot after entry {seq} is not as it was written.")
    return problems + _jobs(db)


def _misunderstood(entry: RawEntry) -> str:
    """What is wrong with an entry by itself."""
    seq, _, _, what, reason = entry
    try:
        rows.read_what(what)
        if reason is not None:
            rows.read_reason(reason)
    except (msgspec.MsgspecError, UnicodeError) as error:
        return f"Entry {seq} cannot be understood: {error}."
    return ""


def _begins_with_event(entry: RawEntry) -> bool:
    try:
        return isinstance(rows.read_what(entry[3]), Event)
    except (msgspec.MsgspecError, UnicodeError):
        return True  # told already


def _jobs(db: Db) -> list[str]:
    """What is wrong with the jobs that are shown."""
    problems = []
    for id, record in db.execute('SELECT id, record FROM jobs ORDER BY "row"'):
        try:
            rows.read_record(record)
        except (msgspec.MsgspecError, UnicodeError) as error:
            problems.append(f"What is shown of job {id} cannot be understood: {error}.")
    lost = [f"Job {id} has no recipe." for (id,) in db.execute(WITHOUT_RECIPE)]
    hidden = [f"Job {id} was submitted and is not shown." for (id,) in db.execute(NOT_SHOWN)]
    return problems + lost + hidden

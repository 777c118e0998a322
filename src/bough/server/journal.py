"""A journal outside of its store: written to a file, read back, and decided all over again."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple, TypeVar

import msgspec

from bough import __version__
from bough.core.model import AnyCommand, AnyEvent, Command, Event, Frozen
from bough.core.queues import QueueTree
from bough.core.reason import Reason
from bough.core.scheduler import Scheduler
from bough.core.speedup import SpeedBook
from bough.core.topology import Topology
from bough.errors import InputError
from bough.policies import find
from bough.server.reading import StoreReader
from bough.server.rows import Conditions, Entry, Reader, pack

T = TypeVar("T")

FORMAT: Final = 1


class Snapshot(Frozen, frozen=True):
    """The scheduler after an entry, for a journal that lacks its beginning."""

    seq: int
    #: base64.
    data: str


class Since(Frozen, frozen=True):
    """From the entry after this one on, decisions were made by these."""

    seq: int
    conditions: Conditions


class Header(Frozen, frozen=True):
    """The first line of an exported journal: all that is needed to decide it again."""

    journal: Literal["bough"]
    format: int
    #: Of the program that wrote the line.
    version: str
    conditions: tuple[Since, ...] = ()
    #: The entry before the first; 0 unless the journal was pruned.
    begins_after: int = 0
    snapshot: Snapshot | None = None


class Line(Frozen, frozen=True):
    """Any other line: an event, or a command with its reason."""

    seq: int
    step: int
    at: float
    event: AnyEvent | None = None
    command: AnyCommand | None = None
    reason: Reason | None = None


class Journal(NamedTuple):
    """One to be replayed, wherever it lies."""

    header: Header
    entries: Iterable[Entry]


_read_header: Final[Reader[Header]] = Reader(Header)
_read_line: Final[Reader[Line]] = Reader(Line)


# --------------------------------------------------------------------------- out and back in


def of_store(store: StoreReader) -> Journal:
    """What a store holds."""
    begins_after = store.begins_after()
    first = store.oldest_snapshot() if begins_after else None
    held = None if first is None else Snapshot(first[0], base64.b64encode(first[1]).decode())
    since = tuple(Since(seq=seq, conditions=each) for seq, each in store.conditions())
    header = Header(
        journal="bough",
        format=FORMAT,
        version=__version__,
        conditions=since,
        begins_after=begins_after,
        snapshot=held,
    )
    return Journal(header, store.events(after=begins_after))


def lines(journal: Journal) -> Iterator[bytes]:
    """One for the header and one for each entry."""
    yield pack(journal.header) + b"\n"
    for seq, at, step, what, reason in journal.entries:
        kind = b"event" if isinstance(what, Event) else b"command"
        why = b"" if reason is None else b',"reason":%b' % pack(reason)
        where = b'"seq":%d,"step":%d,"at":%b' % (seq, step, pack(at))
        yield b'{%b,"%b":%b%b}\n' % (where, kind, pack(what), why)


def of_file(path: Path) -> Journal:
    """What was exported; lines are read when they are asked for."""
    file = path.open("rb")
    try:
        header = _understood(_read_header, file.readline(), path, 1)
        if header.format != FORMAT:
            raise InputError(
                f"format {header.format} of a journal; this bough reads {FORMAT}", file=str(path)
            )
    except BaseException:
        file.close()
        raise
    return Journal(header, _entries(file, path))


def _entries(file: BinaryIO, path: Path) -> Iterator[Entry]:
    with file:
        for number, raw in enumerate(file, 2):
            line = _understood(_read_line, raw, path, number)
            what: Event | Command | None = line.event or line.command
            if what is None:
                raise InputError("neither an event nor a command", file=str(path), line=number)
            yield Entry(line.seq, line.at, line.step, what, line.reason)


def _understood(read: Reader[T], raw: bytes, path: Path, number: int) -> T:
    try:
        return read(raw)
    except (msgspec.MsgspecError, UnicodeError) as error:
        hint = "a journal is written by `bough journal export`" if number == 1 else None
        raise InputError(str(error), file=str(path), line=number, hint=hint) from None


# ------------------------------------------------------------------------------------ replay


class Difference(NamedTuple):
    """The first command that would not be given again."""

    step: int
    #: Of the command in the journal; of the last entry of the step where it has none.
    seq: int
    #: JSON; empty where there is no such command.
    expected: str
    got: str


@dataclass(slots=True)
class Outcome:
    """What a replay found."""

    steps: int = 0
    events: int = 0
    commands: int = 0
    #: The entry after which it began.
    after: int = 0
    difference: Difference | None = None


def make_scheduler(conditions: Conditions) -> Scheduler:
    """One that has heard of nothing yet. The daemon makes its own in the same way."""
    queues = QueueTree()
    for queue in conditions.queues:
        queues.set(queue)
    try:
        policy = find(conditions.policy)
    except ValueError as error:
        raise InputError(str(error), field="policy") from None
    return Scheduler(
        policy,
        Topology(conditions.levels, conditions.bandwidth, conditions.inner),
        queues=queues,
        speedups=SpeedBook(conditions.reference_kind),
        settings=conditions.settings,
    )


def replay(journal: Journal, make: Callable[[Conditions], Scheduler] = make_scheduler) -> Outcome:
    """Tell a fresh scheduler what happened, step by step, until it decides something else."""
    outcome = Outcome(after=_begin(journal.header))
    changes = list(journal.header.conditions)
    scheduler: Scheduler | None = None
    entries = (entry for entry in journal.entries if entry.seq > outcome.after)
    for _, group in groupby(entries, key=lambda entry: entry.step):
        step = list(group)
        while changes and changes[0].seq < step[0].seq:
            scheduler = _go_on(scheduler, make(changes.pop(0).conditions), journal.header)
        if scheduler is None:
            raise InputError("it is not known by what policy it was decided", field="conditions")
        outcome.difference = _differs(scheduler, step, outcome)
        if outcome.difference is not None:
            break
    return outcome


def _begin(header: Header) -> int:
    """The entry after which a replay can begin."""
    if header.snapshot is not None:
        return header.snapshot.seq
    if header.begins_after:
        raise InputError("its beginning is gone, and no snapshot tells how things stood then")
    return 0


def _go_on(before: Scheduler | None, fresh: Scheduler, header: Header) -> Scheduler:
    """The fresh one, knowing what the one before knew, or what the snapshot tells."""
    if before is not None:
        fresh.from_bytes(before.to_bytes())
    elif header.snapshot is not None:
        fresh.from_bytes(base64.b64decode(header.snapshot.data))
    return fresh


def _differs(scheduler: Scheduler, step: Sequence[Entry], outcome: Outcome) -> Difference | None:
    """Decide a step again; the first command that is another one now."""
    events = [entry.what for entry in step if isinstance(entry.what, Event)]
    before = [entry for entry in step if isinstance(entry.what, Command)]
    outcome.steps += 1
    outcome.events += len(events)
    outcome.commands += len(before)
    now = scheduler.handle(events)
    for was, command in zip_longest(before, now):
        expected = b"" if was is None else pack(was.what)
        got = b"" if command is None else pack(command)
        if expected != got:
            seq = step[-1].seq if was is None else was.seq
            return Difference(step[0].step, seq, expected.decode(), got.decode())
    return None


# ------------------------------------------------------------------------------------ verify


def check(journal: Journal) -> list[str]:
    """What is wrong with a journal by itself, one sentence each."""
    problems = [] if journal.header.conditions else ["It does not say what policy decided it."]
    seq, step = journal.header.begins_after, 0
    said: type[Event] | type[Command] = Event
    for entry in journal.entries:
        if entry.seq != seq + 1:
            problems.append(f"Entry {entry.seq} follows entry {seq}.")
        fresh = entry.step != step
        if fresh and step and entry.step != step + 1:
            problems.append(f"Step {entry.step} follows step {step}.")
        if fresh and not isinstance(entry.what, Event):
            problems.append(f"Step {entry.step} has no event: nothing can have led to it.")
        if not fresh and isinstance(entry.what, Event) and said is Command:
            problems.append(f"Entry {entry.seq} is an event after commands of its step.")
        said = Event if isinstance(entry.what, Event) else Command
        seq, step = entry.seq, entry.step
    return problems

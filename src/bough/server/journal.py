"""A journal outside of its store: written to a file, read back, and decided all over again."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple, TypeVar

import msgspec

from bough import __version__
from bough.core.model import AnyCommand, AnyEvent, Command, Event, Frozen
from bough.core.reason import Reason
from bough.errors import InputError
from bough.server.lookup import Lookup
from bough.server.replay import Make, Outcome, Replay, make_scheduler
from bough.server.rows import Conditions, Entry, Reader, Step, pack

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


def of_store(store: Lookup) -> Journal:
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


def replay(journal: Journal, make: Make = make_scheduler) -> Outcome:
    """Tell a fresh scheduler what happened, step by step, until it decides something else."""
    header = journal.header
    if header.begins_after and header.snapshot is None:
        raise InputError("its beginning is gone, and no snapshot tells how things stood then")
    held = header.snapshot
    start = None if held is None else (held.seq, base64.b64decode(held.data))
    since = [(each.seq, each.conditions) for each in header.conditions]
    return Replay(since, start, make).run(steps_of(journal.entries))


def steps_of(entries: Iterable[Entry]) -> Iterator[Step]:
    """Entries of the same step together."""
    for number, group in groupby(entries, key=lambda entry: entry.step):
        step = list(group)
        events = tuple(entry.what for entry in step if isinstance(entry.what, Event))
        commands = tuple(entry.what for entry in step if isinstance(entry.what, Command))
        yield Step(number, step[0].at, step[-1].seq, events, commands)


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

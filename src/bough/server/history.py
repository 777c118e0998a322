"""Commands that were given, read from the journal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Final, Literal

from bough.core.model import Command, Ended, Resize, Start
from bough.records import Decision
from bough.server.anystore import AnyStore
from bough.server.rows import Entry

#: Members of an array whose histories are read together.
MEMBERS_MAX: Final = 1000


def decisions_of(
    store: AnyStore, jobs: Sequence[str] | None, after: int, limit: int
) -> Iterator[Decision]:
    """About these jobs, or about all, in order."""
    if jobs is None:
        entries: Iterator[Entry] = store.events(after)
    else:
        histories = (store.history(job, after) for job in jobs[:MEMBERS_MAX])
        entries = merge(*histories, key=lambda entry: entry.seq)
    given = (entry for entry in entries if isinstance(entry.what, Command))
    return (decision(entry) for entry in islice(given, limit))


def decision(entry: Entry) -> Decision:
    """A command as the API shows it."""
    what = entry.what
    assert isinstance(what, Command)
    devices, word = 0, _word(what)
    if isinstance(what, Start | Resize):
        devices = sum(len(numbers) for _, numbers in what.place)
    return Decision(
        seq=entry.seq, step=entry.step, at=entry.at, job=what.id, command=word, devices=devices,
        reason=entry.reason,
    )  # fmt: skip


def _word(command: Command) -> Literal["start", "resize", "stop", "park", "ended"]:
    if isinstance(command, Start):
        return "start"
    if isinstance(command, Resize):
        return "resize"
    if isinstance(command, Ended):
        return "ended"
    return "park" if getattr(command, "park", False) else "stop"

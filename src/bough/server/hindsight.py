"""What a journal tells of how things stood at its end, and of all that had come until then."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bough.core.expected import Arrival, Past
from bough.core.model import Submitted
from bough.core.scheduler import Scheduler
from bough.errors import InputError
from bough.server.journal import Journal, steps_of
from bough.server.replay import Replay
from bough.server.rows import Step


class Standing(NamedTuple):
    """How things stood."""

    at: float
    scheduler: Scheduler
    past: Past


def standing(journal: Journal) -> Standing:
    """Everything that happened, decided once more up to the end."""
    header = journal.header
    if header.begins_after and header.snapshot is None:
        raise InputError("its beginning is gone, and no snapshot tells how things stood then")
    held = header.snapshot
    start = None if held is None else (held.seq, base64.b64decode(held.data))
    replay = Replay([(each.seq, each.conditions) for each in header.conditions], start)
    arrivals: list[Arrival] = []
    ends = [replay.scheduler.state.now]
    replay.run(_watched(steps_of(journal.entries), arrivals, ends), to_the_end=True)
    at = max(ends[0], replay.scheduler.state.now)
    begin = arrivals[0].at if arrivals else at
    return Standing(at, replay.scheduler, Past(begin, at, arrivals))


def _watched(steps: Iterable[Step], arrivals: list[Arrival], ends: list[float]) -> Iterator[Step]:
    """The same steps; who was submitted in them, and when the last was, is noted."""
    for step in steps:
        arrivals += [Arrival(e.at, e.spec) for e in step.events if isinstance(e, Submitted)]
        ends[0] = max(ends[0], step.at)
        yield step

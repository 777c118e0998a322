"""What happened once, decided once more: after a restart, and to explain an incident."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from bough.core.queues import QueueTree
from bough.core.scheduler import Scheduler
from bough.core.speedup import SpeedBook
from bough.core.topology import Topology
from bough.errors import InputError
from bough.policies import find
from bough.server.anystore import AnyStore
from bough.server.rows import Conditions, Step, pack

Make = Callable[[Conditions], Scheduler]


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
    #: The first one there is.
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


class Replay:
    """A scheduler that is told everything again, under the conditions of each time."""

    def __init__(
        self,
        conditions: Sequence[tuple[int, Conditions]],
        snapshot: tuple[int, bytes] | None,
        make: Make = make_scheduler,
    ) -> None:
        if not conditions:
            raise InputError("it is not known by what policy it was decided", field="conditions")
        self.outcome = Outcome(after=snapshot[0] if snapshot else 0)
        self._make = make
        self._later = list(conditions)
        self.scheduler = make(self._later.pop(0)[1])
        while self._later and self._later[0][0] <= self.outcome.after:
            self.scheduler = make(self._later.pop(0)[1])
        if snapshot is not None:
            self.scheduler.from_bytes(snapshot[1])

    def change(self, conditions: Conditions) -> None:
        """From now on it is decided under these."""
        fresh = self._make(conditions)
        fresh.from_bytes(self.scheduler.to_bytes())
        self.scheduler = fresh

    def run(self, steps: Iterable[Step], *, to_the_end: bool = False) -> Outcome:
        """Up to the first difference, or to the end, going on as if nothing had been."""
        outcome = self.outcome
        for step in steps:
            if step.seq <= outcome.after:
                continue
            while self._later and self._later[0][0] < step.seq:
                self.change(self._later.pop(0)[1])
            outcome.steps += 1
            outcome.events += len(step.events)
            outcome.commands += len(step.commands)
            commands = self.scheduler.handle(step.events)
            if outcome.difference is None:
                outcome.difference = _differs(step, commands)
            if outcome.difference is not None and not to_the_end:
                break
        return outcome


def _differs(step: Step, now: Sequence[object]) -> Difference | None:
    """Byte for byte; commands are the last entries of a step."""
    first = step.seq - len(step.commands) + 1
    for i, (was, command) in enumerate(zip_longest(step.commands, now)):
        expected = b"" if was is None else pack(was)
        got = b"" if command is None else pack(command)
        if expected != got:
            return Difference(step.step, min(first + i, step.seq), expected.decode(), got.decode())
    return None


def resume(
    store: AnyStore, conditions: Conditions, make: Make = make_scheduler
) -> tuple[Scheduler, Outcome]:
    """The scheduler as it was when the daemon ended, under these conditions from now on.

    The last snapshot is taken over, and what came after it is decided again. A difference tells
    that this program decides otherwise than the one that wrote it: what was really done is then
    another thing than what the scheduler believes, and has to be observed.
    """
    known = store.conditions()
    if not known:
        store.set_conditions(conditions)
        known = [(store.seq, conditions)]
    replay = Replay(known, store.snapshot(), make)
    outcome = replay.run(store.tail(), to_the_end=True)
    if known[-1][1] != conditions:
        store.set_conditions(conditions)
        replay.change(conditions)
    return replay.scheduler, outcome

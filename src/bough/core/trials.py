"""A job that is not submitted yet is put into forks of the live state, to see what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from bough.core import model as m
from bough.core.bill import emits, is_costly
from bough.core.doubt import Belief, Doubt, Fate
from bough.core.outlooks import Runner, in_turn, interval, outlook
from bough.core.prospects import Delay, Outlook
from bough.core.reason import Reason, explain
from bough.core.scheduler import Scheduler
from bough.core.snapshot import Image
from bough.core.supply import GRAMS_OF_KILO
from bough.core.versions import Version

#: A deadline is kept if it is kept in this part of the versions.
CONFIDENCE: Final = 0.9
#: Others are delayed if they end later by this, and by this part of the time to their end.
DELAY_SECONDS, DELAY_SHARE = 30.0, 0.01
DELAYED_MAX: Final = 20
#: What the job is called in the forks.
NEW: Final = "this job"
#: The version in which nobody is lucky or unlucky, to the second.
MIDDLE: Final = -1


class Ask(NamedTuple):
    """A job to be submitted so many seconds after now, in one version."""

    spec: m.JobSpec
    later: float
    number: int


class Seen(NamedTuple):
    """What came of it there."""

    fate: Fate
    #: Why it was not taken on, if it was not; and how it stood right after it was.
    refusal: Reason | None
    stands: Reason
    #: When it was over; in the middle also when each job that is there is over.
    at: float
    ends: dict[str, float]


class Trial(NamedTuple):
    """What came of a job in some versions."""

    spec: m.JobSpec
    outlook: Outlook
    #: Why it was not taken on, if it was not; and how it stood right after it was.
    refusal: Reason | None
    stands: Reason
    #: Seconds after now at which it was submitted.
    later: float = 0.0

    @property
    def accepted(self) -> bool:
        """It was taken on, can run, and what it was promised is kept."""
        look = self.outlook
        if self.refusal is not None or look.begins.p50 is None:
            return False
        late = look.in_time is not None and look.in_time < CONFIDENCE
        return not (late and self.spec.service == "guaranteed")


class Look(NamedTuple):
    """What came of everybody, if what is believed most is true, until the job was over."""

    #: The job was taken on, and over then.
    taken: bool
    at: float
    #: When each job that is there is over: as seen, or by what it has left.
    ends: dict[str, float]


class Bench:
    """A state of affairs in which jobs are tried."""

    def __init__(
        self,
        scheduler: Scheduler,
        doubt: Doubt,
        versions: int,
        horizon: float,
        now: float | None = None,
        run: Runner = in_turn,
    ) -> None:
        self.scheduler, self.doubt, self.run = scheduler, doubt, run
        self.versions, self.horizon = versions, horizon
        self.picture: Image = scheduler.picture(now)
        self.now = self.picture.now
        self.there = [job.id for job in scheduler.state.table.items]
        #: What was seen before is not looked at again.
        self._beliefs: dict[str, Belief] = {}
        self._seen: dict[tuple[bytes, float, int], Seen] = {}

    def see(self, spec: m.JobSpec, numbers: Sequence[int], later: float = 0.0) -> list[Seen]:
        """What comes of a job in these versions."""
        return self.see_all([Ask(spec, later, number) for number in numbers])

    def see_all(self, asks: Iterable[Ask]) -> list[Seen]:
        """The same of several, those that were not seen before side by side."""
        named = [(_name(ask), ask) for ask in asks]
        new = {name: ask for name, ask in named if name not in self._seen}
        self._seen.update(zip(new, self.run(self._submitted, list(new.values())), strict=True))
        return [self._seen[name] for name, _ in named]

    def _submitted(self, ask: Ask) -> Seen:
        """Submit it in a fork of the state, and see."""
        version = self.middle() if ask.number == MIDDLE else self.version(ask.number)
        if ask.later:
            version.pass_by(self.now + ask.later)
        version.submit(NEW, ask.spec)
        stands = explain(version.state, NEW)
        refusal = stands if version.fates[NEW].how == "rejected" else None
        version.run((NEW,), self.now + self.horizon)
        there = self.there if ask.number == MIDDLE else ()
        ends = {id: end_of(version, id) for id in there}
        return Seen(version.fates[NEW], refusal, stands, version.now, ends)

    def version(self, number: int) -> Version:
        """One of those that differ from what is believed most."""
        return Version(
            self.scheduler, self.doubt, number, self.versions, self.picture, (NEW,), self._beliefs
        )

    def middle(self) -> Version:
        """What is to come if what is believed most is true, to the second."""
        exact = msgspec.structs.replace(self.doubt, grain=0.0)
        return Version(self.scheduler, exact, 0, 1, self.picture, (NEW,), self._beliefs)

    def tried(self, spec: m.JobSpec, numbers: Sequence[int], later: float = 0.0) -> Trial:
        """What came of a job in these versions, summed up."""
        seen = self.see(spec, numbers, later)
        look = self.outlook([each.fate for each in seen], spec, later)
        return Trial(spec, look, seen[0].refusal, seen[0].stands, later)

    def looked(self, spec: m.JobSpec, later: float = 0.0) -> Look:
        """The same in the one version in which nobody is lucky or unlucky."""
        (seen,) = self.see(spec, (MIDDLE,), later)
        return Look(seen.refusal is None, seen.at, seen.ends)

    def outlook(self, fates: Sequence[Fate], spec: m.JobSpec, later: float = 0.0) -> Outlook:
        """Summed up, with what power emits and costs here."""
        found, state = outlook(fates, self.deadline(spec, later)), self.scheduler.state
        uses = [fate.use for fate in fates if fate.use is not None]
        if emits(state):
            carbon = interval([use.grams / GRAMS_OF_KILO for use in uses])
            found = msgspec.structs.replace(found, carbon_kg=carbon)
        if is_costly(state):
            found = msgspec.structs.replace(found, cost=interval([use.money for use in uses]))
        return found

    def deadline(self, spec: m.JobSpec, later: float = 0.0) -> float:
        """One that is counted from the submission is counted from when that is."""
        deadline = m.INFINITY if spec.deadline is None else spec.deadline
        if spec.deadline_after is not None:
            deadline = min(deadline, self.now + later + spec.deadline_after)
        return deadline

    def delays(self, looks: Iterable[Look]) -> dict[int, tuple[Delay, ...]]:
        """Whom each would delay: others are followed without it to the moment it is over."""
        without, found = self.middle(), {}
        for look in sorted(looks, key=lambda look: look.at):
            if look.taken:
                without.pass_by(look.at)
                was = {id: end_of(without, id) for id in self.there}
                found[id(look)] = self.later(was, look.ends)
        return found

    def later(self, was: dict[str, float], will: dict[str, float]) -> tuple[Delay, ...]:
        """Who ends later, the most delayed first, those before all whose deadline breaks."""
        state, found = self.scheduler.state, []
        for id, before in was.items():
            seconds = will[id] - before
            if seconds > max(DELAY_SECONDS, DELAY_SHARE * (before - self.now)):
                deadline = float(state.table.deadline[state.table.row(state.jobs[id])])
                late = before <= deadline < will[id]
                found.append(Delay(job=id, seconds=seconds, late=late))
        found.sort(key=lambda delay: (not delay.late, -delay.seconds, delay.job))
        return tuple(found[:DELAYED_MAX])


def end_of(version: Version, id: str) -> float:
    """When it is over: as seen, or by what it has left."""
    fate = version.fates[id]
    return fate.ends if fate.how else version.now + version.seconds_left(id)


def _name(ask: Ask) -> tuple[bytes, float, int]:
    """Equal for what is equal."""
    return msgspec.msgpack.encode(ask.spec), ask.later, ask.number

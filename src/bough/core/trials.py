"""A job that is not submitted yet is put into forks of the live state, to see what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from bough.core import model as m
from bough.core.bill import emits, is_costly
from bough.core.doubt import Doubt, Fate
from bough.core.forecast import interval, outlook, unfold
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


class Trial(NamedTuple):
    """What came of a job in some versions."""

    spec: m.JobSpec
    #: In each version.
    fates: tuple[Fate, ...]
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

    trial: Trial
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
    ) -> None:
        self.scheduler, self.doubt = scheduler, doubt
        self.versions, self.horizon = versions, horizon
        self.picture: Image = scheduler.picture(now)
        self.now = self.picture.now
        self.there = [job.id for job in scheduler.state.table.items]

    def tried(
        self, spec: m.JobSpec, later: float = 0.0, numbers: Sequence[int] | None = None
    ) -> Trial:
        """Submit a job in forks of the state, and see; `numbers` picks some of the versions."""
        said: list[tuple[Reason | None, Reason]] = []

        def submit(version: Version) -> None:
            said.append(self.submitted(version, spec, later))

        unfolded = unfold(
            self.scheduler, (NEW,), self.doubt, versions=self.versions, horizon=self.horizon,
            change=submit, picture=self.picture, numbers=numbers,
        )  # fmt: skip
        return self.judged(spec, [fates[NEW] for fates in unfolded], said[0], later)

    def looked(self, spec: m.JobSpec, later: float = 0.0) -> Look:
        """The same in the one version in which nobody is lucky or unlucky."""
        version = self.middle()
        said = self.submitted(version, spec, later)
        version.run((NEW,), self.now + self.horizon)
        trial = self.judged(spec, [version.fates[NEW]], said, later)
        return Look(trial, version.now, {id: end_of(version, id) for id in self.there})

    def middle(self) -> Version:
        """What is to come if what is believed most is true, to the second."""
        exact = msgspec.structs.replace(self.doubt, grain=0.0)
        return Version(self.scheduler, exact, picture=self.picture, charged=(NEW,))

    def submitted(
        self, version: Version, spec: m.JobSpec, later: float
    ) -> tuple[Reason | None, Reason]:
        """Why it is not taken on, if it is not; and how it stands."""
        if later:
            version.pass_by(self.now + later)
        version.submit(NEW, spec)
        stands = explain(version.state, NEW)
        return stands if version.fates[NEW].how == "rejected" else None, stands

    def judged(
        self, spec: m.JobSpec, fates: Sequence[Fate], said: tuple[Reason | None, Reason],
        later: float,
    ) -> Trial:  # fmt: skip
        return Trial(spec, tuple(fates), self.outlook(fates, spec, later), *said, later)

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

    def part(self, trial: Trial, numbers: Sequence[int]) -> Trial:
        """The same, as seen in some of its versions."""
        fates = tuple(trial.fates[number] for number in numbers)
        return trial._replace(fates=fates, outlook=self.outlook(fates, trial.spec, trial.later))

    def joined(self, one: Trial, other: Trial) -> Trial:
        """As seen in the versions of both."""
        fates = (*one.fates, *other.fates)
        return one._replace(fates=fates, outlook=self.outlook(fates, one.spec, one.later))

    def delays(self, looks: Iterable[Look]) -> dict[int, tuple[Delay, ...]]:
        """Whom each would delay: others are followed without it to the moment it is over."""
        without, found = self.middle(), {}
        for look in sorted(looks, key=lambda look: look.at):
            if look.trial.refusal is None:
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

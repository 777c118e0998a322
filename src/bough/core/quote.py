"""A quote before a job is submitted: when it would begin and end, at what price, and what if.

The job is put into forks of the live state, and so is each alternative; nothing is said that was
not seen to happen there. An alternative is told only if it is better in something: it would be
accepted where the job is not, ends clearly sooner, or takes clearly less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple

import msgspec

from bough.core import model as m
from bough.core.forecast import HORIZON_SECONDS, VERSIONS, Outlook, outlook, unfold
from bough.core.reason import Facts, Reason, many
from bough.core.scheduler import Scheduler
from bough.core.snapshot import Image
from bough.core.units import format_duration
from bough.core.versions import CERTAIN, Doubt, Version

#: A deadline is kept if it is kept in this part of the versions.
CONFIDENCE: Final = 0.9
#: Versions that an alternative is tried in once it looked good in one, and how many of those.
TRIAL_VERSIONS: Final = 5
ALTERNATIVES_MAX: Final = 4
#: Sooner, or less, by this part of the time to the end or of the device-hours is clearly so.
CLEARLY: Final = 0.1
#: Others are delayed if they end later by this, and by this part of the time to their end.
DELAY_SECONDS, DELAY_SHARE = 30.0, 0.01
DELAYED_MAX: Final = 20
#: Deadlines that are tried, as parts of the time in which it would end nine times out of ten.
STRETCHES: Final = (1.0, 1.3, 1.7)
#: A later start is tried after so many seconds.
LATER_SECONDS: Final = (3_600.0, 14_400.0, 43_200.0)
#: What the job is called in the forks.
NEW: Final = "this job"

Verdict = Literal["accept", "accept-if", "reject"]


class Delay(m.Frozen, frozen=True):
    """A job that is there already would end so much later."""

    job: str
    seconds: float
    #: And so after its deadline.
    late: bool = False


class Alternative(m.Frozen, frozen=True):
    """A change of the job, and what would come of it."""

    #: In words, as an advice.
    change: str
    spec: m.JobSpec
    accepted: bool
    outlook: Outlook
    #: Seconds after now at which it should be submitted.
    later_seconds: float = 0.0


class Quote(m.Frozen, frozen=True):
    """The answer to a job that is not submitted yet."""

    verdict: Verdict
    reason: Reason
    #: When it was made: moments in it are of the same clock.
    at: float
    outlook: Outlook
    alternatives: tuple[Alternative, ...] = ()
    #: Of the jobs that are there, those that would end later for it, the most delayed first.
    delays: tuple[Delay, ...] = ()


class Trial(NamedTuple):
    """What came of a job in some versions."""

    spec: m.JobSpec
    outlook: Outlook
    #: Why it was not taken on, if it was not.
    refusal: Reason | None

    @property
    def accepted(self) -> bool:
        late = self.outlook.in_time is not None and self.outlook.in_time < CONFIDENCE
        return self.refusal is None and not (late and self.spec.service == "guaranteed")


class Bench:
    """A state of affairs in which jobs are tried."""

    def __init__(self, scheduler: Scheduler, doubt: Doubt, horizon: float) -> None:
        self.scheduler, self.doubt, self.horizon = scheduler, doubt, horizon
        self.now = scheduler.state.now
        self.picture: Image = scheduler.picture()

    def tried(self, spec: m.JobSpec, versions: int, later: float = 0.0) -> Trial:
        """Submit a job in forks of the state, and see."""
        refusals: list[Reason] = []

        def submit(version: Version) -> None:
            if later:
                version.pass_by(self.now + later)
            version.submit(NEW, spec)
            if version.fates[NEW].how == "rejected":
                refusals.append(version.scheduler.why(NEW))

        unfolded = unfold(
            self.scheduler, (NEW,), self.doubt if versions > 1 else CERTAIN,
            versions=versions, horizon=self.horizon, change=submit, picture=self.picture,
        )  # fmt: skip
        # A deadline after the submission counts from the submission.
        deadline = m.INFINITY if spec.deadline is None else spec.deadline
        if spec.deadline_after is not None:
            deadline = min(deadline, self.now + later + spec.deadline_after)
        fates = [fates[NEW] for fates in unfolded]
        return Trial(spec, outlook(fates, deadline), refusals[0] if refusals else None)


def quote(
    scheduler: Scheduler,
    spec: m.JobSpec,
    doubt: Doubt,
    *,
    versions: int = VERSIONS,
    horizon: float = HORIZON_SECONDS,
    queues: Sequence[str] = (),
) -> Quote:
    """What would become of the job if it were submitted now; `queues` are others it may go to."""
    bench = Bench(scheduler, doubt, horizon)
    found = bench.tried(spec, versions)
    others = better(bench, found, queues)
    verdict: Verdict = "accept"
    if not found.accepted:
        verdict = "accept-if" if any(one.accepted for one in others) else "reject"
    return Quote(
        verdict=verdict,
        reason=reason_of(bench.now, found, others),
        at=bench.now,
        outlook=found.outlook,
        alternatives=others,
        delays=() if found.refusal is not None else delayed(bench, spec),
    )


def delayed(bench: Bench, spec: m.JobSpec) -> tuple[Delay, ...]:
    """Whom it would delay, and how much, if all that is believed is true.

    Both ways are followed until the job is done; what others have left then tells the rest.
    """
    with_it = Version(bench.scheduler, picture=bench.picture)
    with_it.submit(NEW, spec)
    with_it.run((NEW,), bench.now + bench.horizon)
    without = Version(bench.scheduler, picture=bench.picture)
    without.pass_by(with_it.now)
    table = bench.scheduler.state.table
    found = []
    for row, job in enumerate(table.items):
        was, will = _end(without, job.id), _end(with_it, job.id)
        if will - was > max(DELAY_SECONDS, DELAY_SHARE * (was - bench.now)):
            late = was <= float(table.deadline[row]) < will
            found.append(Delay(job=job.id, seconds=will - was, late=late))
    found.sort(key=lambda delay: (not delay.late, -delay.seconds))
    return tuple(found[:DELAYED_MAX])


def _end(version: Version, id: str) -> float:
    """When it is over: as seen, or by what it has left."""
    fate = version.fates[id]
    return fate.ends if fate.how else version.now + version.seconds_left(id)


# --------------------------------------------------------------------------- alternatives


def better(bench: Bench, found: Trial, queues: Sequence[str]) -> tuple[Alternative, ...]:
    """The changes that help, the best first."""
    good = [] if found.accepted else promises(bench, found)
    first = bench.tried(found.spec, 1)
    looked = []
    for way in ways(bench, found, queues):
        trial = bench.tried(way.spec, 1, way.later)
        if helps(trial, found, first, bench.now):
            looked.append((trial.outlook.ends.p50, way))
    looked.sort(key=lambda one: one[0])
    base = bench.tried(found.spec, TRIAL_VERSIONS) if looked else first
    for _, way in looked[:ALTERNATIVES_MAX]:
        trial = bench.tried(way.spec, TRIAL_VERSIONS, way.later)
        if helps(trial, found, base, bench.now):
            good.append(alternative(way, trial))
    good.sort(key=lambda one: one.outlook.ends.p50)
    return tuple(good)


def promises(bench: Bench, found: Trial) -> list[Alternative]:
    """A later deadline that can be kept, and no promise at all."""
    spec, ends = found.spec, found.outlook.ends.p90
    good = []
    if found.refusal is None and ends < m.INFINITY:
        for part in STRETCHES:
            deadline = bench.now + part * (ends - bench.now)
            words = f"Give it {format_duration(deadline - bench.now)} instead"
            late = msgspec.structs.replace(spec, deadline=deadline, deadline_after=None)
            trial = bench.tried(late, TRIAL_VERSIONS)
            if trial.accepted:
                good.append(alternative(Way(words, late), trial))
                break
    if spec.service == "guaranteed":
        loose = msgspec.structs.replace(spec, service="best-effort")
        words = "Submit it as best-effort: it runs, without a promise"
        good.append(alternative(Way(words, loose), bench.tried(loose, TRIAL_VERSIONS)))
    return good


def alternative(way: Way, trial: Trial) -> Alternative:
    """What is told of a change."""
    return Alternative(
        change=way.words, spec=way.spec, accepted=trial.accepted, outlook=trial.outlook,
        later_seconds=way.later,
    )  # fmt: skip


def helps(trial: Trial, found: Trial, base: Trial, now: float) -> bool:
    """Whether it is better in something than the job as it is asked for."""
    if trial.refusal is not None or trial.outlook.ends.p50 == m.INFINITY:
        return False
    if not (trial.accepted and found.accepted):
        return trial.accepted
    mine, its = base.outlook, trial.outlook
    if (its.in_time or 0.0) < (mine.in_time or 0.0):
        return False
    if its.ends.p50 - now < (1.0 - CLEARLY) * (mine.ends.p50 - now):
        return True
    return its.device_hours.p50 < (1.0 - CLEARLY) * mine.device_hours.p50


class Way(NamedTuple):
    """An advice, the job after it, and how much later it is to be submitted."""

    words: str
    spec: m.JobSpec
    later: float = 0.0


def ways(bench: Bench, found: Trial, queues: Sequence[str]) -> Iterator[Way]:
    """What might be better than the job as it is asked for."""
    spec, topology = found.spec, bench.scheduler.state.topology
    changed = partial(msgspec.structs.replace, spec)
    if not spec.roles:
        yield from _sizes(bench.scheduler, spec)
    for kind in topology.kinds:
        if len(topology.kinds) > 1 and spec.kinds != (kind,):
            yield Way(f"Run it on {kind}", changed(kinds=(kind,)))
    for queue in queues:
        if queue != spec.queue:
            yield Way(f"Submit it to queue {queue}", changed(queue=queue))
    if spec.deadline_after is None:
        for later in LATER_SECONDS:
            yield Way(f"Submit it {format_duration(later)} later", spec, later)


def _sizes(scheduler: Scheduler, spec: m.JobSpec) -> Iterator[Way]:
    """Fewer devices, more of them, or a range where one size was asked for."""
    topology = scheduler.state.topology
    most = max((topology.usable(p) for p in range(len(topology.kinds))), default=0)
    low, high = spec.sizes()[0], spec.sizes()[-1]
    sizes = {max(low // 2, 1), max(high // 2, 1), 2 * high} | ({low, high} if low < high else set())
    for size in sorted(size for size in sizes if size <= most and (size,) != spec.sizes()):
        words = f"Ask for {many(size)}" + (" only" if size < high else "")
        yield Way(words, msgspec.structs.replace(spec, devices=m.Range(min=size, max=size)))
    if low == high > 1:
        wide = m.Range(min=1, max=high)
        yield Way(f"Accept 1 to {many(high)}", msgspec.structs.replace(spec, devices=wide))


# --------------------------------------------------------------------------- in words


def reason_of(now: float, found: Trial, others: Sequence[Alternative]) -> Reason:
    """The verdict with its numbers, in a sentence, and the best advice."""
    look = found.outlook
    remedy = next((one.change for one in others if one.accepted or found.accepted), "")
    if found.refusal is not None:
        return msgspec.structs.replace(found.refusal, remedy=found.refusal.remedy or remedy)
    facts: Facts = {"done": look.done, "device_hours": look.device_hours.p50}
    if look.begins.p50 == m.INFINITY:
        text = "It would not begin within the time that was looked at."
        return Reason(code="never", facts=facts, text=text, remedy=remedy)
    facts["begins_in_seconds"] = look.begins.p50 - now
    if look.ends.p50 == m.INFINITY:
        text = f"It would begin {_when(look.begins.p50 - now)}, and not end in the time looked at."
        return Reason(code="endless", facts=facts, text=text, remedy=remedy)
    facts |= {"ends_in_seconds": look.ends.p50 - now, "ends_in_seconds_p90": look.ends.p90 - now}
    text = f"It would begin {_when(look.begins.p50 - now)} and end {_until(look, now)}"
    code = "accepted"
    if look.in_time is not None:
        facts["in_time"] = look.in_time
        code = "accepted" if look.in_time >= CONFIDENCE else "late"
        only = "" if code == "accepted" else "only "
        text += f"; its deadline is kept in {only}{look.in_time:.0%} of what may come"
    return Reason(code=code, facts=facts, text=f"{text}.", remedy=remedy)


def _when(seconds: float) -> str:
    return "at once" if seconds < 1.0 else f"in {format_duration(seconds)}"


def _until(look: Outlook, now: float) -> str:
    soon, late = look.ends.p50 - now, look.ends.p90 - now
    if late == m.INFINITY or format_duration(soon, 1) == format_duration(late, 1):
        return f"after {format_duration(soon)}"
    return f"after {format_duration(soon)} (nine times out of ten within {format_duration(late)})"

"""What might be better than a job as it is asked for, tried out before it is told.

Nothing is said that was not seen to happen in forks of the live state. An alternative is told only
if it is better in something: it would be accepted where the job is not, ends clearly sooner, or
takes clearly less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from bough.core import model as m
from bough.core.arrival import admission_view
from bough.core.policy import Policy
from bough.core.prospects import Alternative, Delay, Interval
from bough.core.reason import many
from bough.core.scheduler import Scheduler
from bough.core.trials import MIDDLE, Ask, Bench, Look, Trial
from bough.core.units import format_duration

#: Versions that an alternative is tried in once it looked good in one, and how many of those.
TRIAL_VERSIONS: Final = 4
ALTERNATIVES_MAX: Final = 3
#: Sooner, or less, by this part of the time to the end or of the device-hours is clearly so.
CLEARLY: Final = 0.1
#: Deadlines that are tried, as parts of the time in which it would end nine times out of ten.
STRETCHES: Final = (1.0, 1.3, 1.7)
#: The earliest deadline that a policy admits is found to this part of it.
CLOSE: Final = 0.02
#: A later start is tried after so many seconds.
LATER_SECONDS: Final = (3_600.0, 14_400.0, 43_200.0)


class Way(NamedTuple):
    """An advice, the job after it, and how much later it is to be submitted."""

    words: str
    spec: m.JobSpec
    later: float = 0.0


class Good(NamedTuple):
    """A way that helps, as seen in some versions and in the one in the middle."""

    way: Way
    trial: Trial
    look: Look


def some(bench: Bench) -> Sequence[int]:
    """The versions that alternatives are tried in."""
    return range(0, bench.versions, -(-bench.versions // TRIAL_VERSIONS))


def better(bench: Bench, found: Trial, queues: Sequence[str]) -> list[Good]:
    """The changes that help, the soonest done first."""
    numbers = some(bench)
    first, base = bench.tried(found.spec, numbers[:1]), bench.tried(found.spec, numbers)
    every = list(ways(bench, found, queues))
    bench.see_all(Ask(way.spec, way.later, numbers[0]) for way in every)
    looked: list[tuple[float, int, Way]] = []
    for way in every:
        trial = bench.tried(way.spec, numbers[:1], way.later)
        if helps(trial, first, found.accepted, bench.now):
            looked.append((trial.outlook.ends.p50 or m.INFINITY, len(looked), way))
    best = [way for _, _, way in sorted(looked)[:ALTERNATIVES_MAX]]
    further = (MIDDLE, *numbers)
    bench.see_all(Ask(way.spec, way.later, number) for way in best for number in further)
    good = [
        Good(way, bench.tried(way.spec, numbers, way.later), bench.looked(way.spec, way.later))
        for way in best
    ]
    return [one for one in good if helps(one.trial, base, found.accepted, bench.now)]


def told(good: Sequence[Good], delays: Mapping[int, tuple[Delay, ...]]) -> tuple[Alternative, ...]:
    """As records, the soonest done first, each with whom it would delay."""
    found = [
        Alternative(
            change=one.way.words, spec=one.way.spec, accepted=one.trial.accepted,
            outlook=one.trial.outlook, later_seconds=one.way.later,
            delays=delays.get(id(one.look), ()),
        )
        for one in good
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda one: one.outlook.ends.p50 or m.INFINITY))


def helps(trial: Trial, base: Trial, accepted: bool, now: float) -> bool:
    """Whether it is better in something than the job as it is asked for."""
    its, mine = trial.outlook, base.outlook
    if trial.refusal is not None or its.ends.p50 is None:
        return False
    if not (trial.accepted and accepted):
        return trial.accepted
    if (its.in_time or 0.0) < (mine.in_time or 0.0):
        return False
    ends = m.INFINITY if mine.ends.p50 is None else mine.ends.p50
    if its.ends.p50 - now < (1.0 - CLEARLY) * (ends - now):
        return True
    return any(
        less(getattr(its, what), getattr(mine, what))
        for what in ("device_hours", "energy_kwh", "carbon_kg", "cost")
    )


def less(its: Interval | None, mine: Interval | None) -> bool:
    """Whether it is clearly less."""
    if its is None or mine is None or its.p50 is None or mine.p50 is None:
        return False
    return its.p50 < (1.0 - CLEARLY) * mine.p50


# --------------------------------------------------------------------------- promises


def promises(bench: Bench, found: Trial, deadline: float | None) -> list[Good]:
    """Of a promise that cannot be given: the earliest that can, and none at all."""
    spec, good = found.spec, []
    if found.accepted or spec.service != "guaranteed":
        return []
    if deadline is not None:
        words = f"Give it {format_duration(deadline - bench.now)} instead"
        late = msgspec.structs.replace(spec, deadline=deadline, deadline_after=None)
        good.append(Way(words, late))
    loose = msgspec.structs.replace(spec, service="best-effort")
    good.append(Way("Submit it as best-effort: it runs, without a promise", loose))
    numbers = some(bench)
    bench.see_all(Ask(way.spec, 0.0, number) for way in good for number in (MIDDLE, *numbers))
    tried = [Good(way, bench.tried(way.spec, numbers), bench.looked(way.spec)) for way in good]
    return [one for one in tried if one.trial.accepted]


def earliest(bench: Bench, found: Trial) -> float | None:
    """The earliest deadline that is accepted, and kept nine times out of ten."""
    spec, ends = found.spec, found.outlook.ends.p90
    if spec.service != "guaranteed":
        return ends
    first = ends if type(bench.scheduler.policy).admit is Policy.admit else admitted(bench, spec)
    for part in STRETCHES if first is not None else ():
        deadline = bench.now + part * (first - bench.now)  # type: ignore[operator]
        asked = msgspec.structs.replace(spec, deadline=deadline, deadline_after=None)
        if bench.tried(asked, some(bench)).accepted:
            return deadline
    return None


def admitted(bench: Bench, spec: m.JobSpec) -> float | None:
    """The earliest deadline with which the policy takes the job on."""
    fork, now = bench.scheduler.fork(bench.picture), bench.now

    def admits(reach: float) -> bool:
        asked = msgspec.structs.replace(spec, deadline=now + reach, deadline_after=None)
        return fork.policy.admit(admission_view(fork.state, asked, fork.policy), asked).accepted

    low, high = 0.0, 1.0
    while not admits(high):
        low, high = high, 2.0 * high
        if high > bench.horizon:
            return None
    while high - low > CLOSE * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if admits(middle) else (middle, high)
    return now + high


# --------------------------------------------------------------------------- ways


def ways(bench: Bench, found: Trial, queues: Sequence[str]) -> Iterator[Way]:
    """What might be better than the job as it is asked for."""
    spec, topology = found.spec, bench.scheduler.state.topology
    changed = partial(msgspec.structs.replace, spec)
    if not spec.roles:
        yield from _sizes(bench.scheduler, spec)
    for kind in topology.kinds:
        foreign = spec.kinds and kind not in spec.kinds
        if foreign or (len(topology.kinds) > 1 and spec.kinds != (kind,)):
            yield Way(f"Run it on {kind}", changed(kinds=(kind,)))
    for queue in queues:
        if queue != spec.queue:
            yield Way(f"Submit it to queue {queue}", changed(queue=queue))
    # Whoever comes later is done later: that helps where there is no room or clean power now.
    supply = bench.scheduler.state.supply
    series = () if supply is None else (supply.carbon, supply.price)
    varies = any(each is not None and len(each.values) > 1 for each in series)
    if (varies or not found.accepted) and spec.deadline_after is None:
        for later in LATER_SECONDS:
            if spec.deadline is None or bench.now + later < spec.deadline:
                yield Way(f"Submit it {format_duration(later)} later", spec, later)


def _sizes(scheduler: Scheduler, spec: m.JobSpec) -> Iterator[Way]:
    """Fewer devices, more of them, or a range where one size was asked for."""
    topology = scheduler.state.topology
    most = max((topology.usable(p) for p in range(len(topology.kinds))), default=0)
    low, high = spec.sizes()[0], spec.sizes()[-1]
    sizes = {max(low // 2, 1), max(high // 2, 1), 2 * high} | ({low, high} if low < high else set())
    if high > most > 0:
        sizes.add(1 << (most.bit_length() - 1))
    for size in sorted(size for size in sizes if size <= most and (size,) != spec.sizes()):
        words = f"Ask for {many(size)}" + (" only" if size < high else "")
        yield Way(words, msgspec.structs.replace(spec, devices=m.Range(min=size, max=size)))
    if low == high > 1:
        wide = m.Range(min=1, max=high)
        yield Way(f"Accept 1 to {many(high)}", msgspec.structs.replace(spec, devices=wide))

"""Fills the future with what was promised: the fewest devices with which each deadline is kept.

Progressive filling (Gu et al., "ElasticFlow", ASPLOS '23, section 4.1). Jobs are taken in order
of deadline. Each finds the lowest quota with which it is done in time on what those before it have
left free, and of that the latest moment from which the quota is needed: until then the next lower
one is enough. Its *minimum satisfactory share* is what this comes to now.

A quota and the moment at which it begins are a point on a line from "nothing until the deadline"
to "everything from now on", and both the work done and the devices used grow along that line. So
whoever did more than was planned, or finds more devices free, moves back on the line; who comes
after finds no fewer devices free than before. That is why a set of deadlines that could be kept
once can be kept at every later moment, if speeds are as believed and no device is lost, and why
nothing of a plan need be remembered. For this a job whose sizes leave devices unused below its
quota must count these as its own (`whole`); else later jobs may plan with them and lose them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from bough.core.model import INFINITY
from bough.core.policy import Classes, Floats, Ints, View
from bough.core.profile import Profile

#: An end this late is in time: clocks and products of times are rounded.
SLACK_SECONDS: Final = 1e-4
#: Nobody waits for so short a time: else what is left by rounding would be put off for ever.
WAITS_SECONDS: Final = 2 * SLACK_SECONDS
#: The earliest deadline is looked for to this, or to this part of the time until then.
PRECISE_SECONDS: Final = 1.0
PRECISE_SHARE: Final = 0.002


class Levels(NamedTuple):
    """Sizes worth having, ascending from 0, and the speed at each."""

    sizes: tuple[int, ...]
    speeds: tuple[float, ...]

    def upto(self, most: int) -> Levels:
        """Those no larger than `most`, if any is left."""
        if self.sizes[-1] <= most or most < self.sizes[1]:
            return self
        count = bisect_right(self.sizes, most)
        return Levels(self.sizes[:count], self.speeds[:count])


class Need(NamedTuple):
    """What a job needs: so much work done by its deadline."""

    levels: Levels
    left: float
    deadline: float
    #: Devices it holds whatever happens, because it may not be parked; 0 or one of its sizes.
    floor: int = 0


class Share(NamedTuple):
    """What is planned for one job."""

    #: Devices now: its minimum satisfactory share.
    now: int
    #: (from when, devices), beginning now, the last with 0 devices at its planned end.
    steps: tuple[tuple[float, int], ...]

    @property
    def end(self) -> float:
        """When it is done at the latest."""
        return self.steps[-1][0]

    def next_above(self, size: int) -> float:
        """When from now on it needs more than so many devices; never is infinitely late."""
        return next((at for at, planned in self.steps[1:] if planned > size), INFINITY)


# ------------------------------------------------------------------ from columns


def useful_levels(classes: Classes) -> list[Levels]:
    """The levels of each class: every size that is faster than all smaller ones."""
    made: list[Levels] | None = classes.cache.get("useful levels")
    if made is None:
        made = []
        for sizes, speeds in zip(classes.sizes.tolist(), classes.speed.tolist(), strict=True):
            best, kept = 0.0, [(0, 0.0)]
            for size, speed in zip(sizes[1:], speeds[1:], strict=True):
                if speed > best and size > kept[-1][0]:
                    best = speed
                    kept.append((size, speed))
            made.append(Levels(*map(tuple, zip(*kept, strict=True))))
        classes.cache["useful levels"] = made
    return made


def every_level(classes: Classes) -> list[Levels]:
    """The levels of each class, also those that slow it down."""
    return [
        Levels(*map(tuple, zip(*dict.fromkeys(zip(sizes, speeds, strict=True)), strict=True)))
        for sizes, speeds in zip(classes.sizes.tolist(), classes.speed.tolist(), strict=True)
    ]


def promised_rows(view: View) -> Ints:
    """Rows with a guaranteed deadline and known work, the most urgent first."""
    jobs = view.jobs
    rows = (jobs.guaranteed & (jobs.deadline < INFINITY) & (jobs.left_at < INFINITY)).nonzero()[0]
    if len(rows) > 1:
        rows = rows[np.argsort(jobs.deadline[rows], kind="stable")]
    return rows


def needs_of(view: View, rows: Ints, margin: float | Floats = 0.0) -> list[Need]:
    """What these rows need; `margin` is the part of their speed that is not counted on."""
    jobs, found = view.jobs, useful_levels(view.classes)
    left = jobs.left()[rows] / (1.0 - margin)
    floor = jobs.lo[rows] * (jobs.must[rows] != 0)
    columns = (jobs.cls[rows], jobs.max[rows], left, jobs.deadline[rows], floor)
    needs = []
    for cls, most, work, deadline, held in zip(*(c.tolist() for c in columns), strict=True):
        levels = found[cls].upto(most)
        # What ends at this very moment, but for rounding, is not to be pushed aside.
        ends_now = work <= SLACK_SECONDS * levels.speeds[-1]
        by = max(deadline, view.now + WAITS_SECONDS) if ends_now else deadline
        least = levels.sizes[bisect_right(levels.sizes, held) - 1]
        needs.append(Need(levels, work, by, least))
    return needs


# ------------------------------------------------------------------ filling


class Rules(NamedTuple):
    """How plans of the future are made."""

    #: A job counts devices that it cannot use below its quota as its own.
    whole: bool = True
    #: Planned changes are at multiples of this only; 0: at any moment.
    slot_seconds: float = 0.0


RULES: Final = Rules()


def fill(profile: Profile, needs: Sequence[Need], rules: Rules = RULES) -> list[Share | None]:
    """Plan for each in turn, the most urgent first; None for who would be late.

    Taken out of the profile is what was planned, and of those that are late their floors.
    """
    hold_floors(profile, needs)
    return [fill_one(profile, need, rules) for need in needs]


def fits(profile: Profile, needs: Sequence[Need], rules: Rules = RULES) -> bool:
    """Whether all of them can be done in time; the profile is used up."""
    hold_floors(profile, needs)
    return all(fill_one(profile, need, rules) is not None for need in needs)


def hold_floors(profile: Profile, needs: Sequence[Need]) -> None:
    """Whoever may not be parked holds its floor while others plan."""
    for need in needs:
        if need.floor:
            _hold(profile, need, need.floor)


def _hold(profile: Profile, need: Need, devices: int) -> None:
    now, (sizes, speeds) = profile.times[0], need.levels
    profile.take(now, now + need.left / speeds[sizes.index(need.floor)], devices)


def fill_one(profile: Profile, need: Need, rules: Rules) -> Share | None:
    """The fewest devices with which this job is done in time on what is free."""
    slot = rules.slot_seconds
    if need.left <= 0:
        now = profile.times[0]
        return Share(need.floor, ((now, need.floor), (now, 0)))
    if slot:
        need = need._replace(deadline=need.deadline // slot * slot)
    if need.floor:
        _hold(profile, need, -need.floor)
    quota = _lowest_quota(profile, need)
    if quota is None:
        if need.floor:
            _hold(profile, need, need.floor)
        return None
    high, rises = quota
    if slot:
        rises = rises // slot * slot
    if rises <= profile.times[0] + WAITS_SECONDS:
        rises = profile.times[0]
    least = need.levels.sizes.index(need.floor)
    return _take(profile, need, (max(high - 1, least), max(high, least)), rises, rules.whole)


def _lowest_quota(profile: Profile, need: Need) -> tuple[int, float] | None:
    """The level it needs at most, and the latest moment from which it needs that."""
    times, free, (sizes, speeds) = profile.times, profile.free, need.levels
    last = bisect_left(times, need.deadline)
    if not last:
        return None
    ends = [*times[1:last], need.deadline]
    usable = [max(bisect_right(sizes, devices) - 1, 0) for devices in free[:last]]
    seconds_at = [0.0] * len(sizes)
    for begin, end, level in zip(times, ends, usable, strict=False):
        seconds_at[level] += end - begin
    above, done = sum(seconds_at), 0.0
    for level in range(1, len(sizes)):
        above -= seconds_at[level - 1]
        more = speeds[level] - speeds[level - 1]
        if done + more * above >= need.left - SLACK_SECONDS * speeds[level]:
            break
        done += more * above
    else:
        return None
    seconds = max(need.left - done, 0.0) / more
    for k in range(last - 1, -1, -1):
        if usable[k] >= level:
            if seconds <= ends[k] - times[k]:
                return level, ends[k] - seconds
            seconds -= ends[k] - times[k]
    return level, times[0]


def _take(
    profile: Profile, need: Need, quotas: tuple[int, int], rises: float, whole: bool
) -> Share:
    """Take the first quota and, once it rises, the second out of the profile until all is done."""
    sizes, speeds = need.levels
    profile.cut(need.deadline)
    profile.cut(rises)
    times, free = profile.times, profile.free
    steps: list[tuple[float, int]] = []
    left, k = need.left, 0
    while True:
        begin = times[k]
        quota = quotas[begin >= rises]
        level = max(min(bisect_right(sizes, free[k]) - 1, quota), 0)
        if not steps or steps[-1][1] != sizes[level]:
            steps.append((begin, sizes[level]))
        end = times[k + 1] if k + 1 < len(times) else INFINITY
        end = min(end, need.deadline) if begin < need.deadline else begin
        work = speeds[level] * (end - begin)
        if work >= left and end < need.deadline:
            end = begin + left / speeds[level] if left > 0 else begin
            profile.cut(end)
        if end > begin:
            free[k] -= max(min(sizes[quota], free[k]), sizes[level]) if whole else sizes[level]
        if work >= left or end >= need.deadline:
            steps.append((end, 0))
            return Share(steps[0][1], tuple(steps))
        left -= work
        k += 1


def rush(profile: Profile, levels: Levels, left: float) -> Share:
    """Let it have all it can use from now on, whenever that is free, and take that."""
    sizes, speeds = levels
    times, free = profile.times, profile.free
    steps: list[tuple[float, int]] = []
    k = 0
    while True:
        level = max(bisect_right(sizes, free[k]) - 1, 0)
        if not steps or steps[-1][1] != sizes[level]:
            steps.append((times[k], sizes[level]))
        end = times[k + 1] if k + 1 < len(times) else INFINITY
        if speeds[level] * (end - times[k]) >= left or end == INFINITY:
            end = times[k] + left / speeds[level] if level else INFINITY
            if end > times[k]:
                profile.take(times[k], end, sizes[level])
            steps.append((end, 0))
            return Share(steps[0][1], tuple(steps))
        left -= speeds[level] * (end - times[k])
        free[k] -= sizes[level]
        k += 1


# ------------------------------------------------------------------ one more


def placed(needs: Sequence[Need], newcomer: Need) -> list[Need]:
    """The newcomer among others in order of deadline, behind those of the same."""
    at = bisect_right(needs, newcomer.deadline, key=lambda need: need.deadline)
    return [*needs[:at], newcomer, *needs[at:]]


def soonest_end(now: float, need: Need, rules: Rules = RULES) -> float:
    """When a job could be done at the earliest, with all it can use from now on."""
    end, slot = now + need.left / need.levels.speeds[-1], rules.slot_seconds
    return math.ceil(end / slot) * slot if slot else end


def earliest_deadline(
    profile: Profile, needs: Sequence[Need], newcomer: Need, rules: Rules = RULES
) -> float:
    """The earliest deadline with which the newcomer fits beside others that fit without it.

    Found by halving, and true: with the answer all of them fit. Infinite where none does.
    """

    def works(deadline: float) -> bool:
        among = placed(needs, newcomer._replace(deadline=deadline))
        return fits(profile.copy(), among, rules)

    after, now = profile.copy(), profile.times[0]
    early, soonest = max(newcomer.deadline, now), soonest_end(now, newcomer, rules)
    if soonest > early and works(soonest):
        return soonest
    fill(after, needs, rules)
    behind = rush(after, newcomer.levels, newcomer.left).end + rules.slot_seconds
    last = max(behind, needs[-1].deadline + rules.slot_seconds) if needs else behind
    late = next((d for d in (behind, last) if d < INFINITY and works(d)), INFINITY)
    if late == INFINITY or late <= early:
        return late
    while late - early > max(PRECISE_SECONDS, PRECISE_SHARE * (late - now)):
        middle = (early + late) / 2
        if works(middle):
            late = middle
        else:
            early = middle
    return late

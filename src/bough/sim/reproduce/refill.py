"""How ElasticFlow's released simulator fills the future, which is not quite as its paper has it.

A job begins at a moment where something changes anyhow (another job ends, a deadline), not at the
latest that keeps its deadline, and ends as soon as its work is done. Ends and deadlines are rounded
up to slots that are counted from the decision; in the last slot only the time until the deadline
counts. Who is late takes all it can use.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

from bough.core.filling import Levels
from bough.core.profile import Profile

#: From, to, devices.
Steps = list[tuple[float, float, int]]


class Work(NamedTuple):
    """A job: what it has left to do, by when."""

    levels: Levels
    left: float
    deadline: float


class Filled(NamedTuple):
    """What is planned for a job."""

    steps: Steps
    #: When it is done, and when its devices are given back.
    done: float
    end: float
    #: Where its last size is taken to end when plans are compared: at the next moment at which
    #: something changes before its deadline, if there is one.
    until: float

    def device_time(self) -> float:
        """Device-seconds from now on, as they are reckoned there."""
        last = self.steps[-1]
        held = sum((end - begin) * size for begin, end, size in self.steps[:-1])
        return held + (self.until - last[0]) * last[2]

    def at(self, moment: float) -> int:
        """Devices at a moment."""
        return next((size for begin, end, size in self.steps if begin <= moment < end), 0)

    def next_change(self, now: float) -> float:
        """When it next has another number of devices before its end."""
        size = self.at(now)
        changes = [begin for begin, _, other in self.steps if begin > now and other != size]
        gaps = [end for _, end, _ in self.steps[:-1] if end > now and self.at(end) != size]
        over = [self.until] if self.until > self.end else []
        return min([*changes, *gaps, *over], default=math.inf)


def slots(seconds: float, slot: float) -> float:
    """Rounded up to whole slots."""
    return math.ceil(seconds / slot - 1e-9) * slot


def merged(profile: Profile) -> None:
    """Forget moments at which nothing changes."""
    for k in range(len(profile.times) - 1, 0, -1):
        if profile.free[k] == profile.free[k - 1]:
            del profile.times[k], profile.free[k]


class Refill:
    """The future of one decision."""

    def __init__(self, now: float, devices: int, slot: float) -> None:
        self.now, self.devices, self.slot = now, devices, slot
        self.profile = Profile(now, devices)

    def fill(self, work: Work, begin: float | None = None, tail: int = 0) -> Filled:
        """Plan a job from a moment on, and take what it needs.

        Where nothing else is planned any more and it is late, it takes the level `tail`, if given.
        """
        begin = self.now if begin is None else begin
        aligned = self.now + slots(work.deadline - self.now, self.slot)
        if aligned > begin:
            first, last = self.profile.cut(begin), 0
            last = self.profile.cut(aligned)
            found = self._quota(work, first, last)
            quota, point = found or (len(work.levels.sizes) - 1, first)
            filled = self._take(work, first, last, (quota, point, tail), late=found is None)
        else:
            filled = self._rush(work, begin, [], tail)
        merged(self.profile)
        return filled

    def _seconds(self, work: Work, k: int) -> float:
        """How much of a segment counts."""
        times = self.profile.times
        end = times[k + 1] if k + 1 < len(times) else math.inf
        aligned = self.now + slots(work.deadline - self.now, self.slot)
        return (work.deadline if end == aligned else end) - times[k]

    def _level(self, work: Work, k: int, most: int) -> int:
        """The level that fits into what is free in a segment."""
        return min(most, bisect_right(work.levels.sizes, self.profile.free[k]) - 1)

    def _quota(self, work: Work, first: int, last: int) -> tuple[int, int] | None:
        """The lowest quota that is enough, and the segment with which it begins."""
        for quota in range(1, len(work.levels.sizes)):
            done = 0.0
            for k in range(last - 1, first - 1, -1):
                level = self._level(work, k, quota)
                if not level:
                    continue
                done += self._seconds(work, k) * work.levels.speeds[level]
                if done >= work.left:
                    return quota, k
        return None

    def _take(
        self, work: Work, first: int, last: int, which: tuple[int, int, int], late: bool
    ) -> Filled:
        """Take the quota from the point on and the next lower one before it, until all is done."""
        quota, point, tail = which
        sizes, speeds = work.levels
        steps: Steps = []
        left, times = work.left, self.profile.times
        for k in range(first, last):
            level = self._level(work, k, quota if k >= point else quota - 1)
            if not level:
                continue
            begin, did = times[k], self._seconds(work, k) * speeds[level]
            if k >= point and not late and (did >= left or k == last - 1):
                whole = math.ceil(left / speeds[level] - 1e-9)
                end = begin + slots(whole, self.slot)
                until = times[k + 1] if k + 1 < last else end
                self.profile.take(begin, end, sizes[level])
                return Filled([*steps, (begin, end, sizes[level])], begin + whole, end, until)
            self.profile.free[k] -= sizes[level]
            steps.append((begin, times[k + 1], sizes[level]))
            left -= did
        return self._rush(work._replace(left=left), times[last], steps, tail)

    def _rush(self, work: Work, begin: float, steps: Steps, tail: int) -> Filled:
        """Take all it can use, however late it is done."""
        sizes, speeds = work.levels
        left, k = max(work.left, 1e-9), self.profile.cut(begin)
        while True:
            times = self.profile.times
            level = self._level(work, k, len(sizes) - 1)
            start, end = times[k], times[k + 1] if k + 1 < len(times) else math.inf
            level = tail if tail and end == math.inf else level
            if level and (end - start) * speeds[level] >= left:
                done = math.ceil(start + left / speeds[level])
                until = self.now + slots(done - self.now, self.slot)
                self.profile.take(start, min(until, end), sizes[level])
                return Filled([*steps, (start, min(until, end), sizes[level])], done, until, until)
            if level:
                self.profile.free[k] -= sizes[level]
                steps.append((start, end, sizes[level]))
                left -= (end - start) * speeds[level]
            k += 1

    # ------------------------------------------------------------------ leftovers

    def without(self, filled: Filled) -> Refill:
        """The same future without a job's plan."""
        other = Refill(self.now, self.devices, self.slot)
        other.profile = self.profile.copy()
        for begin, end, size in filled.steps:
            other.profile.take(begin, end, -size)
        merged(other.profile)
        return other

    def grown(self, work: Work, size: int) -> Filled:
        """Plan a job with so many devices until something changes, and then as it needs."""
        times = self.profile.times
        aligned = self.now + slots(work.deadline - self.now, self.slot)
        until = times[1] if len(times) > 1 else max(aligned, self.now + self.slot)
        tail = work.levels.sizes.index(size)
        speed = work.levels.speeds[tail]
        done = math.ceil(self.now + work.left / speed)
        end = self.now + slots(done - self.now, self.slot)
        if until >= end and work.deadline >= done:
            self.profile.take(self.now, end, size)
            merged(self.profile)
            return Filled([(self.now, end, size)], done, end, end)
        seconds = (work.deadline if until == aligned else until) - self.now
        self.profile.take(self.now, until, size)
        rest = self.fill(work._replace(left=work.left - seconds * speed), until, tail)
        return Filled([(self.now, until, size), *rest.steps], rest.done, rest.end, rest.until)

    def greedy(self, work: Work) -> Filled:
        """Plan a job with its largest size, or what is free of that, from now on."""
        sizes, speeds = work.levels
        steps: Steps = []
        left, k = work.left, 0
        while True:
            times = self.profile.times
            level = self._level(work, k, len(sizes) - 1)
            start, end = times[k], times[k + 1] if k + 1 < len(times) else math.inf
            if level:
                done = math.ceil(start + left / speeds[level] - 1e-9)
                if end >= done:
                    until = min(self.now + slots(done - self.now, self.slot), end)
                    self.profile.take(start, until, sizes[level])
                    merged(self.profile)
                    return Filled([*steps, (start, until, sizes[level])], done, done, done)
                self.profile.free[k] -= sizes[level]
                steps.append((start, end, sizes[level]))
                left -= (end - start) * speeds[level]
            k += 1

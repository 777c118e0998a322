"""AFS: the next device goes to the job for which it shortens the mean completion time most."""

from __future__ import annotations

import numpy as np

from bough.core.order import fit_in_order, in_order
from bough.core.policy import Floats, Ints, Policy, View
from bough.core.share import peaks


class Afs(Policy, frozen=True):
    """Apathetic future share: short jobs first, but not where a longer one uses a device better.

    Citation: Hwang et al., "Elastic resource sharing for distributed deep learning", NSDI '21,
    section 4 (AFS-L; `blind`: in the manner of AFS-P).
    Faithful: jobs without devices get their least first, the shortest first. Of two jobs the one
    that would end sooner gets the next device, unless the other gains more: the other's gain as
    part of its new speed against the sooner's gain as part of its present speed, which is what
    makes the sum of both completion times least. The winner meets the next job, from the one
    that ends soonest to the one that ends last.
    Ours: the gain of a step of several devices is that of its first, taken in proportion; steps
    are the steepest to any size up to the peak. Decided at arrivals and ends; jobs of higher
    priority and those that may not be parked get their least first.
    """

    content_with = "peak"

    #: Take no notice of estimates: a job is expected to go on for as long as it has gone on.
    blind: bool = False

    def plan(self, view: View) -> Ints:
        jobs, classes = view.jobs, view.classes
        left = jobs.done() if self.blind else jobs.left_or_guess()
        first = left / np.maximum(classes.speed_at(jobs.cls, jobs.lo), 1e-300)
        order = in_order(view, first)
        sizes = fit_in_order(jobs.lo, view.devices, order, skip=True)
        rows = np.sort(sizes.nonzero()[0])
        free = view.devices - int(np.add.reduce(sizes))
        if free and len(rows):
            _Contest(view, rows, left[rows], sizes[rows]).share(free, sizes)
        return sizes


class _Contest:
    """Jobs in order of when they would end, and what a device more is worth to each."""

    def __init__(self, view: View, rows: Ints, left: Floats, size: Ints) -> None:
        cls = view.jobs.cls[rows]
        self.sizes, self.speeds = view.classes.sizes[cls], view.classes.speed[cls]
        most = np.minimum(view.jobs.hi[rows], peaks(view.classes)[cls])
        self.allowed = self.sizes <= most[:, None]
        self.left, self.size, self.rows = left, size, rows
        self.speed = view.classes.speed_at(cls, size)
        time = left / np.maximum(self.speed, 1e-300)
        #: Positions in the columns above, soonest end first, and those ends.
        self.line = np.argsort(time, kind="stable")
        self.time = time[self.line]

    def share(self, free: int, granted: Ints) -> None:
        """Give devices out, step by step, until nobody can use what is left."""
        step, slope = self._steps(np.arange(len(self.line)), free)
        keeps, takes = self._worth(slope, self.speed)
        keeps, takes, line = keeps[self.line], takes[self.line], self.line
        while True:
            at = _winner(keeps, takes)
            if at < 0:
                return
            job = int(line[at])
            if step[job] > free:  # devices have become fewer since
                one = np.array([job])
                more, gain = self._steps(one, free)
                step[job] = more[0]
                keeps[at], takes[at] = (x[0] for x in self._worth(gain, self.speed[one]))
                continue
            free -= int(step[job])
            self.size[job] += step[job]
            granted[self.rows[job]] = self.size[job]
            reached = int(self.sizes[job].searchsorted(self.size[job]))
            self.speed[job] = self.speeds[job, reached]
            time = self.left[job] / self.speed[job]
            one = np.array([job])
            more, gain = self._steps(one, free)
            step[job] = more[0]
            keep, take = (float(x[0]) for x in self._worth(gain, self.speed[one]))
            to = int(self.time[:at].searchsorted(time, "right"))
            for column, value in ((line, job), (self.time, time), (keeps, keep), (takes, take)):
                column[to + 1 : at + 1] = column[to:at].copy()
                column[to] = value

    def _steps(self, jobs: Ints, free: int) -> tuple[Ints, Floats]:
        """The steepest step each can take with so many devices, and its gain for each device."""
        more = self.sizes[jobs] - self.size[jobs, None]
        gain = self.speeds[jobs] - self.speed[jobs, None]
        able = (more > 0) & (more <= free) & self.allowed[jobs] & (gain > 0)
        slope = np.where(able, gain / np.maximum(more, 1), 0.0)
        best = slope.argmax(axis=1)
        every = np.arange(len(jobs))
        return more[every, best], slope[every, best]

    @staticmethod
    def _worth(slope: Floats, speed: Floats) -> tuple[Floats, Floats]:
        """What a device is worth to each against jobs that end later, and against earlier ones.

        Negative: nothing can be gained.
        """
        keeps = slope / np.maximum(speed, 1e-300)
        takes = slope / np.maximum(speed + slope, 1e-300)
        return np.where(slope > 0, keeps, -1.0), np.where(slope > 0, takes, -1.0)


def _winner(keeps: Floats, takes: Floats) -> int:
    """The place of who wins against all in turn, from the soonest end to the last; -1: nobody."""
    at, found = -1, -1
    worth = -0.5
    while True:
        beats = takes[at + 1 :] > worth
        ahead = int(beats.argmax()) if len(beats) else 0
        if not len(beats) or not beats[ahead]:
            return found
        at = found = at + 1 + ahead
        worth = float(keeps[at])

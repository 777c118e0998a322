"""DRAGON: gangs start whole, others make room for who waits long, idle devices are grown onto."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bough.core.attained import by_start
from bough.core.model import INFINITY
from bough.core.policy import Ints, Plan, Policy, View
from bough.core.share import fit_in_order, in_order, peaks, stable_order

#: A wait this close to its end is over: sums of times are rounded.
SLACK_SECONDS = 1e-6
#: How long one waits before others make room for it, by generation.
PATIENCE = {1: 120.0, 2: 30.0}


class Dragon(Policy, frozen=True):
    """First in, first out with skipping; elastic jobs give way to who waits, and grow when idle.

    Citation: Lin, Yeh and Chou, "DRAGON: a dynamic scheduling and scaling controller for managing
    distributed deep learning jobs in Kubernetes cluster", CLOSER '19, and its two released
    controllers (`generation` 1 of 2019 and 2 of 2020).
    Faithful: a gang starts with all it asks for, else with its least, or not at all; who does not
    fit is passed over; for who has waited `wait_seconds` running jobs shrink, each down to its
    least, in the order in which they started: in generation 1 for the smallest that waits, in 2
    for the head of the line, and until that fits nobody else starts. When nothing was started or
    resized for `idle_seconds`, jobs grow onto idle devices, one step each in turn (1) or each as
    far as it can (2).
    Ours: not done what the controllers do wrong: one device more than needed must be to spare;
    who was made room for starts a decision later; idle devices are summed up although no place
    fits (here the core proves the place first); a head that cannot be helped puts off growth for
    ever; a job that cannot grow once is not looked at again; workers are placed before parameter
    servers, so that a gang may not start after all. Growth stops where it makes a job no faster.
    All that fit start at once. When something was done last is told by those that still run.
    """

    #: Which of the two documented controllers.
    generation: Literal[1, 2] = 2
    #: Others shrink for who has waited so long; none: 120 s in generation 1, 30 s in 2.
    wait_seconds: float | None = None
    #: Jobs grow when nothing was started or resized for so long.
    idle_seconds: float = 60.0

    def __post_init__(self) -> None:
        if not (self.patience() >= 0 and self.idle_seconds > 0):
            raise ValueError("wait_seconds must be 0 or more, idle_seconds positive")

    def patience(self) -> float:
        """How long one waits before others make room for it."""
        return PATIENCE[self.generation] if self.wait_seconds is None else self.wait_seconds

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        line = in_order(view)
        runs = line[jobs.size[line] > 0]
        granted = np.where(jobs.size > 0, np.clip(jobs.size, jobs.lo, jobs.hi), 0)
        if int(granted.sum()) > view.devices:
            granted = fit_in_order(granted, view.devices, runs, skip=True)
        waits = line[granted[line] == 0]
        since = jobs.since[waits] + self.patience() - SLACK_SECONDS
        blocked = self._make_room(view, waits[since <= view.now], granted)
        if not blocked:
            start(view, granted, waits)
        acted = bool((granted != jobs.size).any())
        last = float(jobs.since[runs].max(initial=-INFINITY))
        grows_at = last + self.idle_seconds - SLACK_SECONDS
        most = np.maximum(np.minimum(peaks(view.classes)[jobs.cls], jobs.hi), jobs.lo)
        if not acted and grows_at <= view.now:
            self._grow(view, granted, most, runs)
        moments = [float(at) for at in since[granted[waits] == 0] if at > view.now]
        if (granted < most)[granted > 0].any():
            moments.append(view.now + self.idle_seconds if acted else grows_at)
        later = (at for at in moments if at > view.now)
        return Plan(granted, wake_at=min(later, default=INFINITY) + SLACK_SECONDS)

    def _make_room(self, view: View, waits: Ints, granted: Ints) -> bool:
        """Those who have waited enough are made room for, and start; whether all others wait."""
        jobs, lo = view.jobs, view.jobs.lo
        if self.generation == 1:
            waits = waits[stable_order(lo[waits])]
        running = by_start(jobs)
        running = running[granted[running] > lo[running]].tolist()
        free = view.devices - int(granted.sum())
        stuck = False
        for row in waits.tolist():
            need = int(lo[row])
            stuck = need > free + int((granted - lo)[running].sum())
            if stuck:
                break
            for victim in running:
                if free < need and granted[victim] > lo[victim]:
                    after = smaller(view, victim, int(granted[victim]), need - free)
                    free += int(granted[victim]) - after
                    granted[victim] = after
            granted[row] = need
            free -= need
        for row in waits[granted[waits] > 0].tolist():
            more = max(min(int(jobs.wish[row]), int(jobs.hi[row])) - int(lo[row]), 0)
            if more <= free:
                granted[row] += more
                free -= more
        return stuck and self.generation == 2

    def _grow(self, view: View, granted: Ints, most: Ints, runs: Ints) -> None:
        """Idle devices go to running jobs, in turn or one after another."""
        free = view.devices - int(granted.sum())
        grew = True
        while grew and free > 0:
            grew = False
            for row in runs.tolist():
                while (more := larger(view, row, int(granted[row]), int(most[row]), free)) > 0:
                    granted[row] += more
                    free -= more
                    grew = True
                    if self.generation == 1:
                        break


def start(view: View, granted: Ints, line: Ints) -> None:
    """One after another, all that fit: with what they ask for, else with their least."""
    jobs = view.jobs
    free = view.devices - int(granted.sum())
    for row in line.tolist():
        lo = int(jobs.lo[row])
        wish = max(min(int(jobs.wish[row]), int(jobs.hi[row])), lo)
        if not granted[row] and lo <= free:
            granted[row] = wish if wish <= free else lo
            free -= int(granted[row])


def smaller(view: View, row: int, size: int, by: int) -> int:
    """The largest size that gives back so many devices; the least it may have where none does."""
    sizes = view.classes.sizes[view.jobs.cls[row]]
    lo = int(view.jobs.lo[row])
    return max((s for s in sizes.tolist() if lo <= s <= size - by), default=lo)


def larger(view: View, row: int, size: int, most: int, free: int) -> int:
    """How many devices more the next size takes; 0 if there is none or no room for it."""
    sizes = view.classes.sizes[view.jobs.cls[row]].tolist()
    return next((s - size for s in sizes if size < s <= min(most, size + free)), 0)

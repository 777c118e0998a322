"""Lucid: newcomers are tried for a while, and then go by what jobs like them needed."""

from __future__ import annotations

import numpy as np

from bough.core.model import INFINITY
from bough.core.policy import Floats, Ints, Plan, Policy, View
from bough.core.share import fit_in_order, in_order, stable_order, wished

#: A trial this close to its end is over: clocks and sums of times are rounded.
SLACK_SECONDS = 1e-6


class Lucid(Policy, frozen=True):
    """A short trial for every newcomer; who outlives it waits its turn, short ones first.

    Citation: Hu et al., "Lucid: a non-intrusive, scalable and interpretable scheduler for deep
    learning training jobs", ASPLOS '23, sections 3.2 and 3.4.
    Faithful: a new job of few devices first runs for a short time on devices set aside for that,
    the smallest first; most that fail or were only tried out end there. Then it waits by the
    device time expected of it, which is learnt from jobs that ended; what runs is not preempted.
    Ours: the expectation is that of `qssf` (a median by model and user), where Lucid has an
    additive model of more features. Devices for trials are a part of all (`trial_share`), used by
    others while nobody is to be tried; who has been tried goes on where it is if those devices
    are not needed. Left out: packing two jobs on one device by a decision tree over utilisation,
    as devices are held by one job at a time here, and the placing and resizing of that part by
    the time of day.
    """

    content_with = "wish"
    learns = True

    #: How long a newcomer is tried.
    trial_seconds: float = 200.0
    #: Jobs of more devices are not tried.
    trial_devices: int = 8
    #: The part of all devices that trials are served on first.
    trial_share: float = 0.1

    def __post_init__(self) -> None:
        if not (self.trial_seconds >= 0 and self.trial_devices >= 0):
            raise ValueError("trial_seconds and trial_devices must be 0 or more")
        if not 0 <= self.trial_share <= 1:
            raise ValueError(f"trial_share {self.trial_share} must be from 0 to 1")

    def plan(self, view: View) -> Plan:
        jobs, size = view.jobs, wished(view.jobs, keep=True)
        runs, ran = jobs.size > 0, jobs.ran()
        tried = (ran >= self.trial_seconds - SLACK_SECONDS) | (size > self.trial_devices)
        # Whose trial ended while it ran, and who has not been started since.
        since_start = np.where(runs, view.now - np.nan_to_num(jobs.run_since), 0.0)
        outlived = runs & tried & (size <= self.trial_devices)
        outlived &= ran - since_start < self.trial_seconds - SLACK_SECONDS
        # 0: has its turn, 1: is being tried, 2: is to be tried now, 3: outlived its trial,
        # 4: waits for its turn, 5: waits for a trial.
        stage = np.where(runs, np.where(tried, 0, 1), np.where(tried, 4, 5))
        stage[outlived] = 3
        stage[self._next(view, size, stage)] = 2
        service = np.where(stage >= 3, expected(view), size)
        order = in_order(view, stage, service)
        granted = fit_in_order(size, view.devices, order, skip=True)
        ahead = (self.trial_seconds - ran)[(granted > 0) & ~tried]
        waits = bool((granted == 0).any())
        wake_at = view.now + float(ahead.min(initial=INFINITY)) if waits else INFINITY
        return Plan(size, order=order, wake_at=wake_at)

    def _next(self, view: View, size: Ints, stage: Ints) -> Ints:
        """Who is tried next on the devices for that, the smallest first."""
        room = int(self.trial_share * view.devices) - int(size[stage == 1].sum())
        line = (stage == 5).nonzero()[0]
        line = line[stable_order(size[line])]
        found: Ints = line[: int(size[line].cumsum().searchsorted(room, "right"))]
        return found


def expected(view: View) -> Floats:
    """Device-seconds that are still expected of each job, by jobs that ended."""
    jobs, done = view.jobs, view.jobs.done()
    left = np.maximum(jobs.guess - done, done / 2)
    found: Floats = left / jobs.wish_speed * jobs.wish
    return found

"""Backfilling: small jobs slip into the gaps in front of the one that waits for room."""

from __future__ import annotations

import numpy as np

from bough.core.model import INFINITY
from bough.core.order import CHUNK, stable_order
from bough.core.policy import Bools, Floats, Ints, Plan, Policy, View
from bough.core.share import fit_in_order, in_order, wished

#: An estimate passed by this much was wrong, and says nothing any more.
GRACE_SECONDS = 1.0


class Backfill(Policy, frozen=True):
    """First in, first out, but a job may pass the first that waits if it does not delay it.

    Citation: D. Lifka, "The ANL/IBM SP scheduling system", JSSPP '95 (EASY); A. Mu'alem and
    D. Feitelson, IEEE TPDS 12 (2001).
    Faithful: only the head of the line has a reservation; a later job starts if it ends before
    that, or takes only devices the head will leave over; nothing is preempted.
    Ours: an estimate is bounded by the job's longest run time; where nothing is known it is
    infinite, so that such jobs only fill what the head leaves over, and nothing passes a head
    whose start cannot be foretold. An estimate that has been passed is unknown.
    """

    content_with = "wish"

    #: Run time to expect of jobs without an estimate.
    unknown_seconds: float = INFINITY

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        size = wished(jobs, keep=True)
        order = in_order(view, jobs.size == 0)
        granted = fit_in_order(size, view.devices, order)
        free = view.devices - int(granted.sum())
        refused = granted[order] < size[order]
        head = int(refused.argmax()) if len(refused) else 0
        wake_at = INFINITY
        if free and head + 1 < len(order) and refused[head]:
            running = granted.nonzero()[0]
            seconds = self._seconds(view, running)
            wake_at = view.now + float(seconds.min(initial=INFINITY)) + GRACE_SECONDS
            start, spare = _reservation(granted[running], seconds, int(size[order[head]]), free)
            line = order[head + 1 :] if start < INFINITY else order[:0]
            for begin in range(0, len(line), CHUNK):
                rows = line[begin : begin + CHUNK]
                ends_before = self._seconds(view, rows) <= start
                got, free, spare = _slip_in(size[rows], ends_before, free, spare)
                granted[rows[got]] = size[rows[got]]
                if not free:
                    break
        return Plan(granted, order=order, wake_at=wake_at)

    def _seconds(self, view: View, rows: Ints) -> Floats:
        """How long each of these jobs will run from now on, at most."""
        jobs = view.jobs
        running = jobs.size[rows] > 0
        speed = np.where(running, jobs.rate[rows], jobs.wish_speed[rows])
        left = jobs.left_at[rows] - jobs.rate[rows] * (view.now - jobs.since[rows])
        seconds = np.full(len(rows), INFINITY)
        np.divide(left, speed, out=seconds, where=speed > 0)
        ran = jobs.ran()[rows]
        unknown = seconds == INFINITY
        seconds[unknown] = self.unknown_seconds - ran[unknown]
        bound = jobs.max_run[rows] - ran
        for end in (seconds, bound):
            end[running & (end <= -GRACE_SECONDS)] = INFINITY
        np.minimum(seconds, bound, out=seconds)
        return np.where(running, seconds, np.maximum(seconds, 0.0))


def _reservation(size: Ints, seconds: Floats, need: int, free: int) -> tuple[float, int]:
    """In how many seconds the head can start, and how many devices it then leaves over."""
    soonest = stable_order(seconds)
    seconds, will_be_free = seconds[soonest], free + size[soonest].cumsum()
    at = int(will_be_free.searchsorted(need))
    if at == len(size):
        return INFINITY, 0
    # Whatever ends at the same moment is free as well.
    last = int(seconds.searchsorted(seconds[at], "right")) - 1
    return float(seconds[at]), int(will_be_free[last]) - need


def _slip_in(size: Ints, ends_before: Bools, free: int, spare: int) -> tuple[Ints, int, int]:
    """Who of a line starts now, and what is left free now and spare later.

    Those that end before the head starts need room now only, the others also afterwards. As in
    share.fit_in_order, a pass grants up to the first that does not fit, which rules out every
    later one of its kind as large as it.
    """
    line = np.arange(len(size))
    granted: list[Ints] = []
    while True:
        line = line[size[line] <= np.where(ends_before[line], free, min(free, spare))]
        if not len(line):
            return np.concatenate([line, *granted]), free, spare
        now = size[line].cumsum()
        later = np.where(ends_before[line], 0, size[line]).cumsum()
        fits = (now <= free) & (later <= spare)
        n = len(line) if fits.all() else int(fits.argmin())
        granted.append(line[:n])
        free -= int(now[n - 1])
        spare -= int(later[n - 1])
        line = line[n:]

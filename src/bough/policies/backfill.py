"""Backfilling: small jobs slip into the gaps in front of the one that waits for room."""

from __future__ import annotations

import numpy as np

from bough.core.model import INFINITY
from bough.core.policy import Bools, Floats, Ints, Plan, Policy, View
from bough.core.share import in_order, wished


class Backfill(Policy, frozen=True):
    """First in, first out, but a job may pass the first that waits if it does not delay it.

    Citation: D. Lifka, "The ANL/IBM SP scheduling system", JSSPP '95 (EASY); A. Mu'alem and
    D. Feitelson, IEEE TPDS 12 (2001).
    Faithful: only the head of the line has a reservation; a later job starts if it ends before
    that, or takes only devices the head will leave over; nothing is preempted.
    Ours: an estimate is bounded by the job's longest run time; where nothing is known it is
    infinite, so that such jobs only fill what the head leaves over, and nothing passes a head
    whose start cannot be foretold.
    """

    #: Estimate for jobs that have none.
    unknown_seconds: float = INFINITY

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        size = wished(jobs, keep=True)
        order = in_order(view, jobs.size == 0)
        fits = size[order].cumsum() <= view.devices
        n = len(order) if fits.all() else int(fits.argmin())
        granted = np.zeros(jobs.n, np.int64)
        granted[order[:n]] = size[order[:n]]
        if n + 1 < len(order):
            seconds = self._seconds(view)
            free = view.devices - int(granted.sum())
            start, spare = _reservation(granted, seconds, int(size[order[n]]), free)
            if start < INFINITY:
                line = order[n + 1 :]
                row = line[_slip_in(size[line], seconds[line] <= start, free, spare)]
                granted[row] = size[row]
        return Plan(granted, order=order)

    def _seconds(self, view: View) -> Floats:
        """How long each job will run from now on, at most."""
        jobs = view.jobs
        speed = np.where(jobs.size > 0, jobs.rate, jobs.wish_speed)
        seconds = np.full(jobs.n, INFINITY)
        np.divide(jobs.left(), speed, out=seconds, where=speed > 0)
        seconds[seconds == INFINITY] = self.unknown_seconds
        np.minimum(seconds, np.maximum(jobs.max_run - jobs.ran(), 0.0), out=seconds)
        return seconds


def _reservation(granted: Ints, seconds: Floats, need: int, free: int) -> tuple[float, int]:
    """In how many seconds the head can start, and how many devices it then leaves over."""
    running = granted.nonzero()[0]
    running = running[np.argsort(seconds[running], kind="stable")]
    will_be_free = free + granted[running].cumsum()
    at = int(will_be_free.searchsorted(need))
    if at == len(running):
        return INFINITY, 0
    start = float(seconds[running[at]])
    # Whatever ends at the same moment is free as well.
    at = int(seconds[running].searchsorted(start, "right")) - 1
    return start, int(will_be_free[at]) - need


def _slip_in(size: Ints, ends_before: Bools, free: int, spare: int) -> Ints:
    """Which of a line start now: those that end in time need room now, others also later.

    As in share.fit_in_order, a pass grants up to the first that does not fit, which rules out
    every later one of its kind as large as it.
    """
    line = np.arange(len(size))
    granted: list[Ints] = []
    while True:
        line = line[size[line] <= np.where(ends_before[line], free, min(free, spare))]
        if not len(line):
            return np.concatenate(granted) if granted else line
        now = size[line].cumsum()
        later = np.where(ends_before[line], 0, size[line]).cumsum()
        fits = (now <= free) & (later <= spare)
        n = len(line) if fits.all() else int(fits.argmin())
        granted.append(line[:n])
        free -= int(now[n - 1])
        spare -= int(later[n - 1])
        line = line[n:]

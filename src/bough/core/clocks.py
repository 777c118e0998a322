"""Clocks that a plan gives to jobs: what is believed of their speed, and the commands to bodies."""

from __future__ import annotations

from collections.abc import Mapping

from bough.core.drawing import pace_of
from bough.core.jobs import Job
from bough.core.model import Clock
from bough.core.state import CLS, DONE, LEFT, RATE, SINCE, SIZE, State


def set_clocks(state: State, wanted: Mapping[int, float]) -> None:
    """Give rows their clocks (those that are not named: full speed), and tell their bodies.

    A body may be unable or not allowed to set clocks; nothing waits for it.
    """
    if not wanted and not state.slowed:
        return
    items = state.table.items
    rows = {row for serial in state.slowed if (row := state.by_serial(serial)) is not None}
    for row in sorted(rows | wanted.keys()):
        job, clock = items[row], wanted.get(row, 1.0)
        if clock != job.clock:
            job.clock = clock
            if job.held:
                state.out.append(Clock(job.id, job.epoch, clock))
    state.slowed = {items[row].serial for row in wanted}
    for row in sorted(rows):
        set_rate(state, row, items[row])


def slow_down(state: State) -> None:
    """Let what is believed of the speed of jobs follow their clocks, after sizes were changed.

    A change of size leaves the rate of full clock; any other was measured, or is right.
    """
    wi, wf, gone = state.table.wi, state.table.wf, []
    for serial in sorted(state.slowed):
        row = state.by_serial(serial)
        if row is None:
            gone.append(serial)
        elif wf[RATE, row] == state.classes.speed(int(wi[CLS, row]), int(wi[SIZE, row])):
            set_rate(state, row, state.table.items[row])
    state.slowed.difference_update(gone)


def set_rate(state: State, row: int, job: Job) -> None:
    """Renew the believed rate; the books since its last change of size are kept as if it had been
    so all the time, because a clock is no change of size (as in apply.progressed)."""
    wi, wf = state.table.wi, state.table.wf
    cls, size = int(wi[CLS, row]), int(wi[SIZE, row])
    before, rate = float(wf[RATE, row]), state.classes.speed(cls, size)
    if job.clock != 1.0 and size:
        rate *= pace_of(state, job, cls, size)
    if rate == before:
        return
    elapsed = state.now - float(wf[SINCE, row]) if job.held else 0.0
    wf[RATE, row] = rate
    wf[DONE, row] += (before - rate) * elapsed
    wf[LEFT, row] += (rate - before) * elapsed

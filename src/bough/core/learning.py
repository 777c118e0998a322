"""What running jobs teach: how fast each really is, and how much work jobs of its sort need."""

from __future__ import annotations

from bough.core.arrival import newcomer
from bough.core.drawing import pace_of
from bough.core.fitting import OnlineFit
from bough.core.jobs import Job
from bough.core.model import JobSpec
from bough.core.state import (
    ATTAINED,
    CLS,
    DONE,
    MEASURED,
    POOL,
    RATE,
    SINCE,
    SIZE,
    TINY,
    WISH,
    WISH_SPEED,
    State,
)

#: A measured rate that differs from the believed one by less than this teaches nothing new.
SURPRISE = 0.02


def expected_work(state: State, spec: JobSpec) -> float:
    """Work of a job nobody gave an estimate for, by model and user."""
    return state.speedups.prior.expect_seconds(spec.model, spec.user)


def learn_end(state: State, job: Job) -> None:
    """A job reached its end: so much work was it."""
    row, wi, wf = state.table.row(job), state.table.wi, state.table.wf
    work = float(wf[DONE, row] + wf[RATE, row] * (state.now - wf[SINCE, row]))
    if work <= 0.0:
        return
    if job.spec.estimate_seconds is not None:
        pool, size = int(wi[POOL, row]), int(wi[SIZE, row])
        estimate = newcomer(state, job.spec, pool, state.now).left
        # Of a job that was seen to be slow, more time than work was underestimated.
        # A fit is drawn towards the curve; the last rate is what was seen, but for a slow clock.
        rate = float(wf[RATE, row]) if job.clock == 1.0 else 0.0
        seen = rate or state.classes.speed(int(wi[CLS, row]), size) or 1.0
        slow = state.curve_for(job.spec, pool).at(size) / seen
        state.speedups.prior.observe_estimate(job.spec.user, work / estimate * slow)
    if state.learns:
        used = float(wf[ATTAINED, row] + wi[SIZE, row] * (state.now - wf[SINCE, row]))
        state.speedups.prior.observe(job.spec.model, job.spec.user, work)
        state.speedups.prior.keep(used)


def learn_rate(state: State, job: Job, size: int, rate: float) -> None:
    """A job reported its rate: correct what is believed of it at every size."""
    row, table = state.table.row(job), state.table
    if size not in state.classes.sizes(int(table.wi[CLS, row])):
        return
    believed = state.classes.speed(int(table.wi[CLS, row]), size)
    measured = rate
    if job.clock != 1.0:  # at full clock it would be faster
        rate /= pace_of(state, job, int(table.wi[CLS, row]), size)
    if not table.wi[MEASURED, row]:
        table.wi[MEASURED, row] = 1
        state.speedups.prior.observe_surprise(rate / max(believed, TINY))
    if abs(rate - believed) <= SURPRISE * believed and job.serial not in state.fits:
        return
    fit = state.fits.get(job.serial)
    if fit is None:
        fit = state.fits[job.serial] = OnlineFit(state.curve_for(job.spec, int(table.pool[row])))
    else:
        state.classes.release(int(table.wi[CLS, row]))
    state.content = False  # it may want another size now
    fit.add(size, rate)
    adopt(state, job, row)
    if size == int(table.wi[SIZE, row]):
        table.wf[RATE, row] = measured


def adopt(state: State, job: Job, row: int) -> None:
    """Let the job have a class of its own by its corrected curve."""
    table, sizes = state.table, state.classes.sizes(int(state.table.wi[CLS, row]))
    curve = state.fits[job.serial].curve(sizes)
    speed = tuple(curve.at(s) for s in sizes)
    table.wi[CLS, row] = state.classes.own(sizes, speed)
    table.wf[WISH_SPEED, row] = speed[sizes.index(int(table.wi[WISH, row]))]

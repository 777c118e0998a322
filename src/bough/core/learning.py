"""What running jobs teach: how fast each really is, and how much work jobs of its sort need."""

from __future__ import annotations

from bough.core.arrival import estimated_work
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
        learn_estimate(state, job, row, work)
    if state.learns:
        used = float(wf[ATTAINED, row] + wi[SIZE, row] * (state.now - wf[SINCE, row]))
        state.speedups.prior.observe(job.spec.model, job.spec.user, work)
        state.speedups.prior.keep(used)


def learn_estimate(state: State, job: Job, row: int, work: float) -> None:
    """How many times as long it took as by its user's estimate and its believed speed."""
    spec, wi, cls = job.spec, state.table.wi, int(state.table.wi[CLS, row])
    size = int(wi[SIZE, row])
    speed = state.classes.speed(cls, size)
    if job.serial in state.fits:
        cls = state.class_for(spec, int(wi[POOL, row]))
    sizes, speeds = state.classes.curve(cls)
    estimate = estimated_work(spec, sizes, speeds)
    # Of a job that was seen to be slow, more time than work was underestimated.
    # A fit is drawn towards the curve; the last rate is what was seen, but for a slow clock.
    rate = float(state.table.wf[RATE, row]) if job.clock == 1.0 else 0.0
    believed = speeds[sizes.index(size)] if size in sizes else 0.0
    state.speedups.prior.observe_estimate(
        spec.user, work / estimate * believed / (rate or speed or 1.0)
    )


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

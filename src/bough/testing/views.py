"""Builds views from a few words, so that a test shows what matters in it and nothing else.

view = make_view(8, [Row(sizes=(1, 2, 4)), Row(sizes=(8,), size=8)])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bough.core.jobs import Column, IntColumn, Jobs
from bough.core.model import INFINITY
from bough.core.policy import Classes, Ints, Plan, Policy, PowerView, View
from bough.core.series import Series
from bough.core.share import fit_in_order


@dataclass(frozen=True, kw_only=True)
class Row:
    """One job of a view; what is not said is the usual. Times are those of the view's clock."""

    #: Sizes allowed, ascending, and the believed speed at each (none: sizes to the power of 0.9).
    sizes: tuple[int, ...] = (1,)
    speed: tuple[float, ...] = ()
    #: Devices it holds.
    size: int = 0
    #: Bounds for now, and the size it wishes (None: its smallest, its largest, its largest).
    lo: int | None = None
    hi: int | None = None
    wish: int | None = None
    must: bool = False
    busy: bool = False
    guaranteed: bool = False
    priority: int = 0
    queue: int = 0
    user: int = 0
    pool: int = 0
    weight: float = 1.0
    #: What it takes of CPUs and memory with each device, beside the share that a device is.
    takes: tuple[float, float] = (0.0, 0.0)
    #: What it adds to an idle device's power, of what the hungriest adds; and the part of its
    #: computing that a lower clock makes longer.
    draw: float = 1.0
    sensitivity: float = 0.4
    #: None: as many seconds after 0 as its place in the list.
    submitted: float | None = None
    #: When its size last changed; what it had used, run and left to do then.
    since: float = 0.0
    attained: float = 0.0
    ran: float = 0.0
    left: float = INFINITY
    #: Work expected of it from jobs that ended.
    guess: float = 0.0
    deadline: float = INFINITY
    max_run: float = INFINITY

    def speeds(self) -> tuple[float, ...]:
        return self.speed or tuple(size**0.9 for size in self.sizes)


def make_view(
    devices: int,
    rows: Sequence[Row],
    *,
    now: float = 0.0,
    scattered: bool = False,
    history: Sequence[float] = (),
    allowance: float | None = None,
) -> View:
    """A view of these jobs. `scattered` puts them between others of a larger table.

    With an `allowance` of watts it tells of power (make_power).
    """
    keys = list(dict.fromkeys((row.sizes, row.speeds()) for row in rows)) or [((1,), (1.0,))]
    width = 1 + max(len(sizes) for sizes, _ in keys)
    sizes, speed = np.zeros((len(keys), width), np.int64), np.zeros((len(keys), width))
    for i, (own_sizes, own_speed) in enumerate(keys):
        count = len(own_sizes) + 1
        sizes[i, 1:count], sizes[i, count:] = own_sizes, own_sizes[-1]
        speed[i, 1:count], speed[i, count:] = own_speed, own_speed[-1]
    room = 2 * len(rows) + 1 if scattered else len(rows)
    places = range(1, room, 2) if scattered else range(room)
    ints = np.full((Jobs.INTS, room), 7, np.int64)
    floats = np.full((Jobs.FLOATS, room), 7.0)
    for i, (place, row) in enumerate(zip(places, rows, strict=True)):
        values = _values(row, i, keys.index((row.sizes, row.speeds())))
        for name, column in columns().items():
            table = ints if isinstance(column, IntColumn) else floats
            table[column.row, place] = values.get(name, 0)
    pick = np.array(places, np.int64) if scattered else slice(0, room)
    for array in (sizes, speed, ints, floats):
        array.flags.writeable = False
    jobs = Jobs(ints, floats, pick, len(rows), now)
    used = np.sort(np.array(history, np.float64))
    takes = np.array([(1.0, *row.takes) for row in rows]).reshape(-1, 3)
    return View(
        now, devices, jobs, Classes(sizes, speed), pools=(devices,), history=used, takes=takes,
        power=None if allowance is None else make_power(rows, allowance),
    )  # fmt: skip


def make_power(rows: Sequence[Row], allowance: float) -> PowerView:
    """Devices are at 50 W when idle and 250 at most, half of what work adds falls with the clock,
    and nodes of 4 are at 400 W with idle devices. A kWh is 300 g for ten minutes, then 100, then
    200, and so on.
    """
    draw = np.array([row.draw for row in rows], np.float64)
    sensitivity = np.array([row.sensitivity for row in rows], np.float64)
    found = PowerView(50.0, 200.0, 0.5, draw, sensitivity, 400.0, 4, allowance, allowance)
    found.carbon = Series((300.0, 100.0, 200.0), 600.0)
    return found


def columns() -> dict[str, Column]:
    """Every column of the table of jobs by its name."""
    return {name: made for name, made in vars(Jobs).items() if isinstance(made, Column)}


def _values(row: Row, index: int, cls: int) -> dict[str, float]:
    """The numbers of a row by column."""
    speed = dict(zip(row.sizes, row.speeds(), strict=True))
    wish = row.sizes[-1] if row.wish is None else row.wish
    began = row.since if row.size else math.nan
    return {
        "serial": index, "cls": cls, "size": row.size, "min": row.sizes[0], "max": row.sizes[-1],
        "lo": row.sizes[0] if row.lo is None else row.lo,
        "hi": row.sizes[-1] if row.hi is None else row.hi,
        "must": row.must, "priority": row.priority, "queue": row.queue, "pool": row.pool,
        "wish": wish, "busy": row.busy, "ready": 1, "guaranteed": row.guaranteed,
        "user": row.user, "submitted": index if row.submitted is None else row.submitted,
        "since": row.since, "begun": began, "run_since": began, "attained_until": row.attained,
        "left_at": row.left, "rate": speed[row.size] if row.size else 0.0,
        "deadline": row.deadline, "ran_until": row.ran, "weight": row.weight,
        "max_run": row.max_run, "wish_speed": speed[wish], "guess": row.guess,
    }  # fmt: skip


def described(view: View) -> str:
    """What is in a view, a line for each job, for the message of a failing test."""
    jobs, classes = view.jobs, view.classes
    lines = [f"{view.devices} devices at {view.now}"]
    for i in range(jobs.n):
        count = len(set(classes.sizes[jobs.cls[i]].tolist()))
        own = dict(zip(classes.sizes[jobs.cls[i]], classes.speed[jobs.cls[i]], strict=True))
        speed = ", ".join(f"{size}: {speed:g}" for size, speed in list(own.items())[1:count])
        rest = {name: getattr(jobs, name)[i].item() for name in columns()}
        lines.append(f"job {i} {{{speed}}} " + " ".join(f"{k}={v:g}" for k, v in rest.items()))
    return "\n".join(lines)


def granted(policy: Policy, view: View) -> Ints:
    """What a policy's plan comes to where everything can be placed that fits by number."""
    plan = as_plan(policy.plan(view))
    if plan.order is None:
        return plan.sizes
    return fit_in_order(plan.sizes, view.devices, plan.order, plan.skip)


def as_plan(answer: Plan | Ints) -> Plan:
    """The plan, also where the policy answered with sizes alone, or with sizes on each kind."""
    plan = answer if isinstance(answer, Plan) else Plan(answer)
    return replace(plan, sizes=plan.sizes.sum(axis=1)) if plan.sizes.ndim > 1 else plan


def carried_out(view: View, sizes: Ints, after_seconds: float = 0.0) -> View:
    """The view some time after every job got its size, if nothing else happened."""
    jobs, now = view.jobs, view.now
    ints, floats = jobs.ints[:, jobs.pick].copy(), jobs.floats[:, jobs.pick].copy()
    column = {name: made.row for name, made in columns().items()}
    changed = (sizes != jobs.size).nonzero()[0]
    new = {
        "attained_until": jobs.attained(), "left_at": jobs.left(), "ran_until": jobs.ran(),
        "done_until": jobs.done(),
        "since": np.full(jobs.n, now), "rate": view.classes.speed_at(jobs.cls, sizes),
    }  # fmt: skip
    for name, values in new.items():
        floats[column[name], changed] = values[changed]
    for name in ("run_since", "begun"):
        fresh = ((jobs.size == 0) & (sizes > 0)).nonzero()[0]
        floats[column[name], fresh] = now
    ints[column["size"]] = sizes
    later = Jobs(ints, floats, slice(0, jobs.n), jobs.n, now + after_seconds)
    return replace(view, now=now + after_seconds, jobs=later)

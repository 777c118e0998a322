"""Taking turns on kinds of device: shares of time by a linear program, and who goes next.

A share says for how much of the time a job is to have a kind; rounds work the shares off, as jobs
are whole: a gang has all its devices of one kind, or none.
"""

from __future__ import annotations

import numpy as np

from bough.core.choices import choices, rooms
from bough.core.policy import Bools, Floats, Ints, View
from bough.core.programs import Program, solve
from bough.core.share import stable_order, wished

#: What throughput counts beside fairness: enough to decide between equally fair shares.
LITTLE = 1e-4


def sizes_and_speeds(view: View) -> tuple[Ints, Floats]:
    """The size each job would have on each kind, as near its wish as can be, and its speed."""
    jobs, table = view.jobs, choices(view)
    n, pools = jobs.n, len(rooms(view))
    size, speed = np.zeros((n, pools), np.int64), np.zeros((n, pools))
    wish = wished(jobs)
    for p in range(pools):
        here = (table.pool == p).nonzero()[0]
        if not len(here):
            continue
        able = (table.speed[:, here] > 0) & (table.size[here] <= wish[:, None])
        last = len(here) - 1 - able[:, ::-1].argmax(axis=1)
        able_at_all = able.any(axis=1)
        size[:, p] = np.where(able_at_all, table.size[here][last], 0)
        speed[:, p] = np.where(able_at_all, table.speed[np.arange(n), here[last]], 0.0)
    return size, speed


def share_time(
    worth: Floats, size: Ints, pools: Floats, least: Floats | None = None
) -> Floats | None:
    """Shares of time with the greatest least sum of worths (or with at least these), then most.

    Nobody has more than all of the time, no kind is given more than it has. None: that little
    cannot be had by all, which only happens with given leasts.
    """
    n, kinds = worth.shape
    row, kind = (worth > 0).nonzero()
    count, at = len(row), np.arange(len(row))
    value = worth[row, kind]
    even = least is None
    gain = np.append(LITTLE * value / max(n, 1), 1.0) if even else np.append(value, 0.0)
    served = np.unique(row)
    # Rows of the program: all of the time, all devices, and what each job has at least.
    low = np.full(n, -np.inf)
    low[served] = 0.0 if least is None else least[served]
    found = solve(
        Program(
            gain=gain, low=np.zeros(count + 1), high=np.append(np.ones(count), np.inf),
            row=np.concatenate([row, n + kind, n + kinds + row, n + kinds + served]),
            column=np.concatenate([at, at, at, np.full(len(served), count)]),
            entry=np.concatenate(
                [np.ones(count), size[row, kind], value, np.full(len(served), -1.0 * even)]
            ),
            row_low=np.concatenate([np.full(n + kinds, -np.inf), low]),
            row_high=np.concatenate([np.ones(n), pools, np.full(n, np.inf)]),
        )
    )  # fmt: skip
    if found is None:
        return None
    share = np.zeros((n, kinds))
    share[row, kind] = np.clip(found[:count], 0.0, 1.0)
    return share


def granted(view: View, size: Ints, speed: Floats, priority: Floats, keeps: Bools) -> Ints:
    """Pairs of job and kind in order of priority, as far as devices reach."""
    jobs = view.jobs
    plan, free = np.zeros_like(size), rooms(view).tolist()
    here = jobs.pool if view.classes_on.size else np.zeros(jobs.n, np.int64)
    for row in keeps.nonzero()[0].tolist():
        plan[row, here[row]] = jobs.size[row]
        free[int(here[row])] -= int(jobs.size[row])
    stays = (np.arange(size.shape[1]) == here[:, None]) & (jobs.size > 0)[:, None]
    # The band, the priority, then who is there already; who came first.
    order = np.lexsort((~stays.ravel(), -priority.ravel(), np.repeat(-jobs.priority, len(free))))
    for pair in order.tolist():
        row, kind = divmod(pair, len(free))
        if speed[row, kind] > 0 and size[row, kind] <= free[kind] and not plan[row].any():
            plan[row, kind] = size[row, kind]
            free[kind] -= int(size[row, kind])
    return plan


def fastest_first(view: View, size: Ints, speed: Floats, keeps: Bools) -> Ints:
    """Who runs goes on; then job after job takes the fastest kind with room, until one has none."""
    jobs = view.jobs
    plan = granted(view, size, np.zeros_like(speed), speed, keeps)
    free = rooms(view) - plan.sum(axis=0)
    for row in stable_order(-jobs.priority).tolist():
        if keeps[row]:
            continue
        able = (speed[row] > 0) & (size[row] <= free)
        if not able.any():
            break
        kind = int(np.where(able, speed[row], -1.0).argmax())
        plan[row, kind] = size[row, kind]
        free[kind] -= size[row, kind]
    return plan

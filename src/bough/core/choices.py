"""What each job may have on each kind of device now: a table of options to choose from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bough.core.policy import Bools, Floats, Ints, View

#: Rows, what each option is worth to them, devices of each pool: the option of each row.
Search = Callable[[Ints, Floats, Ints], Ints]


@dataclass(slots=True, frozen=True)
class Choices:
    """Option k is `size[k]` devices of pool `pool[k]`."""

    size: Ints
    pool: Ints
    #: Believed speed of each row with each option; 0 where the row may not have it now.
    speed: Floats
    #: The option each row has now; -1: none.
    held: Ints


def choices(view: View) -> Choices:
    """Every size on every kind that some row could have, kind by kind, the smallest first.

    In a view of one kind, that is pool 0.
    """
    jobs, classes = view.jobs, view.classes
    kinds, here = view.classes_on, jobs.pool
    if not kinds.size:
        kinds, here = jobs.cls[:, None], np.zeros(jobs.n, np.int64)
    sizes: list[Ints] = []
    tables: list[Floats] = []
    for p, most in enumerate(rooms(view).tolist()):
        used = kinds[:, p]
        found = np.unique(classes.sizes[np.unique(used[used >= 0])])
        found = found[(found > 0) & (found <= most)]
        sizes.append(found)
        tables.append(_speeds(view, kinds[:, p], found))
    size, speed = np.concatenate(sizes), np.concatenate(tables, axis=1)
    pool = np.repeat(np.arange(len(sizes)), [len(s) for s in sizes])
    own = pool == here[:, None]
    bound = (size >= jobs.lo[:, None]) & (size <= jobs.hi[:, None])
    speed[np.where(own, ~bound, (jobs.must != 0)[:, None])] = 0.0
    has = own & (size == jobs.size[:, None])
    held = np.where(has.any(axis=1), has.argmax(axis=1), -1) if len(size) else np.full(jobs.n, -1)
    return Choices(size, pool, speed, held)


def _speeds(view: View, own: Ints, sizes: Ints) -> Floats:
    """Believed speeds of rows of these classes at these sizes; 0 where there is no such size."""
    classes = view.classes
    used, row = np.unique(own, return_inverse=True)
    steps, speeds = classes.sizes[used], classes.speed[used]
    table = np.zeros((len(used), len(sizes)))
    for k, size in enumerate(sizes.tolist()):
        table[:, k] = np.where(steps == size, speeds, 0.0).max(axis=1, initial=0.0)
    table[used < 0] = 0.0
    found: Floats = table[row]
    return found


def rooms(view: View) -> Ints:
    """Devices of each pool; in a view of one kind, what there is to hand out."""
    return np.array(view.pools if view.classes_on.size else (view.devices,), np.int64)


def choose(view: View, table: Choices, worth: Floats, best: Search) -> Ints:
    """The option of each row (-1: none), priority by priority, those worth most in sum.

    `worth` is that of each option to each row, or -inf. `best` chooses among some rows and so many
    devices of each pool. Who may not be parked is set aside for, and worth more than all others.
    """
    jobs, must = view.jobs, view.jobs.must != 0
    here = jobs.pool if view.classes_on.size else np.zeros(jobs.n, np.int64)
    option = np.full(jobs.n, -1)
    free = rooms(view)
    finite = np.where(np.isfinite(worth), worth, 0.0)
    worth = worth + (must * (1.0 + jobs.n * finite.max(initial=0.0)))[:, None]
    priorities = np.unique(jobs.priority)[::-1].tolist()
    for priority in priorities:
        rows: Ints = (jobs.priority == priority).nonzero()[0]
        aside = free.copy()
        later = must & (jobs.priority < priority)
        np.subtract.at(aside, here[later], jobs.lo[later])
        found = best(rows, worth[rows], aside)
        option[rows] = found
        taken = found[found >= 0]
        np.subtract.at(free, table.pool[taken], table.size[taken])
    return option


def restart_factor(view: View, now: float, seconds: float) -> Floats:
    """What restarting a job once more leaves of its speed, by how often it was so far."""
    jobs = view.jobs
    age = np.maximum(now - jobs.submitted, 0.0)
    restarts = np.maximum(jobs.changes - 1, 0)
    found: Floats = np.maximum(age - restarts * seconds, 0.0) / np.maximum(age + seconds, 1e-9)
    return found


def where_else(view: View, table: Choices) -> Bools:
    """Which options would restart a running row: all but the one it has."""
    other = np.arange(len(table.size)) != table.held[:, None]
    found: Bools = other & (view.jobs.size > 0)[:, None]
    return found


def as_matrix(view: View, chosen: Choices, option: Ints) -> Ints:
    """The plan that gives each row its option (-1: nothing)."""
    plan = np.zeros((view.jobs.n, len(rooms(view))), np.int64)
    rows: Ints = (option >= 0).nonzero()[0]
    plan[rows, chosen.pool[option[rows]]] = chosen.size[option[rows]]
    return plan


def nothing_to_gain(table: Choices, option: Ints) -> bool:
    """Whether each row has its fastest option: then time alone changes no plan."""
    rows = np.arange(len(option))
    has = np.where(option >= 0, table.speed[rows, option], 0.0) if len(table.size) else 0.0
    return bool((has >= table.speed.max(axis=1, initial=0.0)).all())

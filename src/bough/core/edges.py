"""Single devices at the edge beside a pool in the cloud: what a job would gain by going there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bough.core.filling import RULES, Rules, fill
from bough.core.jobs import Column, IntColumn, Jobs
from bough.core.policy import Bools, Floats, Ints, View
from bough.core.promises import promises


class Edge(NamedTuple):
    """The pools of a view: which lie at the edge, and what it takes to get there."""

    #: Pools at the edge, and the others.
    pools: list[int]
    cloud: list[int]
    #: Seconds that each row's state is on its way to or from each edge pool.
    move: Floats


def edge_of(view: View) -> Edge:
    """From the nodes' terms: a pool is at the edge if all of its nodes are."""
    kinds = range(len(view.pools))
    if view.ground is None or not view.classes_on.size:
        return Edge([], list(kinds), np.zeros((view.jobs.n, len(view.pools))))
    tiers: dict[int, set[str]] = {}
    links = np.zeros(len(view.pools))
    for site in view.ground.sites:
        tiers.setdefault(site.pool, set()).add(site.terms.tier)
        if site.terms.link:
            links[site.pool] = min(links[site.pool] or np.inf, site.terms.link)
    found = [p for p in kinds if tiers.get(p) == {"edge"}]
    load = np.array(view.ground.state_bytes)
    slow = np.where(links > 0, links, np.inf)
    return Edge(found, [p for p in kinds if p not in found], load[:, None] / slow[None, :])


def seconds_there(view: View, edge: Edge, pool: int) -> Floats:
    """How long each row would still run on one device there, with its way; inf: it cannot."""
    own = view.classes_on[:, pool]
    able = own >= 0
    cls = np.maximum(own, 0)
    able &= (view.classes.sizes[cls] == 1).any(axis=1)
    speed = view.classes.speed_at(cls, np.ones(len(cls), np.int64))
    there = (view.jobs.pool == pool) & (view.jobs.size > 0)
    way = np.where(there, 0.0, edge.move[:, pool])
    time = view.jobs.left_or_guess() / np.maximum(speed, 1e-300) + way
    return np.where(able, time, np.inf)


def in_pool(view: View, rows: Ints, pool: int) -> View:
    """These rows as a view of one pool, in which those that are elsewhere have nothing yet."""
    jobs = view.jobs
    pick = np.arange(jobs.ints.shape[1])[jobs.pick][rows]
    ints, floats = jobs.ints[:, pick].copy(), jobs.floats[:, pick].copy()
    column = {name: made.row for name, made in vars(Jobs).items() if isinstance(made, IntColumn)}
    elsewhere = jobs.pool[rows] != pool
    own = view.classes_on[rows, pool] if view.classes_on.size else jobs.cls[rows]
    sizes = view.classes.sizes[np.maximum(own, 0)]
    new = {
        "cls": own, "size": 0, "lo": sizes[:, 1], "min": sizes[:, 1], "hi": sizes[:, -1],
        "max": sizes[:, -1], "wish": sizes[:, -1], "must": 0,
    }  # fmt: skip
    for name, values in new.items():
        ints[column[name]] = np.where(elsewhere, values, ints[column[name]])
    rate: Column = vars(Jobs)["rate"]
    floats[rate.row] = np.where(elsewhere, 0.0, floats[rate.row])
    made = Jobs(ints, floats, slice(0, len(rows)), len(rows), jobs.now)
    return View(view.now, view.pools[pool], made, view.classes, (view.pools[pool],))


def late(view: View, rules: Rules = RULES) -> Bools:
    """Rows of a view of one pool whose promise cannot be kept there beside the others'."""
    profile, needs, rows = promises(view)
    found = np.zeros(view.jobs.n, np.bool_)
    for row, share in zip(rows.tolist(), fill(profile, needs, rules), strict=True):
        found[row] = share is None
    return found


def saved(view: View, seconds: Floats, pool: int) -> Floats:
    """Device-seconds in the cloud that a second at the edge saves, with each job at its least."""
    own = view.classes_on[:, pool]
    cls = np.maximum(own, 0)
    least = view.classes.sizes[cls, 1]
    speed = view.classes.speed_at(cls, least)
    spent = view.jobs.left_or_guess() * least / np.maximum(speed, 1e-300)
    # Who could not run there at all is saved by the edge alone.
    return np.where(own >= 0, spent / np.maximum(seconds, 1e-300), np.inf)

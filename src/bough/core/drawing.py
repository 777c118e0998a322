"""What jobs draw in this state, as believed, and what a policy that asks is told of power."""

from __future__ import annotations

import numpy as np

from bough.core.energy import (
    Work,
    busy_share,
    device_watts,
    pace,
    power_of,
    standing_watts,
    work_of,
)
from bough.core.jobs import Job
from bough.core.places import merge
from bough.core.policy import Ints, PowerView
from bough.core.state import CLS, State


def drawn(state: State) -> float:
    """Watts of all that jobs hold or still have to leave, and of the nodes they are on."""
    nodes, kinds, pools = state.topology.nodes, state.topology.kinds, state.topology.pools
    powers = [power_of(kind) for kind in kinds]
    touched: set[int] = set()
    total = 0.0
    for job in state.table.items:
        slots = (
            merge(job.held, job.leaving) if job.held and job.leaving else job.held or job.leaving
        )
        if not slots:
            continue
        busy, work = busy_of(state, job), work_for(state, job)
        for node, mask in slots:
            power = powers[pools[node]]
            touched.add(node)
            more = device_watts(power, work, busy, job.clock) - power.idle
            total += more * mask.bit_count()
    return total + sum(standing_watts(nodes[node]) for node in sorted(touched))


def work_for(state: State, job: Job) -> Work:
    """What a job makes of a device, by the model it trains."""
    return work_of(state.speedups.trained(job.spec.model))


def busy_of(state: State, job: Job) -> float:
    """The share of its time in which a job computes, as believed; all of it while it leaves."""
    row = state.table.row(job)
    return busy_at(state, int(state.table.wi[CLS, row]), int(state.table.size[row]))


def busy_at(state: State, cls: int, size: int) -> float:
    """The same for a class of jobs at a size."""
    if not size:
        return 1.0
    sizes, speed = state.classes.curve(cls)
    return busy_share(size, state.classes.speed(cls, size), speed[0] / sizes[0])


def pace_of(state: State, job: Job, cls: int, size: int) -> float:
    """What its clock leaves of a job's speed at a size."""
    return pace(work_for(state, job), busy_at(state, cls, size), job.clock)


def power_view(state: State, rows: Ints | None, pool: int) -> PowerView:
    """Power as a policy sees it that asks about these rows of a pool."""
    items, meter, topology = state.table.items, state.meter, state.topology
    works = [work_for(state, items[row]) for row in (range(len(items)) if rows is None else rows)]
    own = [n for n, p, up in zip(topology.nodes, topology.pools, topology.up, strict=True)
           if up and p == pool]  # fmt: skip
    power = power_of(topology.kinds[pool])
    standing = sum(map(standing_watts, own))
    found = PowerView(
        power.idle, power.peak - power.idle, power.scaled,
        np.array([work.draw for work in works]), np.array([work.sensitivity for work in works]),
        node_watts=standing / len(own) if own else 0.0,
        node_devices=max((node.devices for node in own), default=1),
    )  # fmt: skip
    supply = state.supply
    if supply is not None:
        found.carbon, found.price = supply.carbon, supply.price
    if meter is not None:
        share = 1.0
        if len(topology.kinds) > 1:
            share = most_watts(state, pool) / max(
                sum(most_watts(state, p) for p in range(len(topology.kinds))), 1.0
            )
        found.allowance, found.even_allowance = meter.allowance() * share, meter.even() * share
        found.until = meter.until()
    return found


def most_watts(state: State, pool: int) -> float:
    """What a pool draws when all of it is hard at work."""
    topology, power = state.topology, power_of(state.topology.kinds[pool])
    nodes = (n for n, p in zip(topology.nodes, topology.pools, strict=True) if p == pool)
    span = (power.peak - power.idle) * topology.usable(pool)
    return span + sum(map(standing_watts, nodes))

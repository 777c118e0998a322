"""What a job takes with each device: CPUs and memory as shares of all, beside a device's share."""

from __future__ import annotations

import numpy as np

from bough.core.model import INFINITY, JobSpec
from bough.core.policy import Floats, Ints
from bough.core.state import State

RESOURCES = ("devices", "cpus", "memory")


def taken_with_a_device(state: State, rows: Ints | None = None) -> Floats:
    """For each row and resource, its share of all there is over the share that a device is.

    Devices are therefore 1; a job with a tenth of them and a third of the CPUs has 10 / 3.
    """
    table = state.table
    items = table.items if rows is None else [table.items[row] for row in rows.tolist()]
    pools = (table.pool if rows is None else table.pool[rows]).tolist()
    found = np.zeros((len(items), len(RESOURCES)))
    found[:, 0] = 1.0
    there: dict[int, tuple[float, float]] = {}
    for i, job in enumerate(items):
        if job.plain:
            continue
        cpus, memory = beside_a_device(job.spec)
        if cpus or memory:
            pool = pools[i]
            if pool not in there:
                there[pool] = for_each_device(state, pool)
            found[i, 1:] = cpus / there[pool][0], memory / there[pool][1]
    return found


def beside_a_device(spec: JobSpec) -> tuple[float, float]:
    """CPUs and bytes that it takes with each device; of a gang in the mean, at its least."""
    if not spec.roles:
        return spec.cpus, spec.memory
    devices = sum(role.devices * role.count.min for role in spec.roles)
    cpus = sum(role.cpus * role.count.min for role in spec.roles)
    return cpus / devices, sum(role.memory * role.count.min for role in spec.roles) / devices


def for_each_device(state: State, pool: int) -> tuple[float, float]:
    """CPUs and bytes that the nodes of a pool have for each of its devices."""
    topology = state.topology
    nodes = [
        node
        for node, up, drained, kind in zip(
            topology.nodes, topology.up, topology.drained, topology.pools, strict=True
        )
        if up and not drained and kind == pool
    ]
    devices = topology.usable(pool) if pool < len(topology.kinds) else 0
    cpus, memory = sum(node.cpus for node in nodes), sum(node.memory for node in nodes)
    # Where there is none of it, whoever asks for it gets nothing in any case.
    return (cpus / devices if cpus and devices else INFINITY,
            memory / devices if memory and devices else INFINITY)  # fmt: skip

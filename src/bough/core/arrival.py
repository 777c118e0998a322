"""What a policy is told of a job that asks to be taken on."""

from __future__ import annotations

from bough.core.jobs import Jobs
from bough.core.model import INFINITY, JobSpec
from bough.core.policy import Newcomer, View
from bough.core.state import State


def newcomer(state: State, spec: JobSpec, pool: int, at: float) -> Newcomer:
    """The job in the numbers of a row."""
    cls = state.class_for(spec, pool)
    sizes, speeds = state.classes.curve(cls)
    asked = spec.estimate_devices
    speed = speeds[sizes.index(asked)] if asked in sizes else speeds[-1]
    left = INFINITY if spec.estimate_seconds is None else spec.estimate_seconds * speed
    deadline = INFINITY if spec.deadline is None else spec.deadline
    if spec.deadline_after is not None:
        deadline = min(deadline, at + spec.deadline_after)
    return Newcomer(cls, left, deadline)


def admission_view(state: State, spec: JobSpec) -> View:
    """The jobs that are there on the kind of device it would be planned on, and the newcomer.

    Those that may not run yet are among them: what was promised to them is not free.
    """
    table, topology = state.table, state.topology
    table.now = state.now
    pool = (state.pools_for(spec) or (0,))[0]
    known = pool < len(topology.kinds)
    jobs: Jobs = table
    if len(topology.kinds) > 1:
        jobs = table.rows((table.pool == pool).nonzero()[0])
    arriving = newcomer(state, spec, pool, state.now)
    devices = topology.usable(pool) if known else 0
    return View(state.now, devices, jobs, state.classes.table(), (devices,), newcomer=arriving)

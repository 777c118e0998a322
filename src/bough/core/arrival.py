"""What a policy is told of a job that asks to be taken on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bough.core.jobs import Jobs
from bough.core.known_models import state_bytes
from bough.core.model import INFINITY, JobSpec
from bough.core.policy import Bools, EdgeOffer, Newcomer, Policy, View
from bough.core.state import State


def estimated_work(spec: JobSpec, sizes: tuple[int, ...], speeds: tuple[float, ...]) -> float:
    """By its user's estimate, at these believed speeds; infinite without one."""
    if spec.estimate_seconds is None:
        return INFINITY
    asked = spec.estimate_devices
    return spec.estimate_seconds * (speeds[sizes.index(asked)] if asked in sizes else speeds[-1])


def newcomer(state: State, spec: JobSpec, pool: int, at: float) -> Newcomer:
    """The job in the numbers of a row."""
    cls = state.class_for(spec, pool)
    sizes, speeds = state.classes.curve(cls)
    left = estimated_work(spec, sizes, speeds)
    deadline = INFINITY if spec.deadline is None else spec.deadline
    if spec.deadline_after is not None:
        deadline = min(deadline, at + spec.deadline_after)
    return Newcomer(cls, left, deadline)


def edge_offers(state: State, spec: JobSpec) -> tuple[EdgeOffer, ...]:
    """Pools at the edge on one device of which the job could run."""
    topology, found = state.topology, []
    load = state_bytes(state.speedups.trained(spec.model))
    for pool in state.pools_for(spec) if spec.sizes()[0] == 1 else ():
        terms = [
            node.terms for node, p in zip(topology.nodes, topology.pools, strict=True) if p == pool
        ]
        if {each.tier for each in terms} == {"edge"}:
            links = [each.link for each in terms if each.link]
            way = load / min(links) if links else 0.0
            found.append(EdgeOffer(topology.free(pool), state.curve_for(spec, pool).at(1), way))
    return tuple(offer for offer in found if offer.speed > 0)


def admission_view(state: State, spec: JobSpec, policy: Policy | None = None) -> View:
    """The jobs that are there on the kind of device it would be planned on, and the newcomer.

    Those that may not run yet are among them: what was promised to them is not free. A policy that
    looks at one queue is shown the jobs of this queue, and the devices that the queue has whatever
    others ask.
    """
    table, topology = state.table, state.topology
    table.now = state.now
    pool = (state.pools_for(spec) or (0,))[0]
    known = pool < len(topology.kinds)
    devices = topology.usable(pool) if known else 0
    among = np.ones(table.n, np.bool_)
    if len(topology.kinds) > 1:
        among &= table.pool == pool
    if policy is not None and policy.scope == "queue" and known and not state.queues.trivial:
        queue = state.queues.index(spec.queue)
        devices = secured(state, queue, pool, devices, among)
        among &= table.queue == queue
    arriving = newcomer(state, spec, pool, state.now)  # it may be of a new class
    if policy is not None and policy.places and policy.scope == "cluster":
        arriving = replace(arriving, edges=edge_offers(state, spec))
    jobs: Jobs = table if among.all() else table.rows(among.nonzero()[0])
    return View(
        state.now, devices, jobs, state.classes.table(), (devices,),
        doubt=state.speedups.prior.doubt(), newcomer=arriving,
    )  # fmt: skip


def secured(state: State, queue: int, pool: int, devices: int, among: Bools) -> int:
    """What a queue's own jobs can have of a pool when all other queues ask for all of it."""
    table, count = state.table, len(state.queues.names)
    rows = among.nonzero()[0]
    held = table.must[rows] * table.lo[rows]
    floor = np.bincount(table.queue[rows], weights=held, minlength=count).astype(np.int64)
    floor[queue] = 0
    everything = np.full(count, devices, np.int64)
    kind = state.topology.kinds[pool]
    return int(state.queues.entitle(state.now, kind, devices, everything, floor)[queue])

"""What breaks, when, and for how long: drawn from the seed, the same under every policy."""

from __future__ import annotations

from copy import deepcopy

import msgspec
import numpy as np

from bough.core import model as m
from bough.core.cluster import Cluster
from bough.core.queues import QueueTree
from bough.core.scheduler import Scheduler
from bough.sim.world import DEVICE_DOWN, DEVICE_UP, NODE_DOWN, NODE_UP, Running, World

#: In the place of a device's number: the node is taken away.
EVICTED = -2
HOUR_SECONDS = 3600.0


def plan(world: World, cluster: Cluster, now: float) -> None:
    """First failures of every node and device; each draws its own next from its own stream."""
    failures = world.options.failures
    for index, node in enumerate(cluster.nodes):
        if node.terms.evictions_per_hour:
            stream = np.random.default_rng([world.options.seed, 5, index])
            at = now + float(stream.exponential(every(node)))
            world.push(at, NODE_DOWN, (node, EVICTED, stream))
        if failures.node_mtbf_seconds < m.INFINITY:
            stream = np.random.default_rng([world.options.seed, 2, index])
            at = now + float(stream.exponential(failures.node_mtbf_seconds))
            world.push(at, NODE_DOWN, (node, -1, stream))
        if failures.device_mtbf_seconds < m.INFINITY:
            for device in range(node.devices):
                stream = np.random.default_rng([world.options.seed, 3, index, device])
                at = now + float(stream.exponential(failures.device_mtbf_seconds))
                world.push(at, DEVICE_DOWN, (node, device, stream))


def happen(
    world: World, what: int, payload: tuple[m.Node, int, np.random.Generator], at: float
) -> list[m.Event]:
    """Break or mend, and draw when it is mended or breaks again."""
    node, device, stream = payload
    failures = world.options.failures
    if what == NODE_DOWN and device == EVICTED:
        world.push(at + failures.evicted_seconds, NODE_UP, payload)
        if node.name in world.broken:
            return []
        world.broken.add(node.name)
        world.evicted.add(node.name)
        return [m.NodeDown(at=at, name=node.name)]
    if what == NODE_DOWN:
        world.push(at + float(stream.exponential(failures.node_repair_seconds)), NODE_UP, payload)
        world.broken.add(node.name)
        world.evicted.discard(node.name)
        return [m.NodeDown(at=at, name=node.name)]
    if what == NODE_UP:
        mean = every(node) if device == EVICTED else failures.node_mtbf_seconds
        world.push(at + float(stream.exponential(mean)), NODE_DOWN, payload)
        if device == EVICTED and node.name not in world.evicted:
            return []
        world.evicted.discard(node.name)
        world.broken.discard(node.name)
        return [m.NodeUp(at=at, node=node), *still_broken(world, node, at)]
    down = what == DEVICE_DOWN
    mean = failures.device_repair_seconds if down else failures.device_mtbf_seconds
    world.push(at + float(stream.exponential(mean)), DEVICE_UP if down else DEVICE_DOWN, payload)
    (world.broken.add if down else world.broken.discard)((node.name, device))
    return [m.DeviceHealth(at=at, name=node.name, device=device, healthy=not down)]


def every(node: m.Node) -> float:
    """Mean seconds between two evictions."""
    return HOUR_SECONDS / node.terms.evictions_per_hour


def lose(world: World, job: Running, now: float) -> None:
    """What it did since its last checkpoint is lost, if its state is."""
    if not (world.evicted and keeps_state(world, job)):
        world.lose(job, now)


def keeps_state(world: World, job: Running) -> bool:
    """Whether what it lost was only taken away, and a device on a reserved node has its state."""
    on = {name for name, _ in job.place} | job.sits
    return not any(name in world.broken - world.evicted for name in on) and any(
        world.nodes[name].terms.tier == "reserved" for name in on if name not in world.broken
    )


def still_broken(world: World, node: m.Node, at: float) -> list[m.Event]:
    """Devices that are broken on a node that is back: a scheduler takes a new node for whole."""
    return [
        m.DeviceHealth(at=at, name=node.name, device=device, healthy=False)
        for device in range(node.devices)
        if (node.name, device) in world.broken
    ]


def would_start(brain: Scheduler, cluster: Cluster, world: World, untold: list[m.Event]) -> bool:
    """Whether a job would start if all that is broken were mended: asks a copy of the brain."""
    now = brain.state.now
    copy = Scheduler(
        brain.policy, cluster.tree(), queues=QueueTree(),
        speedups=deepcopy(brain.state.speedups),
        settings=msgspec.structs.replace(brain.settings, round_seconds=0.0),
    )  # fmt: skip
    copy.from_bytes(brain.to_bytes())
    mended: list[m.Event] = [
        m.NodeUp(at=now, node=node) for node in cluster.nodes if node.name in world.broken
    ]
    mended += [
        m.DeviceHealth(at=now, name=node.name, device=device)
        for node in cluster.nodes
        for device in range(node.devices)
        if (node.name, device) in world.broken
    ]
    commands = copy.handle([*untold, *mended, m.Tick(at=now)])
    return any(type(command) is m.Start for command in commands) or copy.wake_at < m.INFINITY


def is_lost(world: World, job: Running) -> bool:
    """Whether a stop is due to something broken under the job."""
    broken = world.broken
    return bool(broken) and any(
        node in broken or any((node, d) in broken for d in devices) for node, devices in job.place
    )


def draw_straggler(world: World, job: Running) -> None:
    """A start may catch a slow device, which slows the whole gang."""
    options = world.options
    slow = world.draw_later.random() < options.straggler_share
    job.slow = 1.0 - options.straggler_slowdown if slow else 1.0

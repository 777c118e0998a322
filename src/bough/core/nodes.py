"""What befalls nodes and their devices, and the jobs that are on them."""

from __future__ import annotations

import msgspec

from bough.core import model as m
from bough.core.reason import LOST
from bough.core.settle import reconcile
from bough.core.standing import stand, vacate
from bough.core.state import MAX, POOL, NodeBook, State


def refresh(state: State) -> None:
    """After nodes came or went: pools and what may run at all."""
    for row, job in enumerate(state.table.items):
        before, job.pools = job.pools, state.pools_for(job.spec)
        if job.place or job.held:
            # What has come may be for it, too; what has gone it keeps, as far as it has it.
            most = state.most_on(job, int(state.table.wi[POOL, row]))
            if most > int(state.table.wi[MAX, row]):
                state.set_most(row, job, most)
        else:
            if job.pools and (not before or int(state.table.pool[row]) not in job.pools):
                state.set_pool(row, job, job.pools[0])
            stand(state, job)
    state.replan = True


def node_up(state: State, event: m.NodeUp) -> None:
    """A node joins, returns or changed."""
    book = state.nodes.get(event.node.name)
    if book is not None and not book.down and book.node == event.node:
        return
    labelled = book and msgspec.structs.replace(book.node, labels=event.node.labels)
    if book is not None and not book.down and labelled == event.node:
        book.node = event.node
        return
    if book is not None and not book.down:
        evict(state, event.node.name, f"node {event.node.name} was rebuilt")
    fresh = state.nodes[event.node.name] = NodeBook(event.node)
    state.topology.add(event.node)
    state.empty.add(event.node)
    if book is not None:
        fresh.drained = book.drained
        # A node that was down comes back with all its devices well; one that changed does not.
        kept = {} if book.down else book.unhealthy
        fresh.unhealthy = {d: why for d, why in kept.items() if d < event.node.devices}
    refresh(state)


def node_down(state: State, event: m.NodeDown) -> None:
    """Whatever ran there is lost; the rest of those gangs is stopped."""
    book = state.nodes.get(event.name)
    if book is None or book.down:
        return
    book.down = True
    state.topology.remove(event.name)
    state.empty.remove(event.name)
    evict(state, event.name, f"node {event.name} is down")
    refresh(state)


def evict(state: State, name: str, why: str, mask: int = -1) -> None:
    """Every job that holds devices there loses its place, and is told to stop."""
    index = state.topology.names.index(name)
    for job in list(state.table.items):
        if any(node == index and bits & mask for node, bits in job.place + job.held):
            job.lost_by = why
            vacate(state, job, LOST)
            reconcile(state, job)


def node_drained(state: State, event: m.NodeDrained) -> None:
    """What runs there may finish; nothing new goes there."""
    book = state.nodes.get(event.name)
    if book is None or book.drained == event.drained:
        return
    book.drained = event.drained
    state.topology.drain(event.name, event.drained)
    state.empty.drain(event.name, event.drained)
    refresh(state)


def device_health(state: State, event: m.DeviceHealth) -> None:
    """A device fails under a job, or comes back."""
    book = state.nodes.get(event.name)
    if book is None:
        return
    if event.healthy == (event.device not in book.unhealthy):
        if not event.healthy:
            book.unhealthy[event.device] = event.note
        return
    if not 0 <= event.device < book.node.devices:
        raise ValueError(f"node {event.name} has no device {event.device}")
    if event.healthy:
        del book.unhealthy[event.device]
    else:
        book.unhealthy[event.device] = event.note
    state.topology.health(event.name, event.device, event.healthy)
    state.empty.health(event.name, event.device, event.healthy)
    if not event.healthy:
        why = f"device {event.device} of {event.name}: {event.note or 'not in working order'}"
        evict(state, event.name, why, 1 << event.device)
    refresh(state)

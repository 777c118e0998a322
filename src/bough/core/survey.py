"""From the tree to what a policy sees of it, and whether a job can be where it is wished."""

from __future__ import annotations

from bough.core.ground import Ground, Site
from bough.core.jobs import Job, Seats, Slots
from bough.core.known_models import state_bytes
from bough.core.places import minus
from bough.core.policy import Ints
from bough.core.search import roomy
from bough.core.seating import kept_devices, seats_on
from bough.core.state import State, asks


def survey(state: State, rows: Ints | None, pool: int | None) -> Ground:
    """The nodes of a pool (of all: None) as they are now; who holds what, by the view's rows."""
    topology, items = state.topology, state.table.items
    sites = {
        index: Site(
            index,
            node.devices,
            topology.free_masks[index],
            node.terms,
            node.path,
            topology.pools[index],
        )
        for index, node in enumerate(topology.nodes)
        if pool in (None, topology.pools[index])
        and topology.up[index]
        and not topology.drained[index]
    }
    seen = {row: i for i, row in enumerate(range(len(items)) if rows is None else rows.tolist())}
    places: list[Slots] = [()] * len(seen)
    for row, job in enumerate(items):
        at = seen.get(row, -1)
        if at >= 0:
            places[at] = job.place
        for index, mask in job.place:
            if index in sites:
                held = sites[index].held
                held[at] = held.get(at, 0) | mask
    inner = tuple(sorted(topology.inner))
    keep = [kept_devices(items[row].spec) for row in seen]
    load = [state_bytes(state.speedups.trained(items[row].spec.model)) for row in seen]
    return Ground(list(sites.values()), inner, places, keep, load)


def as_wished(
    state: State, job: Job, wished: Slots, size: int, near: Slots
) -> tuple[Slots, Seats] | None:
    """What is to be added to what a job has, for it to be where it is wished; None: cannot be."""
    if near and minus(near, wished):
        return None  # it would have to leave what it has
    more = minus(wished, near) if near else wished
    topology, spec = state.topology, job.spec
    if sum(mask.bit_count() for _, mask in more) != size:
        return None
    for index, mask in more:
        if not 0 <= index < len(topology.nodes) or topology.free_masks[index] & mask != mask:
            return None
    if spec.roles:
        seats = seats_on(topology, spec, asks(spec, size), more)
        return None if seats is None else (more, seats)
    if (spec.cpus or spec.memory) and not roomy(topology, more, spec.cpus, spec.memory):
        return None
    return more, ()

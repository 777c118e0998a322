"""Making room for a job by taking from others: proved on the tree before anything is commanded.

A transaction: victims are shrunk, parked or evicted on trial, the beneficiary's place is looked
for in the changed tree, and everything is put back. Among the ways tried, the one with the least
seconds lost (lost work and restarts), then with the fewest jobs, is returned; nothing is taken
that the place found does not need.

How good it is: where the request needs only a number of devices in one domain, that is for jobs
of up to a node and for those that may be scattered, the choice is the cheapest there is. Whole
nodes for a gang are chosen one after another, which may miss a cheaper set when victims span
several nodes: in 2 % of small random cases against full search (`tests/core/test_preempt.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from bough.core.gangs import Gang, RoleAsk
from bough.core.inventory import Inventory, exact
from bough.core.jobs import Slots
from bough.core.model import Wish
from bough.core.offers import Market, Plan, Price, Victim
from bough.core.places import minus
from bough.core.search import bounds, every, members, roomy
from bough.core.topology import DEFAULT, Topology

#: Plans proved on the tree before the best so far is taken.
TRIES = 12
#: With more victims than this, none is left out on trial (those the place does not touch are).
SPARED_MAX = 32


class Request(NamedTuple):
    """What the beneficiary asks of the tree, as for `Topology.find` and `find_gang`."""

    pool: int
    size: int = 0
    wish: Wish = DEFAULT
    cpus: float = 0.0
    memory: float = 0.0
    near: Slots = ()
    relaxed: bool = False
    roles: tuple[RoleAsk, ...] = ()


class Step(NamedTuple):
    """What is done to one victim."""

    victim: Victim
    action: Literal["shrink", "park", "evict"]
    #: What it holds from then on; empty when it is parked or evicted.
    keep: Slots
    seconds: float

    @property
    def freed(self) -> Slots:
        """What it gives back."""
        return minus(self.victim.slots, self.keep)


class Room(NamedTuple):
    """How room is made, and the place that is then free."""

    steps: tuple[Step, ...]
    place: Slots
    #: Where each worker goes, when roles were asked for.
    gang: Gang | None
    price: Price


class Trial:
    """Changes to a tree that can be undone, in reverse."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.log: list[Step] = []

    def free(self, step: Step) -> None:
        """Give back what a step takes from its victim."""
        self.topology.give(step.freed, step.victim.cpus, step.victim.memory)
        self.log.append(step)

    def rollback(self) -> None:
        """Put everything back."""
        while self.log:
            step = self.log.pop()
            self.topology.retake(step.freed, step.victim.cpus, step.victim.memory)


def make_room(topology: Topology, request: Request, victims: Sequence[Victim]) -> Room | None:
    """The cheapest way found to place a request, or None; the tree stays as it is."""
    found = look(topology, request)
    if found is not None:
        return Room((), found[0], found[1], Price(0.0, 0, 0))
    able = [
        v for v in victims if v.allowed and v.preemptible and v.pool == request.pool and v.slots
    ]
    market = Market(topology, able)
    best: Room | None = None
    plans = sorted(counted_plans(topology, request, market), key=lambda plan: plan.price)
    for plan in islice(plans, TRIES):
        if best is not None and plan.price >= best.price:
            break
        room = proved(topology, request, able, plan)
        if room is not None and (best is None or room.price < best.price):
            best = room
    return best or last_resort(topology, request, able)


def commit(topology: Topology, request: Request, room: Room) -> None:
    """Carry it out on the tree: victims give back, the beneficiary takes its place."""
    for step in room.steps:
        topology.give(step.freed, step.victim.cpus, step.victim.memory)
    if room.gang is not None:
        topology.take_gang(room.gang, request.roles)
    else:
        topology.take(room.place, request.cpus, request.memory)


def look(topology: Topology, request: Request) -> tuple[Slots, Gang | None] | None:
    """The place for the beneficiary in the tree as it is."""
    if request.roles:
        gang = topology.find_gang(
            request.pool,
            request.roles,
            wish=request.wish,
            near=request.near,
            relaxed=request.relaxed,
        )
        return (gang.slots, gang) if gang is not None else None
    slots = topology.find(
        request.pool,
        request.size,
        wish=request.wish,
        cpus=request.cpus,
        memory=request.memory,
        near=request.near,
        relaxed=request.relaxed,
    )
    return (slots, None) if slots is not None else None


# -------------------------------------------------------------------------------------- plans


def counted_plans(topology: Topology, request: Request, market: Market) -> Iterator[Plan]:
    """Ways that should make room by counting, node by node and domain by domain."""
    size = request.size or sum(role.devices * role.workers for role in request.roles)
    own = [node for node, _ in request.near]
    shelves = topology.shelves[request.pool]
    widest = max((shelf.width for shelf in shelves), default=0)
    if own:
        yield from kept_plans(market.anywhere_in(own, size))
        size -= sum(topology.free_masks[node].bit_count() for node in own)
    elif size <= widest:
        for node in market.on:
            if topology.nodes[node].devices >= size:
                yield from kept_plans(market.anywhere_in([node], size))
    chains = {topology.tree.chains[topology.racks[node]] for node in own}
    scatter = request.relaxed or bool(request.roles) or request.wish.mode == "spread"
    for level in range(bounds(topology, request.wish).top + 1):
        inside = topology.tree.inside[level]
        for domain in sorted({chain[level] for chain in chains}) if own else range(len(inside)):
            racks = inside[domain][0]
            if scatter:
                nodes = list(every(shelves, range(widest + 1), racks))
                yield from kept_plans(market.anywhere_in(nodes, size))
            for shelf in shelves:
                if own or size > widest:
                    others = members(shelf, range(shelf.width + 1), racks)
                    nodes = [node for node in others if node not in own]
                    yield from kept_plans(market.whole_nodes(nodes, shelf.width, size))


def kept_plans(plan: Plan | None) -> Iterator[Plan]:
    """A plan, if there is one and it takes anything."""
    if plan is not None and plan.taking:
        yield plan


def last_resort(topology: Topology, request: Request, able: list[Victim]) -> Room | None:
    """Stop the cheapest for their size until it fits: for requests that no count describes."""
    order = sorted(able, key=lambda v: (v.stop_seconds / v.devices, v.devices, v.id))
    steps = [stopped(victim) for victim in order]
    if tried(topology, request, steps) is None:
        return None
    low, high = 0, len(steps)
    while high - low > 1:
        middle = (low + high) // 2
        if tried(topology, request, steps[:middle]) is None:
            low = middle
        else:
            high = middle
    return settled(topology, request, steps[:high])


# -------------------------------------------------------------------------------------- proof


def proved(topology: Topology, request: Request, victims: list[Victim], plan: Plan) -> Room | None:
    """The plan as steps with a place, if the tree agrees."""
    steps = [shrunk(topology, victims[n], taken) for n, taken in sorted(plan.taking.items())]
    return settled(topology, request, steps)


def settled(topology: Topology, request: Request, steps: list[Step]) -> Room | None:
    """Spare what the place does not need, by cutting to the place and by leaving out victims."""
    found = tried(topology, request, steps)
    if found is None:
        return None
    steps = cut_to(topology, request, steps, found)
    if 1 < len(steps) <= SPARED_MAX:
        for step in sorted(steps, key=lambda step: -step.seconds):
            fewer = [other for other in steps if other is not step]
            again = tried(topology, request, fewer)
            if again is not None:
                steps, found = fewer, again
        steps = cut_to(topology, request, steps, found)
    devices = sum(step.victim.devices - size_of(step.keep) for step in steps)
    price = Price(sum(step.seconds for step in steps), len(steps), devices)
    return Room(tuple(steps), found[0], found[1], price)


def tried(
    topology: Topology, request: Request, steps: list[Step]
) -> tuple[Slots, Gang | None] | None:
    """The place the request would find after these steps; the tree stays as it is."""
    trial = Trial(topology)
    for step in steps:
        trial.free(step)
    found = look(topology, request)
    trial.rollback()
    return found


def cut_to(
    topology: Topology, request: Request, steps: list[Step], found: tuple[Slots, Gang | None]
) -> list[Step]:
    """Take no more than the place needs, if it still stands then (it may lack CPUs or memory)."""
    place = dict(found[0])
    less = []
    for step in steps:
        masks = ((node, mask & place.get(node, 0)) for node, mask in step.freed)
        needed = tuple((node, mask) for node, mask in masks if mask)
        if needed:
            less.append(around(topology, step.victim, needed))
    trial = Trial(topology)
    for step in less:
        trial.free(step)
    stands = topology.is_free(found[0]) and roomy_for(topology, request, found)
    trial.rollback()
    return less if stands else steps


def roomy_for(topology: Inventory, request: Request, found: tuple[Slots, Gang | None]) -> bool:
    """Whether CPUs and memory suffice on every node of a place that is free."""
    slots, gang = found
    if gang is None:
        return roomy(topology, slots, request.cpus, request.memory)
    wanted: dict[int, list[int]] = {}
    for role, node, _ in gang.workers:
        cpus, memory = exact(request.roles[role].cpus, request.roles[role].memory)
        sums = wanted.setdefault(node, [0, 0])
        sums[0] += cpus
        sums[1] += memory
    left = {node: topology.left(node) for node in wanted}
    return all(c <= left[node][0] and m <= left[node][1] for node, (c, m) in wanted.items())


# -------------------------------------------------------------------------------------- steps


def shrunk(topology: Topology, victim: Victim, taken: dict[int, int]) -> Step:
    """Take so many devices on these nodes, and more elsewhere if its sizes ask for that."""
    freed = []
    for node, mask in victim.slots:
        if node in taken:
            blocks = topology.blocks[topology.shelf_of[node].width]
            freed.append((node, blocks.pick(mask & topology.open_masks[node], taken[node])))
    return around(topology, victim, tuple(freed))


def around(topology: Topology, victim: Victim, needed: Slots) -> Step:
    """The mildest step that gives back these devices."""
    size = victim.kept(size_of(needed))
    if not size:
        return stopped(victim)
    keep = topology.shrink(minus(victim.slots, needed), size)
    return Step(victim, "shrink", keep, victim.resize_seconds)


def stopped(victim: Victim) -> Step:
    """Park it if it keeps its state, else evict it."""
    return Step(victim, "park" if victim.parkable else "evict", (), victim.stop_seconds)


def size_of(slots: Slots) -> int:
    """How many devices."""
    return sum(mask.bit_count() for _, mask in slots)

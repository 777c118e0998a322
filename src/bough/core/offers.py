"""What could be taken from running jobs, at what price, and the cheapest ways to take enough.

A price is seconds lost, then the number of jobs disturbed, then devices taken. Where a request
needs only a number of devices in one domain (one node, or any domain when it may be scattered),
the cheapest way is found exactly; for whole nodes, which share victims, node after node greedily.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from bough.core.inventory import Inventory
from bough.core.jobs import Slots

#: Cells of the exact table (offers x devices) above which victims are taken by price per device.
TABLE_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Victim:
    """A running job as preemption sees it."""

    id: str
    pool: int
    slots: Slots
    #: Sizes it may shrink to, ascending, and the lowest of them that is permitted now.
    sizes: tuple[int, ...] = ()
    lowest: int = 0
    #: Lost for good when it is evicted, and what each way of disturbing it costs besides.
    lost_work_seconds: float = 0.0
    restart_seconds: float = 0.0
    resize_seconds: float = 0.0
    #: It keeps its state when it is stopped: it is parked and loses no work.
    parkable: bool = False
    #: The job permits it at all; the beneficiary may do it to this job.
    preemptible: bool = True
    allowed: bool = True
    #: Held with each device.
    cpus: float = 0.0
    memory: float = 0.0
    #: Devices it holds.
    devices: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "devices", sum(mask.bit_count() for _, mask in self.slots))

    @property
    def stop_seconds(self) -> float:
        """What parking costs, or evicting when it cannot be parked."""
        return self.restart_seconds + (0.0 if self.parkable else self.lost_work_seconds)

    def kept(self, freed: int) -> int:
        """The largest size it can go on with when so many devices are taken; 0 when none."""
        room = self.devices - freed
        for size in reversed(self.sizes):
            if size <= room:
                return size if size >= self.lowest else 0
        return 0

    def seconds(self, freed: int) -> float:
        """The price of taking so many devices: it shrinks if it can, else it is stopped."""
        if not freed:
            return 0.0
        return self.resize_seconds if self.kept(freed) else self.stop_seconds


class Price(NamedTuple):
    """What a plan costs; compared in this order."""

    seconds: float
    jobs: int
    devices: int


#: Victim (by its position) -> node -> devices to be taken there.
Taking = dict[int, dict[int, int]]


class Plan(NamedTuple):
    """One way to make room, to be proved on the tree."""

    price: Price
    taking: Taking


class Market:
    """The victims of one pool and where they sit."""

    def __init__(self, inventory: Inventory, victims: list[Victim]) -> None:
        self.inventory = inventory
        self.victims = victims
        #: Node -> victim -> devices held there that would become free.
        self.on: dict[int, dict[int, int]] = {}
        for number, victim in enumerate(victims):
            for node, mask in victim.slots:
                devices = (mask & inventory.open_masks[node]).bit_count()
                if devices:
                    self.on.setdefault(node, {})[number] = devices

    def anywhere_in(self, nodes: list[int], size: int) -> Plan | None:
        """The cheapest way to have `size` devices free on these nodes, however scattered."""
        free = sum(self.inventory.free_masks[node].bit_count() for node in nodes)
        held: dict[int, int] = {}
        for node in nodes:
            for number, devices in self.on.get(node, {}).items():
                held[number] = held.get(number, 0) + devices
        chosen = cheapest(self.victims, held, size - free)
        if chosen is None:
            return None
        taking = {}
        for number, count in chosen.items():
            taking[number] = self.spread_over(nodes, number, count)
        return Plan(self.price(taking), taking)

    def spread_over(self, nodes: list[int], number: int, count: int) -> dict[int, int]:
        """Take so many devices of a victim on these nodes, first where it holds fewest."""
        there = sorted((self.on[n][number], n) for n in nodes if number in self.on.get(n, {}))
        taken = {}
        for devices, node in there:
            taken[node] = min(devices, count)
            count -= taken[node]
            if not count:
                break
        return taken

    def whole_nodes(self, nodes: list[int], width: int, size: int) -> Plan | None:
        """A cheap way to have whole nodes free and a part of one more, node after node."""
        whole, rest = divmod(size, width)
        taking: Taking = {}
        price = {n: self.more({}, self.on.get(n, {})) for n in nodes if self.clearable(n, width)}
        heap = [(price[node], node) for node in price]
        heapify(heap)
        chosen: set[int] = set()
        while len(chosen) < whole:
            if not heap:
                return None
            cost, best = heappop(heap)
            if best in chosen or cost != price[best]:
                continue  # became cheaper since, when a victim it shares was taken
            chosen.add(best)
            self.take(taking, best, self.on.get(best, {}))
            for node in (self.neighbours(best) & price.keys()) - chosen:
                price[node] = self.more(taking, self.on[node])
                heappush(heap, (price[node], node))
        if rest:
            parts = [
                (self.more(taking, part), node, part)
                for node in nodes
                if node not in chosen and (part := self.part_of(taking, node, rest)) is not None
            ]
            if not parts:
                return None
            _, node, part = min(parts, key=lambda item: item[:2])
            self.take(taking, node, part)
        return Plan(self.price(taking), taking)

    def neighbours(self, node: int) -> set[int]:
        """Nodes that share a victim with this one."""
        shared = self.on.get(node, {})
        return {other for number in shared for other, _ in self.victims[number].slots}

    def clearable(self, node: int, width: int) -> bool:
        """Whether a node is whole and free once its victims are gone."""
        devices = sum(self.on.get(node, {}).values())
        free = self.inventory.free_masks[node].bit_count()
        return self.inventory.open_masks[node].bit_count() == width == devices + free

    def part_of(self, taking: Taking, node: int, size: int) -> dict[int, int] | None:
        """What to take on one node so that `size` devices are free there."""
        free = self.inventory.free_masks[node].bit_count()
        there = self.on.get(node, {})
        already = {v: sum(nodes.values()) for v, nodes in taking.items() if v in there}
        return cheapest(self.victims, there, size - free, already)

    def take(self, taking: Taking, node: int, part: dict[int, int]) -> None:
        """Add what is taken on one node."""
        for number, devices in part.items():
            taking.setdefault(number, {})[node] = devices

    def more(self, taking: Taking, part: dict[int, int]) -> Price:
        """What it adds to the price to take this too."""
        seconds, jobs = 0.0, 0
        for number, devices in part.items():
            before = sum(taking.get(number, {}).values())
            victim = self.victims[number]
            seconds += victim.seconds(before + devices) - victim.seconds(before)
            jobs += not before
        return Price(seconds, jobs, sum(part.values()))

    def price(self, taking: Taking) -> Price:
        """What all of it costs."""
        counts = {number: sum(nodes.values()) for number, nodes in taking.items()}
        seconds = sum(self.victims[number].seconds(count) for number, count in counts.items())
        return Price(seconds, len(counts), sum(counts.values()))


def cheapest(
    victims: list[Victim], held: dict[int, int], need: int, already: dict[int, int] | None = None
) -> dict[int, int] | None:
    """How many devices to take from whom so that `need` come together, at the least price.

    `held` says how many each has to give here; `already` how many are taken from it elsewhere.
    """
    if need <= 0:
        return {}
    if sum(held.values()) < need:
        return None
    before = already or {}
    offers = {v: list(ways(victims[v], n, before.get(v, 0))) for v, n in held.items()}
    if need * sum(map(len, offers.values())) > TABLE_MAX:
        return by_unit_price(offers, need)
    # table[n]: price of having n devices (the last cell: n or more), and what was taken for it.
    table: list[tuple[Price, dict[int, int]] | None] = [None] * (need + 1)
    table[0] = (Price(0.0, 0, 0), {})
    for number in sorted(offers):
        for have in range(need - 1, -1, -1):  # downwards, so that nobody is asked twice
            at = table[have]
            if at is None:
                continue
            for count, seconds, jobs in offers[number]:
                price = Price(at[0].seconds + seconds, at[0].jobs + jobs, at[0].devices + count)
                then = min(have + count, need)
                known = table[then]
                if known is None or price < known[0]:
                    table[then] = (price, {**at[1], number: count})
    found = table[need]
    return found[1] if found is not None else None


def ways(victim: Victim, there: int, before: int) -> Iterator[tuple[int, float, int]]:
    """(devices, seconds, jobs) of each useful way to take devices of a victim in one place."""
    held = victim.devices
    counts = {min(there, held - before - size) for size in victim.sizes if size >= victim.lowest}
    for count in sorted({n for n in counts if n > 0} | {there}):
        seconds = victim.seconds(before + count) - victim.seconds(before)
        yield count, seconds, int(not before)


def by_unit_price(
    offers: dict[int, list[tuple[int, float, int]]], need: int
) -> dict[int, int] | None:
    """The same roughly, where the exact table would be too large."""
    order = sorted(
        (seconds / count, -count, number)
        for number, each in offers.items()
        for count, seconds, _ in each
    )
    taken: dict[int, int] = {}
    for _, less, number in order:
        if need <= 0:
            break
        more = -less - taken.get(number, 0)
        if more > 0:
            taken[number] = -less
            need -= more
    return taken if need <= 0 else None

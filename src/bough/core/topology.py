"""Where a job of some size fits best: the lowest part of the tree that holds it, tightly.

Looking for a place changes nothing. An answer depends on the present state only: the same nodes
with the same devices free give the same place whatever happened before, so that a restored
snapshot decides as the original would.
"""

from __future__ import annotations

from collections.abc import Sequence

from bough.core import audit, gangs, growth, search
from bough.core.blocks import numbers
from bough.core.gangs import Gang, RoleAsk
from bough.core.inventory import Inventory, exact
from bough.core.jobs import Slots
from bough.core.model import Place, Wish
from bough.core.search import Ask

DEFAULT = Wish()


class Topology(Inventory):
    """A cluster as a tree of domains: finds places, takes them and gives them back."""

    def blank(self) -> Topology:
        """A tree of the same levels before any node has joined."""
        return Topology(*self._made_of)

    def free(self, pool: int) -> int:
        """Devices of a pool that may be handed out now."""
        return self.pool_free[pool]

    def usable(self, pool: int) -> int:
        """Devices of a pool that are free or held; those of a down node are neither."""
        return self.pool_usable[pool]

    def largest_free(self, pool: int) -> int:
        """The most devices that can be had on one node."""
        return max((shelf.occupied.bit_length() - 1 for shelf in self.shelves[pool]), default=0)

    def whole_free_nodes(self, pool: int) -> int:
        """Nodes with all their devices free."""
        return sum(shelf.wholly for shelf in self.shelves[pool])

    def find(
        self,
        pool: int,
        size: int,
        *,
        wish: Wish = DEFAULT,
        cpus: float = 0.0,
        memory: float = 0.0,
        near: Slots = (),
        relaxed: bool = False,
    ) -> Slots | None:
        """The best place for `size` devices, or None; takes nothing.

        - As many as a node has or fewer go to one node: the one with least free that is enough.
        - More go to whole nodes plus a part of one more, in the lowest domain that has them; among
          domains of a level, the one with the fewest whole nodes that suffice.
        - `relaxed` also permits scattering over partly free nodes, on as few as possible, in the
          lowest domain that has enough devices.
        - `wish` keeps the place inside one domain of a level (require), looks there first
          (prefer), or puts devices on different nodes in different domains (spread).
        - `near` is what a growing job holds: only what is to be added is returned, on its own
          nodes first, then in the lowest domain around them.
        - `cpus` and `memory` are for each device.
        """
        assert size >= 1, f"a place needs 1 or more devices, not {size}"
        shelves = self.shelves[pool]
        if len(shelves) == 1 and not (cpus or memory or wish.level or wish.mode == "spread"):
            shelf = shelves[0]
            if not near and not relaxed:
                if size > shelf.width:
                    return search.whole_nodes(self, shelf, size)
                node = shelf.tightest(size)
                if node < 0:
                    return None
                blocks = self.blocks[shelf.width]
                free = self.free_masks[node]
                return ((node, blocks.chosen[size].get(free) or blocks.pick(free, size)),)
            if len(near) == 1:
                node, held = near[0]
                free = self.free_masks[node]
                if free.bit_count() >= size:
                    return ((node, self.blocks[shelf.width].grow(free, held, size)),)
            if near and not relaxed and growth.is_vain(self, shelf, near, size):
                return None
        return self._find(pool, Ask(size, wish, cpus, memory, near, relaxed))

    def _find(self, pool: int, ask: Ask) -> Slots | None:
        """The same for what is asked less often."""
        limits = search.bounds(self, ask.wish)
        if ask.wish.mode == "spread":
            worker = gangs.Worker(1, *exact(ask.cpus, ask.memory), 0)
            apart = gangs.spread(self, pool, [worker] * ask.size, ask.near)
            return apart.slots if apart is not None else None
        shelves = self.shelves[pool]
        look = growth.grown if ask.near else search.fresh
        found = look(self, shelves, ask, limits)
        if (
            found is None
            or not (ask.cpus or ask.memory)
            or search.roomy(self, found, ask.cpus, ask.memory)
        ):
            return found
        # The best place lacks CPUs or memory: look again among what each node can really carry.
        return look(self, search.limited(self, shelves, ask.cpus, ask.memory), ask, limits)

    def find_gang(
        self,
        pool: int,
        roles: Sequence[RoleAsk],
        *,
        wish: Wish = DEFAULT,
        near: Slots = (),
        relaxed: bool = False,
    ) -> Gang | None:
        """The best place for the workers of some roles, each whole on one node; takes nothing.

        On as few nodes as possible, in the lowest domain; unless `relaxed`, on no more nodes than
        they would need if all were empty. With `near`, the roles are the workers to be added.
        """
        return gangs.find_gang(self, pool, roles, wish, near, relaxed)

    def take_gang(self, gang: Gang, roles: Sequence[RoleAsk]) -> None:
        """Hold a gang's devices, and each worker's CPUs and memory."""
        self.take(gang.slots)
        self.charge_gang(gang, roles, 1)

    def give_gang(self, gang: Gang, roles: Sequence[RoleAsk]) -> None:
        """Give back what `take_gang` took."""
        self.give(gang.slots)
        self.charge_gang(gang, roles, -1)

    def charge_gang(self, gang: Gang, roles: Sequence[RoleAsk], sign: int) -> None:
        """Add (+1) or take off (-1) the CPUs and memory of a gang."""
        for role, node, _ in gang.workers:
            cpus, memory = exact(roles[role].cpus, roles[role].memory)
            self.cpus_taken[node] += sign * cpus
            self.memory_taken[node] += sign * memory

    def is_unheld(self, slots: Slots) -> bool:
        """Whether nobody holds any of these devices, and all of them are well."""
        return all(
            self.up[node]
            and not self.held_masks[node] & mask
            and self.healthy_masks[node] & mask == mask
            for node, mask in slots
        )

    def shrink(self, slots: Slots, size: int) -> Slots:
        """The part of a place to keep: `size` devices in the lowest domain, on fewest nodes."""
        return growth.keep(self, slots, size)

    def span(self, slots: Slots) -> int:
        """The lowest level (an index into `spans`) with a domain that holds the whole place."""
        if len(slots) == 1:
            node, mask = slots[0]
            return self.blocks[self.shelf_of[node].width].level(mask)
        if not slots:
            return 0
        return len(self.inner) + 1 + self.tree.common({self.racks[node] for node, _ in slots})

    def bandwidth(self, span: int) -> float:
        """What a place of this span has between its devices; inf when nothing is known."""
        return self._bandwidth[span]

    def place(self, slots: Slots) -> Place:
        """The same with names and device numbers, for people and commands."""
        names = self.names
        if len(slots) == 1:
            node, mask = slots[0]
            return ((names[node], numbers(mask)),)
        return tuple([(names[node], numbers(mask)) for node, mask in slots])

    def slots(self, place: Place) -> Slots:
        """The same with indices and masks; devices of unknown nodes are a ValueError."""
        found = []
        for name, devices in place:
            mask = 0
            for device in devices:
                mask |= 1 << device
            found.append((self._known(name), mask))
        return tuple(sorted(found))

    def check(self) -> None:
        """Assert that every kept count equals a recount (for tests)."""
        audit.check(self)

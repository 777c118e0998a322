"""Where a job of some size fits best: the lowest part of the tree that holds it, tightly.

Looking for a place changes nothing. An answer depends on the present state only: the same nodes
with the same devices free give the same place whatever happened before, so that a restored
snapshot decides as the original would.
"""

from __future__ import annotations

from bough.core import search
from bough.core.blocks import numbers
from bough.core.inventory import Inventory
from bough.core.jobs import Slots
from bough.core.model import Place, Wish
from bough.core.search import Ask

DEFAULT = Wish()


class Topology(Inventory):
    """A cluster as a tree of domains: finds places, takes them and gives them back."""

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
        if not (near or cpus or memory or relaxed) and wish.mode != "spread":
            shelves = self.shelves[pool]
            if len(shelves) == 1 and not wish.level:
                shelf = shelves[0]
                if size > shelf.width:
                    return search.whole_nodes(self, shelf, size)
                node = shelf.tightest(size)
                if node < 0:
                    return None
                free = self.free_masks[node]
                chosen = self.blocks[shelf.width].chosen[size].get(free)
                return ((node, chosen or self.blocks[shelf.width].pick(free, size)),)
        ask = Ask(size, wish, cpus, memory, near, relaxed)
        return search.find(self, pool, ask)

    def shrink(self, slots: Slots, size: int) -> Slots:
        """The part of a place to keep: `size` devices in the lowest domain, on fewest nodes."""
        return search.keep(self, slots, size)

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
        return tuple((self.names[node], numbers(mask)) for node, mask in slots)

    def slots(self, place: Place) -> Slots:
        """The same with indices and masks; devices of unknown nodes are a ValueError."""
        found = []
        for name, devices in place:
            mask = 0
            for device in devices:
                mask |= 1 << device
            found.append((self._known(name), mask))
        return tuple(sorted(found))

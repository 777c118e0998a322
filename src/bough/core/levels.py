"""Where there is room, without looking everywhere: free counts in buckets, level by level.

Sets of nodes and of domains are whole numbers used as bit sets, so that "the lowest-numbered rack
with a node that has exactly three devices free" is one operation, restricting a search to a part
of the tree is one `&`, and an answer depends on the present state only, never on its history.
"""

from __future__ import annotations


def lowest(bits: int) -> int:
    """The number of the lowest bit set."""
    return (bits & -bits).bit_length() - 1


class Tree:
    """The domains above the nodes. Level 0 is the lowest ("rack"), the last the whole cluster."""

    __slots__ = ("bits", "chains", "height", "index", "inside", "members", "names")

    def __init__(self, names: tuple[str, ...]) -> None:
        #: Names of the levels above the node from top to bottom, without the cluster.
        self.names = names
        self.height = len(names) + 1
        #: For each level: path from the top -> number of the domain.
        self.index: list[dict[tuple[str, ...], int]] = [{} for _ in range(self.height)]
        #: For each level and domain: the domains in it (bits), for each level up to its own.
        self.inside: list[list[list[int]]] = [[] for _ in range(self.height)]
        #: For each domain of level 0: its own number and those of the domains above it.
        self.chains: list[tuple[int, ...]] = []
        #: For each domain of level 0: its nodes; their place in this list is their bit.
        self.members: list[list[int]] = []
        #: 1 << number, for the domains of level 0.
        self.bits: list[int] = []

    def add(self, path: tuple[str, ...], node: int) -> int:
        """Put a node at the end of the domain at `path`; the number of that domain of level 0."""
        rack = self.index[0].get(path)
        if rack is None:
            rack = self._grow(path)
        self.members[rack].append(node)
        return rack

    def _grow(self, path: tuple[str, ...]) -> int:
        chain = []
        fresh = []
        for level in range(self.height):
            key = path[: len(path) - level]
            known = self.index[level]
            number = known.get(key)
            if number is None:
                number = known[key] = len(known)
                self.inside[level].append([0] * (level + 1))
                fresh.append((level, number))
            chain.append(number)
        for low, number in fresh:
            for level in range(low, self.height):
                self.inside[level][chain[level]][low] |= 1 << number
        self.chains.append(tuple(chain))
        self.members.append([])
        self.bits.append(1 << chain[0])
        return chain[0]

    def common(self, racks: set[int]) -> int:
        """The lowest level at which one domain holds all these domains of level 0."""
        chains = [self.chains[rack] for rack in racks]
        return next(
            level for level in range(self.height) if len({chain[level] for chain in chains}) == 1
        )


class Counts:
    """The domains of one level, bucketed by a count."""

    __slots__ = ("buckets", "count", "filled")

    def __init__(self) -> None:
        self.count: list[int] = []
        #: count -> domains with that count (bits).
        self.buckets: list[int] = [0]
        #: The counts that have domains (bits).
        self.filled = 0

    def extend(self, domains: int) -> None:
        """Have room for so many domains; new ones count 0."""
        for number in range(len(self.count), domains):
            self.count.append(0)
            self.buckets[0] |= 1 << number
            self.filled |= 1

    def change(self, domain: int, by: int) -> None:
        """Count `by` more for a domain."""
        bit = 1 << domain
        before = self.count[domain]
        after = self.count[domain] = before + by
        buckets = self.buckets
        left = buckets[before] ^ bit
        buckets[before] = left
        if not left:
            self.filled ^= 1 << before
        if after >= len(buckets):
            buckets.extend([0] * (after + 1 - len(buckets)))
        if not buckets[after]:
            self.filled |= 1 << after
        buckets[after] |= bit

    def least(self, enough: int, among: int = -1) -> int:
        """The domain with the least count that is enough, the lowest-numbered of those; or -1."""
        filled = self.filled >> enough
        while filled:
            low = filled & -filled
            found = self.buckets[enough + low.bit_length() - 1] & among
            if found:
                return lowest(found)
            filled ^= low
        return -1

    def most(self, among: int) -> int:
        """The domain with the highest count among these, the lowest-numbered of those; or -1."""
        filled = self.filled
        while filled:
            top = filled.bit_length() - 1
            found = self.buckets[top] & among
            if found:
                return lowest(found)
            filled ^= 1 << top
        return -1


class Shelf:
    """Nodes of one kind and width, bucketed by how many of their devices are free."""

    __slots__ = ("free", "has", "masks", "occupied", "tree", "whole", "wholly", "width")

    def __init__(self, tree: Tree, width: int) -> None:
        self.tree = tree
        self.width = width
        #: For each domain of level 0 and number of free devices: its nodes (bits).
        self.masks: list[list[int]] = []
        #: For each number of free devices: the domains of level 0 with such a node (bits).
        self.has = [0] * (width + 1)
        #: The numbers of free devices for which there is a node (bits).
        self.occupied = 0
        #: Free devices in each domain of level 0.
        self.free: list[int] = []
        #: For each level below the top: the domains by how many wholly free nodes they have.
        self.whole = [Counts() for _ in range(tree.height - 1)]
        #: Wholly free nodes in all.
        self.wholly = 0

    def extend(self) -> None:
        """Have room for every domain of the tree."""
        racks = len(self.tree.members)
        for _ in range(len(self.masks), racks):
            self.masks.append([0] * (self.width + 1))
            self.free.append(0)
        for level, counts in enumerate(self.whole):
            counts.extend(len(self.tree.inside[level]))

    def put(self, rack: int, bit: int, free: int) -> None:
        """A node appears with so many devices free."""
        self.masks[rack][0] |= bit
        self.has[0] |= self.tree.bits[rack]
        self.occupied |= 1
        self.move(rack, bit, 1, 0, free)

    def move(self, rack: int, bits: int, nodes: int, before: int, after: int) -> None:
        """Some nodes of one domain of level 0 go from `before` to `after` devices free."""
        if before == after:
            return
        row = self.masks[rack]
        has = self.has
        left = row[before] ^ bits
        row[before] = left
        if not left:
            racks = has[before] ^ self.tree.bits[rack]
            has[before] = racks
            if not racks:
                self.occupied ^= 1 << before
        there = row[after]
        row[after] = there | bits
        if not there:
            racks = has[after]
            has[after] = racks | self.tree.bits[rack]
            if not racks:
                self.occupied |= 1 << after
        self.free[rack] += nodes * (after - before)
        if before == self.width:
            nodes = -nodes
        elif after != self.width:
            return
        self.wholly += nodes
        for counts, domain in zip(self.whole, self.tree.chains[rack], strict=False):
            counts.change(domain, nodes)

    def tightest(self, size: int) -> int:
        """The node with least devices free that are enough; or -1.

        Of partly free ones the lowest-numbered; a wholly free one comes out of the domain that
        has fewest of them, so that other domains keep room for gangs.
        """
        free = self.occupied >> size
        if not free:
            return -1
        count = size + (free & -free).bit_length() - 1
        if count == self.width and self.whole:
            rack = self.whole[0].least(1)
        else:
            racks = self.has[count]
            rack = (racks & -racks).bit_length() - 1
        bits = self.masks[rack][count]
        return self.tree.members[rack][(bits & -bits).bit_length() - 1]

    def whole_nodes(self, level: int, domain: int) -> int:
        """How many wholly free nodes a domain has."""
        return self.wholly if level == len(self.whole) else self.whole[level].count[domain]

    def partly(self, size: int) -> int:
        """The domains of level 0 having a node with `size` or more devices free but not all."""
        racks = 0
        for count in range(size, self.width):
            racks |= self.has[count]
        return racks

    def domain(self, level: int, nodes: int, rest: int) -> int:
        """Best domain of a level for so many whole nodes and `rest` devices on one more; or -1.

        The one with the fewest whole nodes that suffice.
        """
        if level == len(self.whole):
            enough = self.wholly >= nodes + (rest > 0 and not self.partly(rest))
            return 0 if enough else -1
        whole = self.whole[level]
        if not rest:
            return whole.least(nodes)
        exactly = whole.buckets[nodes] if nodes < len(whole.buckets) else 0
        if exactly:
            partly = self.partly(rest)
            inside = self.tree.inside[level]
            while exactly:
                domain = lowest(exactly)
                if inside[domain][0] & partly:
                    return domain
                exactly &= exactly - 1
        return whole.least(nodes + 1)

    def wholes(self, level: int, domain: int, nodes: int) -> list[int]:
        """So many whole nodes of a domain that has them, in as few domains below as possible."""
        if not level:
            members = self.tree.members[domain]
            bits = self.masks[domain][self.width]
            found = []
            for _ in range(nodes):
                low = bits & -bits
                found.append(members[low.bit_length() - 1])
                bits ^= low
            return found
        below = self.whole[level - 1]
        among = self.tree.inside[level][domain][level - 1]
        found = []
        while nodes:
            child = below.least(nodes, among)
            if child >= 0:
                return found + self.wholes(level - 1, child, nodes)
            child = below.most(among)
            found += self.wholes(level - 1, child, below.count[child])
            nodes -= below.count[child]
            among ^= 1 << child
        return found

"""What a cluster is made of, from the short form people type ("2 racks of 4x8xh100") or as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from bough.core.inventory import check_levels
from bough.core.model import DeviceHealth, Event, Frozen, Node, NodeDrained, NodeUp
from bough.core.topology import Topology

FORMS = "8xh100, 4x8xh100, 2 racks of 16x8xa100, 8x8xv100 + 16x4xt4, cpu:8"
DEVICES_MAX = 4096
NODES_MAX = 1_000_000

GROUP = re.compile(r"(\d+)\s+([a-z][a-z_-]*)\s+of\s+")
NODES = re.compile(r"(?:(\d+)\s*[x×*]\s*)?(\d+)\s*[x×*]\s*([a-z][a-z0-9_.-]*)")
SLOTS = re.compile(r"([a-z][a-z0-9_.-]*)\s*:\s*(\d+)")


class Cluster(Frozen, frozen=True):
    """A cluster before anything runs on it."""

    #: Names of the levels of the tree from the top down to the node.
    levels: tuple[str, ...] = ("node",)
    nodes: tuple[Node, ...] = ()
    #: Bandwidth between devices whose lowest common domain is of a level.
    bandwidth: dict[str, float] = msgspec.field(default_factory=dict)
    #: Levels inside a node: name -> devices in each of its domains.
    inner: dict[str, int] = msgspec.field(default_factory=dict)
    #: Nodes that take nothing new.
    drained: tuple[str, ...] = ()
    #: Node -> numbers of its devices that cannot be used.
    unhealthy: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        check_levels(tuple(name for name in self.levels if name not in self.inner), self.inner)
        if not self.nodes:
            raise ValueError("a cluster needs at least one node")
        seen = set()
        for node in self.nodes:
            if node.name in seen:
                raise ValueError(f"two nodes are named {node.name!r}")
            seen.add(node.name)

    @property
    def devices(self) -> int:
        """Devices of all kinds."""
        return sum(node.devices for node in self.nodes)

    def tree(self) -> Topology:
        """The tree before any node has joined."""
        return Topology(self.levels, self.bandwidth, self.inner)

    def topology(self) -> Topology:
        """The tree of these nodes, all free."""
        topology = self.tree()
        for node in self.nodes:
            topology.add(node)
        return topology

    def events(self, at: float) -> list[Event]:
        """What a scheduler is to be told so that it knows this cluster."""
        ups = [NodeUp(at=at, node=node) for node in self.nodes]
        drains = [NodeDrained(at=at, name=name) for name in self.drained]
        broken = [
            DeviceHealth(at=at, name=name, device=device, healthy=False)
            for name, devices in self.unhealthy.items()
            for device in devices
        ]
        return [*ups, *drains, *broken]


class Part(NamedTuple):
    """One summand of a short form: so many equal nodes below some groups."""

    #: (how many, level) from the top.
    groups: tuple[tuple[int, str], ...]
    nodes: int
    devices: int
    kind: str


def read_cluster(data: object) -> Cluster:
    """A cluster from a short form, or from a mapping with the fields of `Cluster`.

    In a mapping, `short` may stand in place of `levels` and `nodes`.
    """
    if isinstance(data, str):
        return parse_short(data)
    if isinstance(data, Mapping) and "short" in data:
        rest: dict[str, Any] = {str(key): value for key, value in data.items() if key != "short"}
        both = {"levels", "nodes"} & set(rest)
        if both:
            raise ValueError(f"a cluster has either short or {both.pop()}, not both")
        if not isinstance(data["short"], str):
            raise ValueError(f"short must be a text such as {FORMS}")
        made = parse_short(data["short"])
        return msgspec.convert({"levels": made.levels, "nodes": made.nodes, **rest}, Cluster)
    return msgspec.convert(data, Cluster)


def parse_short(text: str) -> Cluster:
    """A cluster from its short form; a ValueError says which forms there are."""
    parts = [parse_part(part.strip()) for part in text.lower().split("+")]
    widest = max((tuple(level for _, level in part.groups) for part in parts), key=len)
    total = sum(count_nodes(part) for part in parts)
    if total > NODES_MAX:
        raise ValueError(f"cluster {text!r} has {total} nodes; at most {NODES_MAX} are possible")
    namer = Namer(widest)
    nodes = [node for part in parts for node in namer.nodes(part)]
    return Cluster(levels=(*widest, "node"), nodes=tuple(nodes))


def parse_part(text: str) -> Part:
    """One summand."""
    groups = []
    rest = text
    while found := GROUP.match(rest):
        count, word = int(found[1]), found[2]
        groups.append((count, word[:-1] if word.endswith("s") and len(word) > 1 else word))
        rest = rest[found.end() :]
    if slots := SLOTS.fullmatch(rest):
        part = Part(tuple(groups), 1, int(slots[2]), slots[1])
    elif nodes := NODES.fullmatch(rest):
        part = Part(tuple(groups), int(nodes[1] or 1), int(nodes[2]), nodes[3])
    else:
        raise ValueError(f"cannot read cluster {text!r}; write it like {FORMS}")
    if groups and groups[-1][1] == "node":
        part = part._replace(groups=part.groups[:-1], nodes=part.nodes * groups[-1][0])
    if min([part.nodes, part.devices, *(count for count, _ in part.groups)]) < 1:
        raise ValueError(f"cluster {text!r}: every number must be 1 or more")
    if part.devices > DEVICES_MAX:
        raise ValueError(f"cluster {text!r}: a node has at most {DEVICES_MAX} devices")
    return part


def count_nodes(part: Part) -> int:
    """How many nodes a summand has in all."""
    total = part.nodes
    for count, _ in part.groups:
        total *= count
    return total


class Namer:
    """Numbers domains and nodes through the whole cluster: rack-1, rack-2 …, node-1, node-2 …"""

    def __init__(self, levels: tuple[str, ...]) -> None:
        self.levels = levels
        self.last = dict.fromkeys((*levels, "node"), 0)

    def next(self, level: str) -> str:
        """A new name of a level."""
        self.last[level] += 1
        return f"{level}-{self.last[level]}"

    def nodes(self, part: Part) -> list[Node]:
        """The nodes of a summand; levels it does not name get one domain of its own."""
        counts = {level: count for count, level in part.groups}
        named = tuple(level for _, level in part.groups)
        if tuple(level for level in self.levels if level in counts) != named:
            raise ValueError(f"levels {list(named)} do not fit among {list(self.levels)}")
        paths: list[tuple[str, ...]] = [()]
        for level in self.levels:
            paths = [(*p, self.next(level)) for p in paths for _ in range(counts.get(level, 1))]
        return [
            Node(name=self.next("node"), kind=part.kind, devices=part.devices, path=path)
            for path in paths
            for _ in range(part.nodes)
        ]

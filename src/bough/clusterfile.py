"""A cluster from a YAML file that names every level of its tree, or from its short form.

The format is explained in docs/cluster-file.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from bough.core.cluster import DEVICES_MAX, Cluster, parse_short
from bough.core.inventory import CLUSTER
from bough.core.model import Node
from bough.core.terms import TIERS, USUAL
from bough.core.units import parse_duration, parse_indices, parse_rate, parse_size, shown
from bough.errors import InputError
from bough.located import COUNT_MAX, Field, near, parse_documents, read_text, shown_path

NODES_MAX: Final = 100_000
LEVELS_MAX: Final = 12
HOUR_SECONDS: Final = 3600.0
#: What a node is; written at a domain or at the top, it is so for every node below.
TERM_FIELDS: Final = ("tier", "price", "evicted_every", "watts", "link")
NODE_FIELDS: Final = ("kind", "devices", "cpus", "memory", "labels", *TERM_FIELDS)
#: What only single nodes have.
STATE_FIELDS: Final = ("unhealthy", "drained")
TOP_FIELDS: Final = ("short", "levels", "inner", "bandwidth", *NODE_FIELDS, *STATE_FIELDS)
TAKEN: Final = {*TOP_FIELDS, "name", "count", CLUSTER}
_LEVEL: Final = re.compile(r"(?a)[a-z][a-z0-9_-]{0,39}")


def find_cluster(text: str) -> Cluster:
    """The cluster someone means: a file if there is one of this name, else a short form."""
    if text.endswith((".yaml", ".yml", ".json")) or "/" in text or _is_file(text):
        return read_cluster(text)
    try:
        return parse_short(text)
    except ValueError as error:
        raise InputError(str(error), hint="or the name of a YAML file") from None


def read_cluster(path: str | Path) -> Cluster:
    """The cluster of a file."""
    return parse_cluster(read_text(path), shown_path(path))


def parse_cluster(text: str, file: str | None = None) -> Cluster:
    """The same from a text."""
    documents = parse_documents(text, file)
    if len(documents) != 1:
        what = "has no cluster" if not documents else "has more than one document"
        raise InputError(what, file=file, hint="write one cluster, like 4x8xh100")
    top = documents[0]
    if not top.is_mapping:
        return top.read(parse_short)
    grower = _Grower(_levels(top))
    keys = {key for level in grower.levels for key in _spellings(level)}
    given = top.fields((*TOP_FIELDS, *sorted(keys)))
    if "short" in given:
        _take_short(grower, given, keys)
    else:
        grower.grow_below(top, given, _Inside({}))
    _take_state(grower, given)
    inner = _inner(given["inner"], grower) if "inner" in given else {}
    spans = (*grower.levels, *inner, CLUSTER)
    try:
        return Cluster(
            levels=grower.levels,
            nodes=tuple(grower.nodes.values()),
            bandwidth=_bandwidth(given["bandwidth"], spans) if "bandwidth" in given else {},
            inner=inner,
            drained=tuple(grower.drained),
            unhealthy=grower.unhealthy,
        )
    except ValueError as error:
        raise top.error(str(error)) from None


# -------------------------------------------------------------------------------- the tree


class _Inside(NamedTuple):
    """Where in the tree an entry stands, and what it has from above."""

    #: What is said of all nodes here.
    made: dict[str, Any]
    #: Levels above, and the domain of each of them.
    depth: int = 0
    path: tuple[str, ...] = ()
    #: A domain around it has a count, so that names of nodes in it must be numbered.
    repeated: bool = False


class _Grower:
    """Nodes in the order in which they are written, with the names they get."""

    def __init__(self, levels: tuple[str, ...]) -> None:
        self.levels = levels
        self.nodes: dict[str, Node] = {}
        self.drained: dict[str, bool] = {}
        self.unhealthy: dict[str, tuple[int, ...]] = {}
        #: Level and name that is numbered -> its last number, through the whole cluster.
        self.last: dict[tuple[str, str], int] = {}
        self.domains: set[tuple[str, ...]] = set()

    def grow_below(self, field: Field, given: dict[str, Field], inside: _Inside) -> None:
        """Everything in one domain (or the whole cluster), whose fields these are."""
        inside = inside._replace(made=_node_fields(given, inside.made))
        before = len(self.nodes)
        for at in range(inside.depth, len(self.levels)):
            for key in _spellings(self.levels[at]):
                for item in given[key].items() if key in given else []:
                    self.grow(item, at, inside)
        if len(self.nodes) == before:
            raise field.error("has no nodes", f"like {_spellings(self.levels[inside.depth])[1]}: 4")

    def grow(self, field: Field, at: int, inside: _Inside) -> None:
        """An entry of a level: so many equal domains or nodes; a number has no more to say."""
        level = self.levels[at]
        given = field.fields(self.allowed(at, inside.depth)) if field.is_mapping else {}
        counted = given.get("count", None if field.is_mapping else field)
        count = counted.whole(1, NODES_MAX) if counted else 1
        path = inside.path
        for skipped in self.levels[inside.depth : at]:
            if skipped not in given:
                raise field.error(f"{skipped} is missing: in which {skipped} is this {level}?")
            path = (*path, given[skipped].label())
        name = given["name"].label() if "name" in given else level
        numbered = "name" not in given or counted is not None
        if level == "node":
            inside = inside._replace(path=path, made=_node_fields(given, inside.made))
            self.add_nodes(field, given, inside, count, (name, numbered or inside.repeated))
            return
        for _ in range(count):
            domain = (*path, self.number(level, name) if numbered else name)
            if domain in self.domains:
                raise field.error(f"a {level} called {shown(domain[-1])} stands above")
            self.domains.add(domain)
            repeated = inside.repeated or counted is not None
            self.grow_below(field, given, _Inside(inside.made, at + 1, domain, repeated))

    def allowed(self, at: int, depth: int) -> tuple[str, ...]:
        """Fields an entry of a level may have, in a domain of another."""
        below = [key for level in self.levels[at + 1 :] for key in _spellings(level)]
        state = () if below else STATE_FIELDS
        return ("name", "count", *NODE_FIELDS, *state, *self.levels[depth:at], *below)

    def add_nodes(
        self,
        field: Field,
        given: dict[str, Field],
        inside: _Inside,
        count: int,
        naming: tuple[str, bool],
    ) -> None:
        """So many equal nodes, called by a name that is numbered or not."""
        for wanted in ("kind", "devices"):
            if wanted not in inside.made:
                raise field.error(f"{wanted} is missing", "give it here or further up")
        if len(self.nodes) + count > NODES_MAX:
            raise field.error(f"brings the cluster over {NODES_MAX} nodes")
        width = inside.made["devices"]
        broken = _devices(given["unhealthy"], width) if "unhealthy" in given else ()
        drained = given["drained"].flag() if "drained" in given else False
        name, numbered = naming
        for _ in range(count):
            own = self.number("node", name) if numbered else name
            if own in self.nodes:
                raise field.error(f"a node called {shown(own)} stands above")
            self.nodes[own] = Node(name=own, path=inside.path, **inside.made)
            if broken:
                self.unhealthy[own] = broken
            if drained:
                self.drained[own] = True

    def number(self, level: str, name: str) -> str:
        self.last[level, name] = self.last.get((level, name), 0) + 1
        return f"{name}-{self.last[level, name]}"


def _take_short(grower: _Grower, given: dict[str, Field], keys: set[str]) -> None:
    """The nodes of a short form, with what else is said of all of them."""
    for name in ("levels", "kind", "devices", *sorted(keys)):
        if name in given:
            raise given[name].error("cannot stand beside short, which says it already")
    cluster = given["short"].read(parse_short)
    made = _node_fields(given, {})
    grower.levels = cluster.levels
    grower.nodes = {node.name: msgspec.structs.replace(node, **made) for node in cluster.nodes}


def _take_state(grower: _Grower, given: dict[str, Field]) -> None:
    """Drained and unhealthy nodes that are listed by name at the top."""
    if "drained" in given:
        field = given["drained"]
        for name in field.labels():
            grower.drained[_known(field, name, grower).name] = True
    if "unhealthy" in given:
        for name, field in given["unhealthy"].entries().items():
            grower.unhealthy[name] = _devices(field, _known(field, name, grower).devices)


def _known(field: Field, name: str, grower: _Grower) -> Node:
    """The node of that name."""
    if name not in grower.nodes:
        raise field.error(f"no node is called {shown(name)}", near(name, grower.nodes))
    return grower.nodes[name]


# ------------------------------------------------------------------------------ single fields


def _levels(top: Field) -> tuple[str, ...]:
    """Names of the levels from the top down to the node."""
    entries = top.entries()
    field = entries.get("levels")
    if field is None or field.empty:
        for name, entry in entries.items():
            if entry.is_list and name not in TAKEN and name not in _spellings("node"):
                level = name.rstrip("s") if _LEVEL.fullmatch(name) else "rack"
                raise entry.error("is no level yet", f"write levels: [{level}, node]")
        return ("node",)
    names = field.labels()
    for name in names:
        if not _LEVEL.fullmatch(name):
            raise field.error(f"{shown(name)} is no level", "small letters, like rack")
        if name in TAKEN:
            raise field.error(f"{shown(name)} cannot be a level: it means something else here")
    if names[-1:] != ["node"]:
        raise field.error("must end with node", "levels inside a node belong into inner")
    if len(names) > LEVELS_MAX:
        raise field.error(f"has more than {LEVELS_MAX} levels")
    keys = [key for name in names for key in set(_spellings(name))]
    if len(set(keys)) < len(keys):
        raise field.error("has two levels whose plurals are the same")
    return tuple(names)


def _spellings(level: str) -> tuple[str, str]:
    """How the list of a level's domains may be called: rack or racks."""
    if level.endswith("y") and level[-2:-1] not in tuple("aeiou"):
        return level, f"{level[:-1]}ies"
    return level, level + ("es" if level.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _node_fields(given: dict[str, Field], inherited: dict[str, Any]) -> dict[str, Any]:
    """What is said of nodes here, and further up where nothing else is said here."""
    found = dict(inherited)
    if "kind" in given:
        found["kind"] = given["kind"].label().lower()
    if "devices" in given:
        found["devices"] = given["devices"].whole(1, DEVICES_MAX)
    if "cpus" in given:
        found["cpus"] = given["cpus"].number()
    if "memory" in given:
        found["memory"] = float(given["memory"].read(parse_size))
    if "labels" in given:
        labels = {name: label.label() for name, label in given["labels"].entries().items()}
        found["labels"] = inherited.get("labels", {}) | labels
    if terms := _terms(given):
        found["terms"] = msgspec.structs.replace(inherited.get("terms", USUAL), **terms)
    return found


def _terms(given: dict[str, Field]) -> dict[str, Any]:
    """On which terms nodes are had, as far as it is said here."""
    found: dict[str, Any] = {}
    if "tier" in given:
        found["tier"] = given["tier"].choice(TIERS)
    for name in ("price", "watts"):
        if name in given:
            found[name] = given[name].number()
    if "evicted_every" in given:
        seconds = given["evicted_every"].read(parse_duration)
        if not seconds:
            raise given["evicted_every"].error("must be longer than 0")
        found["evictions_per_hour"] = HOUR_SECONDS / seconds
    if "link" in given:
        found["link"] = given["link"].read(parse_rate)
    return found


def _inner(field: Field, grower: _Grower) -> dict[str, int]:
    """Levels inside a node: how many devices each of their domains has."""
    widths = {node.devices: node.name for node in grower.nodes.values()}
    found: dict[str, int] = {}
    for name, size in field.entries().items():
        if not _LEVEL.fullmatch(name) or name in TAKEN or name in grower.levels:
            raise size.error("is no name for a level inside a node", "like island or socket")
        found[name] = size.whole(1, DEVICES_MAX)
        for width, node in widths.items():
            if width > found[name] and width % found[name]:
                raise size.error(f"{found[name]} does not divide the {width} devices of {node}")
    if len(set(found.values())) < len(found):
        raise field.error("has two levels of the same size")
    return found


def _bandwidth(field: Field, levels: tuple[str, ...]) -> dict[str, float]:
    return {name: rate.read(parse_rate) for name, rate in field.fields(levels).items()}


def _devices(field: Field, devices: int) -> tuple[int, ...]:
    """Numbers of devices of a node that has so many."""
    if field.is_list:
        found = tuple(sorted({item.whole(0, COUNT_MAX) for item in field.items()}))
    else:
        found = field.read(parse_indices)
    if found and found[-1] >= devices:
        raise field.error(f"device {found[-1]} does not exist: the node has 0 to {devices - 1}")
    return found


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False

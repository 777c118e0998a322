"""What this machine has: its devices as nodes of the tree, and a reader of their meters."""

from __future__ import annotations

import logging
import math
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bough.core.model import Node
from bough.errors import InputError
from bough.hardware import amd, ascend, cpu, nvidia
from bough.hardware.layout import inner_levels, islands
from bough.hardware.readings import Device, NotHere, Reading, Readings, Source

if TYPE_CHECKING:
    from bough.core.cluster import Cluster

_log = logging.getLogger(__name__)

FORMS = "cpu, cpu:8, nvidia, nvidia:0,2-3, amd, ascend, nvidia+cpu:4"
#: As many devices as a node may have.
SLOTS_MAX = 4096
#: Makers in the order in which they are asked.
MAKERS: Mapping[str, Callable[[], Source]] = {
    "nvidia": nvidia.find, "amd": amd.find, "ascend": ascend.find,
}  # fmt: skip
#: Label of a node whose devices are not simply number 0, 1, 2 … of their maker's.
NUMBERS = "numbers"


class Part(NamedTuple):
    """The devices of one node, and who can be asked about them."""

    node: Node
    source: Source
    devices: tuple[Device, ...]


class Reader:
    """Asks all sources about the devices of the machine."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple(parts)
        sources = {id(part.source): part.source for part in parts}
        self._sources = tuple(sources.values())
        #: Do not ask more often; infinite: there is nothing to ask.
        self.seconds = min((source.seconds for source in self._sources), default=math.inf)

    def read(self) -> Readings:
        """Every device now. One of which nothing is heard ails; never an exception."""
        found: dict[tuple[str, int], Reading] = {}
        answers = {id(source): _answer(source) for source in self._sources}
        for part in self._parts:
            answer = answers[id(part.source)]
            for index, device in enumerate(part.devices):
                found[part.node.name, index] = _reading(device, answer)
        return found

    def forgive(self) -> None:
        """Somebody has seen to the devices: forget what they did before."""
        for source in self._sources:
            source.forgive()


class Machine(NamedTuple):
    """What this machine has, as the tree sees it."""

    nodes: tuple[Node, ...]
    levels: tuple[str, ...]
    inner: dict[str, int]
    bandwidth: dict[str, float]
    reader: Reader
    #: For a user to read: tools, versions, devices.
    facts: tuple[tuple[str, str], ...] = ()
    #: What a user should know.
    notes: tuple[str, ...] = ()

    def cluster(self) -> Cluster:
        """The same as a cluster of its own."""
        from bough.core.cluster import Cluster  # the whole tree, for who only wants to look

        return Cluster(
            levels=self.levels, nodes=self.nodes, inner=self.inner, bandwidth=self.bandwidth
        )


def probe(devices: str | None = None) -> Machine:
    """What this machine has: as `devices` says ("cpu:8"), or else the first that is found."""
    sources, notes = _chosen(devices) if devices else _any()
    parts = _parts(sources)
    inner, bandwidth = _tree(parts)
    facts = [fact for source, _ in sources for fact in source.facts]
    for part in parts:
        models = ", ".join(dict.fromkeys(device.model for device in part.devices))
        facts.append((part.node.name, f"{part.node.devices} {part.node.kind} ({models})"))
    return Machine(
        nodes=tuple(part.node for part in parts),
        levels=("node", *sorted(inner, key=lambda name: -inner[name])),
        inner=inner,
        bandwidth=bandwidth,
        reader=Reader(parts),
        facts=tuple(facts),
        notes=(*notes, *(note for source, _ in sources for note in source.notes)),
    )


def facts(devices: str | None = None) -> list[tuple[str, str]]:
    """What was found and how, in pairs of a name and a text, notes last."""
    machine = probe(devices)
    return [*machine.facts, *(("note", note) for note in machine.notes)]


# ----------------------------------------------------------------------------------- what to ask

#: A source, and which of its devices are wanted.
_Choice = tuple[Source, tuple[Device, ...]]


def _any() -> tuple[list[_Choice], list[str]]:
    """The first maker that has devices here; else CPU slots, and why no maker has."""
    notes = []
    for find in MAKERS.values():
        try:
            source = find()
        except NotHere as error:
            notes += [str(error)] if str(error) else []
            continue
        return [(source, source.devices)], notes
    slots = cpu.Slots(_usable_slots(), f"no device of {', '.join(MAKERS)} is here")
    return [(slots, slots.devices)], notes


def _chosen(text: str) -> tuple[list[_Choice], list[str]]:
    """The sources that a user named."""
    chosen = [_choice(part.strip().lower(), text) for part in text.split("+")]
    makers = [source.maker for source, _ in chosen]
    if len(set(makers)) < len(makers):
        raise InputError(f"{text!r} names a maker twice", field="--devices", hint=FORMS)
    return chosen, []


def _choice(part: str, text: str) -> _Choice:
    name, _, rest = part.partition(":")
    if name == "cpu":
        plain = re.fullmatch(r"\d{1,4}", rest, re.ASCII)
        count = int(rest) if plain else 0 if rest else _usable_slots()
        if not 1 <= count <= SLOTS_MAX:
            what = f"{text!r}: write 1 to {SLOTS_MAX} CPU slots"
            raise InputError(what, field="--devices", hint=f"like {FORMS}")
        slots = cpu.Slots(count)
        return slots, slots.devices
    if name not in MAKERS:
        raise InputError(f"cannot read {text!r}", field="--devices", hint=f"like {FORMS}")
    try:
        source = MAKERS[name]()
    except NotHere as error:
        raise InputError(
            f"no device of {name}: {str(error) or 'no driver or tool of theirs is here'}",
            field="--devices",
            hint="without --devices, what there is is taken",
        ) from None
    if not rest:
        return source, source.devices
    wanted = _numbers(rest, text)
    known = {device.number: device for device in source.devices}
    if missing := [number for number in wanted if number not in known]:
        raise InputError(
            f"{name} has no device {missing[0]}",
            field="--devices",
            hint=f"there are {', '.join(map(str, known))}",
        )
    return source, tuple(known[number] for number in wanted)


def _numbers(text: str, whole: str) -> list[int]:
    """`0,2-3` is 0, 2 and 3."""
    found: set[int] = set()
    for word in text.split(","):
        ends = re.fullmatch(r"\s*(\d{1,4})(?:\s*-\s*(\d{1,4}))?\s*", word, re.ASCII)
        if ends is None or int(ends[2] or ends[1]) < int(ends[1]):
            raise InputError(f"cannot read {whole!r}", field="--devices", hint=f"like {FORMS}")
        found.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return sorted(found)


def _usable_slots() -> int:
    return min(max(int(cpu.cpus()), 1), SLOTS_MAX)


# ------------------------------------------------------------------------------------- what it is


def _parts(sources: Sequence[_Choice]) -> list[Part]:
    """A node for each kind; CPUs and memory are shared out by the number of devices."""
    host = socket.gethostname().split(".")[0] or "here"
    groups: dict[tuple[str, str], tuple[Source, list[Device]]] = {}
    for source, chosen in sources:
        for device in chosen:
            groups.setdefault((source.maker, device.kind), (source, []))[1].append(device)
    total = sum(len(devices) for _, devices in groups.values())
    cpus, memory = cpu.cpus(), cpu.memory()
    parts: list[Part] = []
    for (maker, kind), (source, devices) in groups.items():
        share = len(devices) / total
        labels = {"maker": maker}
        numbers = [device.number for device in devices]
        if numbers != list(range(len(numbers))):
            labels[NUMBERS] = ",".join(map(str, numbers))
        node = Node(
            name=f"{host}-{kind}" if parts else host,
            kind=kind,
            devices=len(devices),
            cpus=math.floor(cpus * share * 1000) / 1000,
            memory=memory if memory == math.inf else float(int(memory * share)),
            labels=labels,
        )
        parts.append(Part(node, source, tuple(devices)))
    return parts


def _tree(parts: Sequence[Part]) -> tuple[dict[str, int], dict[str, float]]:
    """Levels inside the nodes, where all agree on them, and the bandwidths that are known."""
    found = []
    for part in parts:
        numbers = [device.number for device in part.devices]
        labels = islands(numbers, part.source.links.direct)
        sockets = [device.socket for device in part.devices]
        found.append((inner_levels(labels, sockets), len(set(labels)) == 1 < len(labels)))
    inner = found[0][0] if all(levels == found[0][0] for levels, _ in found) else {}
    links = parts[0].source.links
    bandwidth: dict[str, float] = {}
    if len(parts) == 1:
        beyond = links.direct_bandwidth if found[0][1] else links.bus_bandwidth
        known = {"island": links.direct_bandwidth, "socket": beyond, "node": beyond}
        bandwidth = {
            name: speed for name, speed in known.items() if speed and name in (*inner, "node")
        }
    return inner, bandwidth


# ------------------------------------------------------------------------------------- what it says


def _answer(source: Source) -> Mapping[int, Reading] | str:
    try:
        return source.read()
    except NotHere as error:
        return str(error)
    except Exception as error:
        # A version of a tool that nobody has seen yet must not end the watch over other makers'.
        _log.exception("reading the devices of %s", source.maker)
        return f"what its driver says cannot be read ({type(error).__name__}: {error})"


def _reading(device: Device, answer: Mapping[int, Reading] | str) -> Reading:
    """What was read of a device; a tool's silence is no proof that the device itself is broken."""
    known = Reading(model=device.model, uuid=device.uuid)
    if isinstance(answer, str):
        return known._replace(ailment=f"does not answer: {answer}")
    found = answer.get(device.number)
    if found is None:
        return known._replace(ailment="is no longer there", broken=True)
    return found

"""What devices draw and how fast they go at each clock: power and energy models, by kind and job.

A device that a job keeps busy for a share of its time, at a clock that is a part of the full one
(1.0: as fast as it goes), draws

    idle + draw * busy * (peak - idle) * (1 - scaled + scaled * clock ** EXPONENT)

watts, and the job's computing takes (1 - sensitivity) + sensitivity / clock times as long. What it
spends on waiting for its other devices is neither faster nor does it draw more. So there is a
clock with which a job needs least energy: lower, and it only takes longer.

The clock is that of the formula: how a device is held to it, by a locked clock or by a power cap
(`cap_watts`), is for whoever carries it out.

Kinds marked "fitted" and the workloads are our fit to Zeus' public tables (NSDI '23; four kinds,
six workloads, 176 measurements; sim/power_tables.py makes it again, docs/energy.md shows its
errors). Other kinds have their maker's power limit and our proportions, and say so.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from bough.core.known_models import ALIASES, plain
from bough.core.model import Node

#: Power falls with this power of the clock. The tables do not tell: from 1.5 to 3 the fit is as
#: good (5.8 to 6.0 % root mean square). Voltage falls with the clock, but not as far.
EXPONENT: Final = 2.0
#: Clocks that are chosen among; 1.0 is no limit. The lowest that was measured is 0.3.
CLOCKS: Final = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
JOULES_OF_KWH: Final = 3.6e6

#: What a node draws beside its devices while anybody is on it: a part for itself and one for each
#: device (fans, CPUs that feed it, links). Ours: an eight-device server is at 500 W, which is
#: what makers' limits for such servers leave beside their devices, less what only full load draws.
NODE_WATTS: Final = 100.0
NODE_WATTS_PER_DEVICE: Final = 50.0
#: The same for a slot of a node without accelerators.
CPU_NODE_WATTS_PER_DEVICE: Final = 2.0


class Power(NamedTuple):
    """What one device of a kind draws."""

    #: With nothing to do, but awake.
    idle: float
    #: With the hungriest workload at full clock.
    peak: float
    #: The part of what a workload adds that falls with the clock.
    scaled: float
    source: Literal["fitted", "assumed"] = "fitted"


class Work(NamedTuple):
    """What a model makes of a device."""

    #: Of what the hungriest workload adds to an idle device.
    draw: float
    #: The part of its computing that a slower clock makes longer.
    sensitivity: float


#: Ours for kinds nobody measured: idle and peak as parts of the maker's limit, as a V100's are.
IDLE_SHARE, PEAK_SHARE, SCALED = 0.14, 0.92, 0.75


def assumed(limit: float) -> Power:
    """A kind of which only the maker's power limit is known."""
    return Power(IDLE_SHARE * limit, PEAK_SHARE * limit, SCALED, "assumed")


POWERS: Final[dict[str, Power]] = {
    "v100": Power(36.1, 226.7, 0.719),
    "a40": Power(80.6, 243.9, 0.771),
    "p100": Power(33.4, 173.6, 0.791),
    "rtx6000": Power(55.4, 243.8, 0.792),
    "k80": assumed(150.0),
    "t4": assumed(70.0),
    "rtx3090": assumed(350.0),
    "a10": assumed(150.0),
    "l4": assumed(72.0),
    "l40": assumed(300.0),
    "a100": assumed(400.0),
    "h100": assumed(700.0),
    "h200": assumed(700.0),
    "b200": assumed(1000.0),
    "mi300x": assumed(750.0),
    "ascend910": assumed(310.0),
    "ascend910b": assumed(400.0),
    # One core with its share of the memory.
    "cpu": Power(1.0, 6.0, SCALED, "assumed"),
}
#: Kinds that nobody knows are like this one.
USUAL_KIND: Final = "v100"

WORKS: Final[dict[str, Work]] = {
    "resnet50": Work(0.905, 0.393),
    "bert": Work(1.0, 0.416),
    "deepspeech2": Work(0.620, 0.448),
    "mobilenet": Work(0.788, 0.302),  # measured as ShuffleNet, as light and as small
    "ncf": Work(0.015, 1.0),
}
#: Models that nobody measured: the mean of those that keep a device busy.
USUAL_WORK: Final = Work(0.83, 0.39)


def power_of(kind: str) -> Power:
    """The model of that kind; "a100-80gb" is an a100."""
    name = plain(kind)
    while name and name not in POWERS:
        name = name[:-1]
    return POWERS[name or USUAL_KIND]


def work_of(model: str) -> Work:
    """What that model draws, by any of its names."""
    name = plain(model)
    return WORKS.get(ALIASES.get(name, name), USUAL_WORK)


def active(power: Power, clock: float) -> float:
    """What is left, at that clock, of what a workload adds to an idle device."""
    found: float = 1.0 - power.scaled + power.scaled * clock**EXPONENT
    return found


def device_watts(power: Power, work: Work, busy: float = 1.0, clock: float = 1.0) -> float:
    """What one device draws under such a job."""
    return power.idle + work.draw * busy * (power.peak - power.idle) * active(power, clock)


def pace(work: Work, busy: float, clock: float) -> float:
    """What is left of a job's speed at that clock, when so much of its time is computing."""
    return 1.0 / (1.0 + busy * work.sensitivity * (1.0 / clock - 1.0))


def busy_share(size: int, speed: float, unit: float) -> float:
    """The share of its time in which a job computes: its speed over that of as many alone.

    `unit` is its speed for each device at the smallest size it can have.
    """
    return min(speed / (size * unit), 1.0) if size and unit > 0 else 1.0


def cap_watts(power: Power, clock: float) -> float:
    """The power cap that holds a device at that clock, whatever runs on it."""
    return power.idle + (power.peak - power.idle) * active(power, clock)


def thriftiest(power: Power, work: Work, busy: float = 1.0, share_watts: float = 0.0) -> float:
    """The clock of `CLOCKS` at which a job's work costs least energy.

    With `share_watts` of its node's charged to each of its devices, slower is sooner too slow.
    """

    def joules(clock: float) -> float:
        watts = device_watts(power, work, busy, clock) + share_watts
        return watts / pace(work, busy, clock)

    return min(reversed(CLOCKS), key=joules)


def node_watts(node: Node) -> float:
    """What a node draws, its devices left aside, while anybody is on it."""
    if node.terms.watts is not None:
        return node.terms.watts
    if plain(node.kind) == "cpu":
        return NODE_WATTS + CPU_NODE_WATTS_PER_DEVICE * node.devices
    return NODE_WATTS + NODE_WATTS_PER_DEVICE * node.devices


def standing_watts(node: Node) -> float:
    """The same with its devices idle: what is shared by whoever is on it."""
    return node_watts(node) + power_of(node.kind).idle * node.devices

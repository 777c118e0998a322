"""The words of the system: what users ask, what happens (events) and what is to be done (commands).

Everything that is stored, sent, logged or replayed is one of these frozen structs.
This module imports no numpy, so that clients stay quick to start.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import msgspec

from bough.core.terms import USUAL, Terms

INFINITY = float("inf")
#: Larger numbers are slips of the pen.
DEVICES_MAX = 10_000_000
AMOUNT_MAX = 10**18
PRIORITY_MAX = 1_000_000
WEIGHT_MAX = 1e6


class Frozen(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Base of everything a user may write: unknown fields are errors, values never change."""


# --------------------------------------------------------------------------- what users ask


@lru_cache(maxsize=1024)
def sizes_between(least: int, most: int, steps: tuple[int, ...]) -> tuple[int, ...]:
    """The ends and the steps between them; powers of two when no steps are given."""
    powers = [] if steps else [1 << p for p in range(most.bit_length()) if least < 1 << p < most]
    return tuple(sorted({least, most, *steps, *powers}))


def check_amounts(asked: Frozen, *names: str) -> None:
    """Refuse what is negative, endless or no number."""
    for name in names:
        if not 0 <= getattr(asked, name) <= AMOUNT_MAX:
            raise ValueError(f"{name} must be 0 or more, and at most {AMOUNT_MAX:g}")


class Range(Frozen, frozen=True):
    """How many devices (or workers) a job accepts."""

    #: Fewest it can run with.
    min: int = 1
    #: Most it can use.
    max: int = 1
    #: Sizes allowed between; empty means powers of two (besides min and max themselves).
    steps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.min <= self.max <= DEVICES_MAX:
            said = f"0 <= min <= max <= {DEVICES_MAX}"
            raise ValueError(f"range {self.min}..{self.max} needs {said}")
        if any(not self.min <= s <= self.max for s in self.steps):
            raise ValueError(f"steps {list(self.steps)} must lie within {self.min}..{self.max}")

    def sizes(self) -> tuple[int, ...]:
        """Every size allowed, ascending."""
        return sizes_between(self.min, self.max, self.steps)


class Role(Frozen, frozen=True):
    """One part of a gang: so many workers, each with devices, CPUs and memory."""

    name: str
    count: Range = Range()
    #: Devices for each worker; 0 for roles that only need CPUs (parameter servers).
    devices: int = 1
    cpus: float = 0.0
    memory: int = 0
    #: Command of this role; empty means the job's.
    command: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_amounts(self, "devices", "cpus", "memory")


class Wish(Frozen, frozen=True):
    """Where a gang would like to be in the tree."""

    #: prefer and require keep the gang inside one domain of `level`; spread puts workers apart.
    mode: Literal["prefer", "require", "spread"] = "prefer"
    #: Name of a level of the tree ("node", "rack" …); empty lets the lowest that fits be chosen.
    level: str = ""


class After(Frozen, frozen=True):
    """A job that must end first."""

    job: str
    on: Literal["success", "failure", "any"] = "success"


class Carbon(Frozen, frozen=True):
    """What a job would do for a lower footprint."""

    max_delay_seconds: float = 0.0  #: Longest wait for cleaner power.
    budget_grams: float = INFINITY  #: Ceiling for the whole run; none when infinite.

    def __post_init__(self) -> None:
        if self.budget_grams == INFINITY:
            msgspec.structs.force_setattr(self, "budget_grams", INFINITY)


class JobSpec(Frozen, frozen=True):
    """What a user asks for. Never changes after submission."""

    name: str  #: As listings show it.
    command: tuple[str, ...] = ()  #: Of one that no daemon runs; else its recipe has it.
    #: Fewest and most devices; ignored when roles are given.
    devices: Range = Range()
    #: A gang of roles; at most one of them may be elastic.
    roles: tuple[Role, ...] = ()
    #: Acceptable kinds of device, best first; empty means any.
    kinds: tuple[str, ...] = ()
    #: For each device (plain range) when no roles are given.
    cpus: float = 0.0
    memory: int = 0  #: Bytes, for each device.
    user: str = ""  #: Whose it is.
    queue: str = "default"  #: Which pays for it.
    priority: int = 0  #: Higher goes first.
    weight: float = 1.0  #: Beside other jobs of its queue, where a policy shares by weight.
    #: Seconds since the epoch of the driving clock.
    deadline: float | None = None
    #: Seconds after submission; turned into `deadline` when the job is accepted.
    deadline_after: float | None = None
    #: A guaranteed job is admitted only if its deadline can be kept; best effort is never rejected.
    service: Literal["guaranteed", "best-effort"] = "best-effort"
    #: The job is stopped when it has run this long.
    max_run_seconds: float = INFINITY
    topology: Wish = Wish()  #: Where it wants to run.
    preemptible: bool = True  #: May be parked or shrunk for others.
    min_run_seconds: float = 0.0  #: Is left alone for this long after each start.
    after: tuple[After, ...] = ()  #: Jobs it waits for.
    array_index: int | None = None  #: In an array.
    array_of: str = ""  #: That array's name.
    retries: int = 0  #: Tries after failing by its own fault.
    carbon: Carbon | None = None  #: What it may emit.
    resize_in_place: bool = True  #: Can change size without ending its processes.
    model: str = ""  #: What it trains, for looking up how fast it runs.
    batch: int = 0  #: Batch size, for the same.
    #: The user's estimate of the run time on `estimate_devices` devices (None: unknown).
    estimate_seconds: float | None = None
    estimate_devices: int = 0  #: 0 means the largest size of the range.

    def __post_init__(self) -> None:
        if sum(len(r.count.sizes()) > 1 for r in self.roles) > 1:
            raise ValueError("at most one role may have a range of counts")
        if any(not r.devices and len(r.count.sizes()) > 1 for r in self.roles):
            raise ValueError("a role without devices cannot have a range of counts")
        if not 1 <= self.sizes()[0] <= self.sizes()[-1] <= DEVICES_MAX:
            raise ValueError(f"it needs 1 to {DEVICES_MAX} devices")
        if not self.max_run_seconds > 0:
            raise ValueError("max_run_seconds must be positive")
        if self.max_run_seconds == INFINITY:  # the same object, so that it is left out in writing
            msgspec.structs.force_setattr(self, "max_run_seconds", INFINITY)
        if self.estimate_seconds is not None and not 0 < self.estimate_seconds < INFINITY:
            raise ValueError("estimate_seconds must be positive and finite")
        if abs(self.priority) > PRIORITY_MAX:
            raise ValueError(f"priority must be from -{PRIORITY_MAX} to {PRIORITY_MAX}")
        if not 0 < self.weight <= WEIGHT_MAX:
            raise ValueError(f"weight must be more than 0 and at most {WEIGHT_MAX:g}")
        check_amounts(
            self, "cpus", "memory", "min_run_seconds", "retries", "estimate_devices", "batch"
        )

    def sizes(self) -> tuple[int, ...]:
        """Every number of devices the whole gang may hold, ascending."""
        if not self.roles:
            return self.devices.sizes()
        fixed = sum(r.devices * r.count.min for r in self.roles if len(r.count.sizes()) == 1)
        for role in self.roles:
            if len(role.count.sizes()) > 1:
                return tuple(fixed + role.devices * n for n in role.count.sizes())
        return (fixed,)

    def workers(self, size: int) -> tuple[int, ...]:
        """How many workers of each role a gang of so many devices has."""
        fixed = sum(r.devices * r.count.min for r in self.roles if len(r.count.sizes()) == 1)
        return tuple(
            r.count.min if len(r.count.sizes()) == 1 else (size - fixed) // r.devices
            for r in self.roles
        )


class Queue(Frozen, frozen=True):
    """A node of the tenancy tree."""

    name: str  #: Its name.
    parent: str = ""  #: Empty for the root's children.
    guarantee: int = 0  #: Devices it gets back on demand.
    #: Devices it may never exceed, borrowing included.
    limit: int | None = None
    weight: float = 1.0  #: Share of what is left over among siblings.
    borrow: bool = True  #: May use what others leave.
    #: Counts, beside its siblings, by what its jobs use most: devices, CPUs or memory.
    dominant: bool = False
    #: Limits for single kinds of device.
    kind_limits: dict[str, int] = {}
    #: Past use counts half after this long; 0 means that past use does not count.
    half_life_seconds: float = 0.0
    #: Device-hours it may still use; none when infinite.
    budget_device_hours: float = INFINITY
    paused: bool = False  #: A paused queue starts nothing.


class Node(Frozen, frozen=True):
    """A machine: so many devices of one kind, at a path in the tree."""

    name: str
    kind: str
    devices: int
    #: Domain names from the top level to the one above the node, e.g. ("zone-1", "rack-3").
    path: tuple[str, ...] = ()
    cpus: float = INFINITY
    memory: float = INFINITY
    labels: dict[str, str] = {}
    terms: Terms = USUAL  #: On which it is had.


#: Devices held, node by node: ((node name, (device number, …)), …).
Place = tuple[tuple[str, tuple[int, ...]], ...]


# --------------------------------------------------------------------------- what happens


class Event(msgspec.Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Something happened at a moment; the moment is read at the edge, never inside."""

    at: float


class Submitted(Event, frozen=True):
    id: str
    spec: JobSpec


class Cancelled(Event, frozen=True):
    """A user wants the job gone."""

    id: str


class Held(Event, frozen=True):
    """A user parks the job (held) or lets it go on."""

    id: str
    held: bool = True


class Amended(Event, frozen=True):
    """A live job asks for something else from now on; None leaves a thing as it is.

    A deadline or a longest run time of 0 is none at all. Gangs of roles keep their devices.
    """

    id: str
    devices: Range | None = None
    queue: str | None = None
    priority: int | None = None
    deadline: float | None = None
    max_run_seconds: float | None = None


class Started(Event, frozen=True):
    """The processes of this epoch run."""

    id: str
    epoch: int


class Resized(Event, frozen=True):
    """The job holds exactly the place of that step of this epoch."""

    id: str
    epoch: int
    step: int
    ok: bool = True


class Exited(Event, frozen=True):
    """The processes of this epoch are gone and its devices are free."""

    id: str
    epoch: int
    #: Finished its work; failed by its own fault; was lost by the machine's; stopped as commanded.
    why: Literal["done", "failed", "lost", "stopped"] = "done"
    code: int = 0
    note: str = ""  #: What its body knows of it, in words.


class Progressed(Event, frozen=True):
    """Measured progress: how much of the work is left, how fast it goes on how many devices."""

    id: str
    epoch: int
    #: Work left, in seconds on one device of the reference kind; None when unknown.
    left: float | None = None
    rate: float | None = None  #: Work per second at the present size.
    size: int = 0


class NodeUp(Event, frozen=True):
    """A node joins, or comes back, or changed."""

    node: Node


class NodeDown(Event, frozen=True):
    """A node is gone with everything on it."""

    name: str


class NodeDrained(Event, frozen=True):
    """A node takes nothing new (drain) or takes jobs again."""

    name: str
    drained: bool = True


class DeviceHealth(Event, frozen=True):
    """A device became unusable (unhealthy, or taken by somebody else), or usable again."""

    name: str
    device: int
    healthy: bool = True
    #: What ails it, or who has it, in words.
    note: str = ""


class QueueSet(Event, frozen=True):
    """A queue is made or changed."""

    queue: Queue


class Tick(Event, frozen=True):
    """Time passed; sent at the moment the scheduler asked to be woken."""


AnyEvent = (
    Submitted | Cancelled | Held | Amended | Started | Resized | Exited | Progressed
    | NodeUp | NodeDown | NodeDrained | DeviceHealth | QueueSet | Tick
)  # fmt: skip


# --------------------------------------------------------------------------- what is to be done


class Command(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """An order to the body that runs jobs."""

    id: str
    epoch: int


class Start(Command, frozen=True):
    """Start this epoch's processes on the place. They may start only here."""

    place: Place
    #: For a gang of roles, where each worker goes: (role, node, device numbers).
    seats: tuple[tuple[str, str, tuple[int, ...]], ...] = ()


class Resize(Command, frozen=True):
    """Keep the processes, hold exactly this place from now on; answer with Resized(step)."""

    step: int
    place: Place


class Stop(Command, frozen=True):
    """End the processes; answer with Exited. `park` keeps their state for another epoch."""

    park: bool = True


class Clock(Command, frozen=True):
    """Hold its devices at this part of their full clock, if that can be done; no answer."""

    clock: float


class Ended(Command, frozen=True):
    """The job reached its end in the books: nothing of it will be started again."""

    state: Literal["done", "failed", "cancelled", "rejected", "timed-out"]
    reason: str = ""


AnyCommand = Start | Resize | Stop | Clock | Ended

"""The contract between the core and a policy: a view goes in, a plan comes out.

1. ``plan`` is called after a batch of events, never concurrently.
2. The view is read-only; its columns are handed out unwriteable.
3. The same view gives the same plan: no clock, no global state, no unseeded randomness.
4. A size of 0 means wait or give way; any other size must be one the job allows, within
   ``jobs.lo .. jobs.hi``; rows with ``jobs.must`` may not be 0. The core checks every plan,
   refuses a bad one and keeps the last good one.
5. The view holds one pool (a kind of device) and one queue's entitlement at a time unless the
   policy asks for more by ``scope``: "queue" (default), "pool" (all queues of a kind) or
   "cluster" (all kinds; the plan is then a matrix, jobs x pools). On another kind than
   ``jobs.pool`` a job may have any size of its class there (``classes_on``), unless it ``must``.
6. A policy keeps no state; its fields are its knobs.
7. ``Plan.wake_at`` names the next moment at which time alone would change the plan.
8. A policy that says what jobs are content with (``content_with``) is not asked while all jobs
   have that, and what arrives or ends leaves enough for all. A wake_at is of no use then. One
   that looks at power is always asked where there is a budget.
9. Two forms of plan: *sizes* (one number for each job) or an *order* (jobs get their wished size
   one after another while they can be placed; with ``skip``, those that cannot are passed over).
10. ``admit`` says yes, no, or yes without the promise (``Verdict.promised``): the job then counts
   as best effort from its first row on.
11. Nothing is computed for ``View.history``, ``takes`` and ``power`` unless a policy says that it
    ``learns``, ``weighs`` or ``meters``. Clocks (``Plan.clocks``) are wishes: a body that may not
    set them lets devices go as fast as they do. While a budget is used up no policy is asked.
12. Where jobs go is the tree's to say. A policy that ``places`` sees its nodes (``View.ground``)
   and may name devices (``Plan.places``): a preference, for who starts or grows.
13. A row that finds no place takes it from rows of lower priority; where ``Plan.rank`` is given,
   from rows of lower rank instead. Those are seated anew where there is room.
14. ``Plan.within`` keeps a row's next place inside one domain of a level of ``View.links``, which
   is made for a policy that ``surveys``. A place it has stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from bough.core.ground import Ground
from bough.core.jobs import Jobs, Slots
from bough.core.model import INFINITY, JobSpec
from bough.core.reason import Facts, Reason
from bough.core.series import Series

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NOTHING: Floats = np.zeros(0)
NO_CLASSES: Ints = np.zeros((0, 0), np.int64)
NO_SECONDS: Floats = np.zeros((0, 0))


class Classes:
    """How jobs may grow: jobs with the same sizes at the same believed speeds are of one class.

    ``sizes[c]`` are the sizes of class c ascending, beginning with 0 (not running), padded by
    repeating the last; ``speed[c]`` is the believed work per second at each of them.
    """

    __slots__ = ("cache", "count", "sizes", "speed")

    def __init__(self, sizes: Ints, speed: Floats) -> None:
        self.sizes = sizes
        self.speed = speed
        self.count = len(sizes)
        #: Tables derived from the two above by the building blocks; the object is replaced
        #: whenever a class changes, and with it whatever was derived.
        self.cache: dict[str, Any] = {}

    def speed_at(self, cls: Ints, size: Ints) -> Floats:
        """Believed speed of jobs of these classes at these sizes (which must be allowed ones)."""
        step = (self.sizes[cls] < size[:, None]).sum(axis=1)
        found: Floats = self.speed[cls, step]
        return found


@dataclass(slots=True)
class QueueShare:
    """What one queue has in this view."""

    name: str
    entitled: int
    used: float
    weight: float
    #: Devices it gets back on demand, besides those of queues below it.
    guarantee: int = 0


@dataclass(slots=True, frozen=True)
class Links:
    """The levels of the tree that a place may span, from the bottom up, and what jobs exchange."""

    names: tuple[str, ...]
    #: Bytes per second between devices of a domain of each level (infinite: not told), and the
    #: devices of its largest domain.
    bandwidth: Floats
    most: Ints
    #: Of each row: bytes exchanged in a step (0: not known), seconds of a step on one device.
    bytes: Floats
    seconds: Floats


class EdgeOffer(NamedTuple):
    """A pool of single devices at the edge, as it is to one who asks to be taken on."""

    free: int
    #: Believed speed on one device, and seconds that the way there takes.
    speed: float
    move_seconds: float


@dataclass(slots=True, frozen=True)
class Newcomer:
    """A job that asks to be taken on, in the numbers it would have as a row of the view."""

    #: Index into ``View.classes``.
    cls: int
    #: Estimated work (device-seconds on one device); infinite: unknown.
    left: float
    #: When it must be done; infinite: whenever.
    deadline: float
    #: For policies of scope "cluster" that say where jobs go: each pool at the edge on one device
    #: of which it could run.
    edges: tuple[EdgeOffer, ...] = ()


@dataclass(slots=True)
class PowerView:
    """What a policy that meters is told of power; the formulas are those of core/energy.py."""

    #: Of a device of this kind: watts when idle, what the hungriest work adds at full clock, and
    #: the part of that which falls with the clock.
    idle: float
    span: float
    scaled: float
    #: Of each job: what it adds, and the part of its computing that a lower clock makes longer.
    draw: Floats
    sensitivity: Floats
    #: What a node draws with idle devices while anybody is on it, in the mean; most devices of one.
    node_watts: float = 0.0
    node_devices: int = 1
    #: Watts that may be drawn to the end of the budget's window: at the same power all the time, or
    #: using up the same in each hour. The moment at which both are other numbers.
    allowance: float = INFINITY
    even_allowance: float = INFINITY
    until: float = INFINITY
    #: Grams of CO2 and money for each kWh, now and as forecast.
    carbon: Series | None = None
    price: Series | None = None


@dataclass(slots=True)
class View:
    """All a policy may look at."""

    now: float
    #: Devices to hand out among these jobs.
    devices: int
    #: Live jobs that may run now, as columns in order of submission.
    jobs: Jobs
    classes: Classes
    #: Devices of each pool (a single one unless the policy's scope is "cluster").
    pools: tuple[int, ...] = ()
    pool_names: tuple[str, ...] = ()
    #: Queues by the index in ``jobs.queue``.
    queues: tuple[QueueShare, ...] = ()
    #: Device-seconds that jobs used which reached their end lately, ascending; empty unless the
    #: policy says that it learns.
    history: Floats = field(default_factory=lambda: NOTHING)
    #: How far off beliefs of speeds and estimates were of late, as a relative error, when jobs were
    #: measured first (`jobs.measured`); 0 when they were right, or as long as nothing was seen.
    doubt: float = 0.0
    #: For scope "cluster": the class of each job on each pool; -1 where it cannot run.
    classes_on: Ints = field(default_factory=lambda: NO_CLASSES)
    #: For scope "cluster": seconds each job ran on each pool lately (see Policy.remembers).
    ran_on: Floats = field(default_factory=lambda: NO_SECONDS)
    #: jobs x (devices, CPUs, memory): what a job takes with each device, as a share of all there
    #: is over the share that a device is; empty unless the policy says that it looks.
    takes: Floats = field(default_factory=lambda: NOTHING)
    #: Power, clocks and budgets; only for policies that say that they meter.
    power: PowerView | None = None
    #: What lies between devices, and what jobs send over it; None unless the policy says that it
    #: surveys.
    links: Links | None = None
    #: The nodes and who is on them; only for policies that say where jobs go.
    ground: Ground | None = None
    #: Only when ``admit`` is asked: who asks. The rows are then all jobs of that kind of device,
    #: also those that may not run yet, and ``devices`` all devices of it.
    newcomer: Newcomer | None = None


@dataclass(slots=True)
class Plan:
    """How many devices each job of the view has from now on."""

    #: One wished size for each job of the view (a matrix, jobs x pools, for scope "cluster").
    sizes: Ints
    #: When given: rows of the view in the order in which sizes are granted.
    order: Ints | None = None
    #: In an ordered plan, whether jobs that cannot be placed are passed over.
    skip: bool = True
    #: The part of its full clock at which each job's devices go, above 0; None: all at 1.
    clocks: Floats | None = None
    #: When time alone would change this plan.
    wake_at: float = INFINITY
    #: row -> all devices it is to hold if it starts or grows. What cannot be had so, or is not of
    #: its size, is placed as ever.
    places: dict[int, Slots] = field(default_factory=dict)
    #: When given: for each row, who may take its place (those of a higher rank) if it is needed.
    rank: Ints | None = None
    #: When given: for each row, the highest level (an index into ``Links.names``) that its next
    #: place may span; -1: any.
    within: Ints | None = None
    #: Whether a policy that moves smaller jobs (``Policy.moves``) does so this time.
    moves: bool = True
    #: A word for jobs the policy deliberately leaves waiting: row -> reason code.
    reasons: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class Verdict:
    """The answer to a submission."""

    accepted: bool
    #: When refused, or accepted with conditions: the code, the sentence, the facts behind it, and
    #: the cheapest change with which it would be accepted.
    code: str = ""
    text: str = ""
    facts: Facts = field(default_factory=dict)
    remedy: str = ""
    #: When accepted: False lets it run as best effort, without the promise it asked for.
    promised: bool = True

    def reason(self) -> Reason:
        """The same as every other reason."""
        text = self.text or f"The policy refused it: {self.code or 'no reason given'}."
        return Reason(code=self.code or "rejected", facts=self.facts, text=text, remedy=self.remedy)


ACCEPTED = Verdict(accepted=True)


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Decides how many devices every live job should have. Fields are the policy's knobs."""

    scope: ClassVar[Literal["queue", "pool", "cluster"]] = "queue"
    #: With how much a job wants no more: its wished size, or the one at which it is fastest. When
    #: all that run have that and there is enough for the others to have it too, the plan must be
    #: just that. Empty: always ask.
    content_with: ClassVar[Literal["", "wish", "peak"]] = ""
    #: Decides by jobs that have ended: by ``View.history``, or by ``jobs.guess`` also where there
    #: is an estimate.
    learns: ClassVar[bool] = False
    #: Smaller jobs are moved where a size that was planned finds no place: sizes that are powers of
    #: two, on nodes that have as many, then always find one.
    moves: ClassVar[bool] = False
    #: Looks at what lies between devices: ``View.links``.
    surveys: ClassVar[bool] = False

    #: Looks at CPUs and memory too: ``View.takes``.
    weighs: ClassVar[bool] = False
    #: Decides by what jobs draw: ``View.power``.
    meters: ClassVar[bool] = False
    #: Says where jobs go: ``View.ground`` and ``Plan.places``.
    places: ClassVar[bool] = False

    def remembers(self) -> float:
        """The half-life in seconds of what it is told in View.ran_on; 0: it does not ask."""
        return 0.0

    def admit(self, view: View, job: JobSpec) -> Verdict:
        """Whether the job is taken on at all."""
        return ACCEPTED

    def plan(self, view: View) -> Plan | Ints:
        """How many devices each job of the view has from now on."""
        raise NotImplementedError

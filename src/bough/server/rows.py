"""What is written to the store and read from it, and how it becomes bytes and comes back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from bough.core.model import AnyCommand, AnyEvent, Command, Event, Frozen, JobSpec, Queue
from bough.core.reason import Reason
from bough.core.scheduler import Settings
from bough.records import ENDED, Attempt, JobRecord, Recipe

T = TypeVar("T")

#: Of a job that is not over, as a condition in SQL.
LIVE: Final = f"state NOT IN ({', '.join(repr(state) for state in ENDED)})"
#: Names of settings of the store's own: the entry before the journal's first since it was pruned,
#: and the number after which new jobs are numbered since some may have been lost.
BEGINS_AFTER: Final = "journal_begins_after"
NUMBERS_AFTER: Final = "numbers_after"
SET_SETTING: Final = (
    "INSERT INTO settings (name, value) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


class Entry(NamedTuple):
    """One thing that happened or was decided."""

    #: Numbers all entries from 1 without gaps.
    seq: int
    at: float
    #: What one call of `Scheduler.handle` took and gave has the same step.
    step: int
    what: Event | Command
    #: Why, of a command.
    reason: Reason | None = None


class Step(NamedTuple):
    """What one decision took and gave."""

    step: int
    at: float
    #: Of its last entry.
    seq: int
    events: tuple[Event, ...]
    commands: tuple[Command, ...]


class Accepted(NamedTuple):
    """A submission that is taken on under this id."""

    id: str
    spec: JobSpec
    recipe: Recipe = Recipe()
    #: Of the client, if it gave one; a user's keys name one job each.
    key: str = ""
    #: Whom it runs as; -1: as the daemon itself.
    uid: int = -1


class Account(Frozen, frozen=True):
    """What is kept of a job beside what is shown: its receipt is made of it."""

    id: str
    attempts: tuple[Attempt, ...] = ()
    #: Devices it held, from each moment on.
    sizes: tuple[tuple[float, int], ...] = ()
    #: Why it waits, and since when; empty: it does not.
    cause: str = ""
    since: float = 0.0
    #: Seconds of waiting by cause, until `since`.
    waits: dict[str, float] = msgspec.field(default_factory=dict)
    resizes: int = 0
    parks: int = 0
    #: Device-seconds of attempts that failed or were lost.
    lost_device_seconds: float = 0.0
    #: None: nothing measured it.
    energy_joules: float | None = None


@dataclass(slots=True, kw_only=True)
class Batch:
    """One step and what follows from it: written whole or not at all."""

    at: float
    #: 0: the next one.
    step: int = 0
    events: Sequence[Event] = ()
    commands: Sequence[tuple[Command, Reason | None]] = ()
    submissions: Sequence[Accepted] = ()
    #: Jobs as they are shown from now on, new ones among them.
    records: Sequence[JobRecord] = ()
    accounts: Sequence[Account] = ()


class Conditions(Frozen, frozen=True):
    """All that decisions depend on besides events."""

    #: As `bough.policies.find` reads it, knobs included.
    policy: str
    settings: Settings = Settings()
    #: There from the start, parents first; later ones come as events, and so do nodes.
    queues: tuple[Queue, ...] = ()
    #: Of the tree, as in bough.core.cluster.Cluster.
    levels: tuple[str, ...] = ("node",)
    bandwidth: dict[str, float] = msgspec.field(default_factory=dict)
    inner: dict[str, int] = msgspec.field(default_factory=dict)
    #: Kind of device by which speeds are measured.
    reference_kind: str = ""


class Token(Frozen, frozen=True):
    """Who may come in over the network; what they say is not kept."""

    name: str
    user: str
    scopes: tuple[str, ...]
    created: float
    #: None: never.
    expires: float | None = None


def number_of(id: str) -> int:
    """The number of a submission; members of an array share it."""
    return int(id.partition(".")[0])


_ENCODE: Final = msgspec.json.Encoder().encode


def pack(value: object) -> bytes:
    """JSON. Infinities, which JSON does not know, are spelled out, so that they come back."""
    raw = _ENCODE(value)
    # Records leave out what is None by default: a null is an infinity, or in some text.
    return _ENCODE(_spelled(msgspec.to_builtins(value))) if b"null" in raw else raw


def _spelled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class Reader(Generic[T]):
    """Turns what `pack` wrote back into values of one type."""

    def __init__(self, kind: Any) -> None:
        self._strict: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)
        self._lax: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind, strict=False)

    def __call__(self, raw: bytes) -> T:
        try:
            return self._strict.decode(raw)
        except msgspec.ValidationError:  # an infinity is text to the strict one
            return self._lax.decode(raw)


read_what: Final[Reader[Event | Command]] = Reader(AnyEvent | AnyCommand)
read_reason: Final[Reader[Reason]] = Reader(Reason)
read_record: Final[Reader[JobRecord]] = Reader(JobRecord)
read_account: Final[Reader[Account]] = Reader(Account)
read_spec: Final[Reader[JobSpec]] = Reader(JobSpec)
read_recipe: Final[Reader[Recipe]] = Reader(Recipe)
read_conditions: Final[Reader[Conditions]] = Reader(Conditions)
read_scopes: Final[Reader[tuple[str, ...]]] = Reader(tuple[str, ...])

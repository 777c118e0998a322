"""What travels between client, daemon, store and shim; plain data, cheap to import."""

from __future__ import annotations

from typing import Literal

import msgspec

from bough.core.model import Frozen, JobSpec, Place
from bough.core.reason import Reason

State = Literal[
    "waiting", "starting", "running", "resizing", "stopping",
    "done", "failed", "cancelled", "timed-out", "rejected",
]  # fmt: skip
#: States of jobs that are over.
ENDED: tuple[State, ...] = ("done", "failed", "cancelled", "timed-out", "rejected")
MIB = 1 << 20


class Recipe(Frozen, frozen=True):
    """How to run what a JobSpec asks for. Its owner's alone: it never appears in events."""

    argv: tuple[str, ...] = ()
    cwd: str = ""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    #: One process for each device, or one that sees all of them.
    launch: Literal["each", "one"] = "each"
    #: From the polite signal to the one that cannot be ignored.
    grace_seconds: float = 30.0
    #: Size at which a log is rotated.
    log_bytes_max: int = 64 * MIB
    #: What each role runs, where that differs.
    roles: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    #: How it leaves its devices when parked: it ends (and begins again), or it is frozen.
    park: Literal["stop", "signal"] = "stop"


class WorkerLaunch(Frozen, frozen=True):
    """One process to start."""

    rank: int
    role: str
    #: Counts the workers of a role.
    index: int
    argv: tuple[str, ...]
    cwd: str
    #: All of its environment.
    env: dict[str, str]
    #: File name inside the attempt's directory.
    log: str
    #: It only serves the others (a parameter server): the attempt is done when they are.
    serves: bool = False


class Launch(Frozen, frozen=True):
    """One attempt, ready to be carried out by the shim."""

    job: str
    epoch: int
    workers: tuple[WorkerLaunch, ...]
    grace_seconds: float
    log_bytes_max: int
    #: Rotated logs that are kept.
    log_keep: int = 2
    #: Bytes of memory for all workers together; 0: no limit.
    memory_max: int = 0
    #: Whom the workers run as; -1: as the daemon itself.
    uid: int = -1
    gid: int = -1
    groups: tuple[int, ...] = ()
    #: What it holds.
    place: Place = ()
    #: Ports of this machine that are this attempt's alone.
    ports: tuple[int, ...] = ()


class WorkerEnd(Frozen, frozen=True):
    """How one worker ended."""

    rank: int
    role: str
    #: As a shell tells it: 128 + the number of the signal that killed it.
    code: int
    signal: int = 0
    cpu_seconds: float = 0.0
    memory_max_bytes: int = 0
    started_at: float = 0.0
    ended_at: float = 0.0


class Ending(Frozen, frozen=True):
    """How an attempt ended, as the shim wrote it."""

    how: Literal["done", "failed", "stopped", "lost"]
    #: Of the worker that decided it.
    code: int = 0
    workers: tuple[WorkerEnd, ...] = ()
    ended_at: float = 0.0
    note: str = ""


class JobRecord(Frozen, frozen=True):
    """A job as the API shows it."""

    id: str
    name: str
    user: str
    queue: str
    state: State
    #: Devices it holds now, sizes it accepts, and where it is.
    devices: int
    sizes: tuple[int, ...]
    place: Place
    epoch: int
    priority: int
    submitted: float
    reason: Reason
    began: float | None = None
    ended: float | None = None
    #: Exit code of the job as a whole.
    code: int | None = None
    deadline: float | None = None
    #: None where the reader may not see it.
    command: tuple[str, ...] | None = None
    after: tuple[str, ...] = ()
    array_of: str = ""
    retries: int = 0
    failures: int = 0
    device_seconds: float = 0.0


class DeviceRecord(Frozen, frozen=True):
    """A device as the API shows it."""

    node: str
    kind: str
    index: int
    state: Literal["free", "held", "taken", "unhealthy", "drained"]
    job: str = ""
    #: Who has taken it, or what ails it.
    note: str = ""
    memory_bytes: int | None = None
    temperature: float | None = None
    watts: float | None = None


class Submission(Frozen, frozen=True):
    """What a client sends to have a job run."""

    spec: JobSpec
    recipe: Recipe = Recipe()
    #: Sent again with the same key, it is the same job.
    key: str = ""

"""What travels between client, daemon, store and shim; plain data, cheap to import."""

from __future__ import annotations

from typing import Literal

import msgspec

from bough.core.model import Frozen, JobSpec, Place, Queue, Range
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
    #: Rights that its new files do not have; None: as for the daemon's.
    umask: int | None = None
    #: What each process may use, by the names of `ulimit`: the limit, and how far the process may
    #: raise it; -1 has no end. Set by the daemon, which sees what the submitter has.
    limits: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)


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
    #: For the workers' files, and what each of them may use; -1: as for the shim.
    umask: int = -1
    limits: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
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
    #: A user parked it.
    held: bool = False
    service: Literal["guaranteed", "best-effort"] = "best-effort"
    #: Part of the work that is done, and seconds until the rest is; None: nobody knows.
    progress: float | None = None
    eta_seconds: float | None = None
    #: The job that this one repeats.
    retry_of: str = ""


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
    memory_used_bytes: int | None = None
    #: Part of the time it was busy lately.
    utilisation: float | None = None
    #: Whose job holds it.
    user: str = ""
    #: Domains above the node, from the top.
    path: tuple[str, ...] = ()
    #: As its maker calls it.
    model: str = ""


class JobPage(Frozen, frozen=True):
    """Some jobs, the latest first."""

    jobs: tuple[JobRecord, ...] = ()
    #: What to ask for as `before` to see older ones; empty: there are none.
    next: str = ""


class Attempt(Frozen, frozen=True):
    """One epoch of a job."""

    epoch: int
    place: Place = ()
    began: float | None = None
    ended: float | None = None
    #: done, failed, stopped or lost; empty: it goes on.
    how: str = ""
    code: int | None = None
    #: In words, what ended it.
    note: str = ""
    workers: tuple[WorkerEnd, ...] = ()


class JobDetail(Frozen, frozen=True):
    """All there is to see of one job."""

    job: JobRecord
    spec: JobSpec
    #: None where the reader may not see it; secrets in its environment never show.
    recipe: Recipe | None = None
    attempts: tuple[Attempt, ...] = ()
    #: Devices it held, from each moment on.
    sizes: tuple[tuple[float, int], ...] = ()


class Decision(Frozen, frozen=True):
    """One command, and why it was given."""

    seq: int
    step: int
    at: float
    job: str
    command: Literal["start", "resize", "stop", "park", "ended"]
    devices: int = 0
    reason: Reason | None = None


class Receipt(Frozen, frozen=True):
    """What became of a job, and what it took."""

    job: str
    state: State
    submitted: float
    began: float | None = None
    ended: float | None = None
    waited_seconds: float = 0.0
    #: Seconds of waiting by the code of their reason.
    waits: dict[str, float] = msgspec.field(default_factory=dict)
    ran_seconds: float = 0.0
    device_seconds: float = 0.0
    #: Of work that a failure took along.
    lost_device_seconds: float = 0.0
    starts: int = 0
    resizes: int = 0
    parks: int = 0
    failures: int = 0
    #: None: nothing measured it.
    energy_kwh: float | None = None


class QueueRecord(Frozen, frozen=True):
    """A queue as the API shows it."""

    queue: Queue
    #: Devices its jobs and those below it hold, and what it may count on now.
    used: int = 0
    entitled: int = 0
    running: int = 0
    waiting: int = 0
    #: Past use in device-hours, decayed.
    history_device_hours: float = 0.0
    #: None: without end.
    budget_left_device_hours: float | None = None


class UserRecord(Frozen, frozen=True):
    """What one user has here now, and has had."""

    user: str
    running: int = 0
    waiting: int = 0
    devices: int = 0
    device_hours: float = 0.0


class UsageRow(Frozen, frozen=True):
    """What a user, a queue or a job used in some time."""

    who: str
    jobs: int = 0
    device_hours: float = 0.0
    waited_hours: float = 0.0
    failed: int = 0
    energy_kwh: float | None = None


class StatusRecord(Frozen, frozen=True):
    """How the daemon is."""

    version: str
    pid: int
    since: float
    home: str
    system: bool = False
    policy: str = ""
    devices: int = 0
    free: int = 0
    taken: int = 0
    unhealthy: int = 0
    running: int = 0
    waiting: int = 0
    ended: int = 0
    #: Last entry of the journal.
    seq: int = 0
    #: Address it also listens at, if it does.
    listen: str = ""
    #: What a user should know: a damaged journal, a full disk.
    notes: tuple[str, ...] = ()


class Amendment(Frozen, frozen=True):
    """What to change of a job that is not over; None leaves a thing as it is."""

    devices: Range | None = None
    queue: str | None = None
    priority: int | None = None
    deadline: float | None = None
    max_run_seconds: float | None = None


class Config(Frozen, frozen=True):
    """What the daemon decides by."""

    #: With its knobs, as `bough policies` writes them: `las(promote=2h)`.
    policy: str = "fair"
    locality_seconds: float = 180.0
    damp_seconds: float = 0.0
    moving_share: float = 0.1
    #: Wait before a job that failed is tried again, doubled each time; and the longest.
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 300.0
    #: Entries of the journal are kept so long; jobs stay.
    keep_days: float = 30.0
    #: Who may act for all, besides root.
    admins: tuple[str, ...] = ()


class ConfigChange(Frozen, frozen=True):
    """What to change of it; None leaves a thing as it is."""

    policy: str | None = None
    locality_seconds: float | None = None
    damp_seconds: float | None = None
    moving_share: float | None = None
    backoff_seconds: float | None = None
    backoff_max_seconds: float | None = None
    keep_days: float | None = None
    admins: tuple[str, ...] | None = None


class TokenRecord(Frozen, frozen=True):
    """A token as the API shows it."""

    name: str
    user: str
    scopes: tuple[str, ...]
    created: float
    expires: float | None = None


class NewToken(Frozen, frozen=True):
    """A token that was just made: its secret is shown this once."""

    token: TokenRecord
    secret: str


class LogChunk(Frozen, frozen=True):
    """Some whole lines of one worker's log."""

    attempt: int
    role: str
    rank: int
    #: Where in the worker's log they begin, in bytes.
    at: int
    text: str


class LogEnd(Frozen, frozen=True):
    """The job is over: nothing more will be logged."""

    end: State
    code: int | None = None


class Problem(Frozen, frozen=True):
    """An error as the API tells it (RFC 9457)."""

    title: str
    status: int
    detail: str = ""
    type: str = "about:blank"
    #: Word for programs: input, not-found, forbidden, conflict, too-many, full.
    code: str = ""
    #: Of an InputError: where, and how to put it right.
    file: str = ""
    line: int | None = None
    field: str = ""
    hint: str = ""
    retry_after_seconds: float | None = None


class Submission(Frozen, frozen=True):
    """What a client sends to have a job run."""

    spec: JobSpec
    recipe: Recipe = Recipe()
    #: Sent again with the same key, it is the same job.
    key: str = ""

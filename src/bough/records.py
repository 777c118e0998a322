"""What travels between client, daemon, store and shim; plain data, cheap to import."""

from __future__ import annotations

from typing import Literal

import msgspec

from bough.core.model import Frozen, JobSpec, Place, Queue, Range
from bough.core.prospects import Interval
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

    argv: tuple[str, ...] = ()  #: The words of its command.
    cwd: str = ""  #: Folder it runs in.
    env: dict[str, str] = msgspec.field(default_factory=dict)  #: Its environment.
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

    rank: int  #: Its number among all workers.
    role: str  #: `worker`, or as the job file calls it.
    #: As a shell tells it: 128 + the number of the signal that killed it.
    code: int
    signal: int = 0  #: That killed it; 0: none did.
    cpu_seconds: float = 0.0  #: CPU time it took.
    memory_max_bytes: int = 0  #: Most memory it had.
    started_at: float = 0.0  #: When.
    ended_at: float = 0.0  #: When.


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

    id: str  #: Its number; of an array, with its index: `12.3`.
    name: str  #: As the user called it, or the script it runs.
    user: str  #: Whose it is.
    queue: str  #: Which pays for it.
    state: State  #: Where it is in its life.
    devices: int  #: It holds now.
    sizes: tuple[int, ...]  #: Numbers of devices it accepts.
    place: Place  #: The devices it holds: node by node, with their numbers.
    epoch: int  #: Its attempts so far.
    priority: int  #: Higher goes first.
    submitted: float  #: When.
    reason: Reason  #: Why it is as it is.
    began: float | None = None  #: When it first ran.
    ended: float | None = None  #: When it was over.
    code: int | None = None  #: Exit code of the job as a whole.
    deadline: float | None = None  #: When it should be done.
    command: tuple[str, ...] | None = None  #: None where the reader may not see it.
    after: tuple[str, ...] = ()  #: Jobs it waits for.
    array_of: str = ""  #: Name of the array it belongs to.
    retries: int = 0  #: Tries it has after failing by its own fault.
    failures: int = 0  #: How often it failed by its own fault.
    device_seconds: float = 0.0  #: It used so far.
    held: bool = False  #: A user parked it.
    #: Guaranteed: it was taken on with its deadline.
    service: Literal["guaranteed", "best-effort"] = "best-effort"
    progress: float | None = None  #: Part of the work that is done; None: nobody knows.
    eta_seconds: float | None = None  #: Until the rest is done; None: nobody knows.
    retry_of: str = ""  #: The job that this one repeats.
    #: When it is likely to have devices; None: it has, or nobody has looked ahead yet.
    begins: Interval | None = None
    ends: Interval | None = None  #: When it is likely to be over.


class DeviceRecord(Frozen, frozen=True):
    """A device as the API shows it."""

    node: str  #: The machine it is in.
    kind: str  #: Short name of its model: `h100`, `a100`, `cpu`.
    index: int  #: Its number on that machine.
    #: Taken: somebody who is not of bough uses it.
    state: Literal["free", "held", "taken", "unhealthy", "drained"]
    job: str = ""  #: The job that holds it.
    #: Who has taken it, or what ails it.
    note: str = ""
    memory_bytes: int | None = None  #: All of its memory.
    temperature: float | None = None  #: Degrees Celsius.
    watts: float | None = None  #: Power it draws.
    memory_used_bytes: int | None = None  #: Of its memory, by anybody.
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

    jobs: tuple[JobRecord, ...] = ()  #: Those of this page.
    #: What to ask for as `before` to see older ones; empty: there are none.
    next: str = ""


class Attempt(Frozen, frozen=True):
    """One epoch of a job."""

    epoch: int  #: Its number, from 1.
    place: Place = ()  #: Devices it held.
    began: float | None = None  #: When its processes ran.
    ended: float | None = None  #: When they were gone.
    #: done, failed, stopped or lost; empty: it goes on.
    how: str = ""
    code: int | None = None  #: Exit code.
    #: In words, what ended it.
    note: str = ""
    workers: tuple[WorkerEnd, ...] = ()  #: How each process ended.


class JobDetail(Frozen, frozen=True):
    """All there is to see of one job."""

    job: JobRecord  #: As listings have it.
    spec: JobSpec  #: What was asked for.
    #: None where the reader may not see it; secrets in its environment never show.
    recipe: Recipe | None = None
    attempts: tuple[Attempt, ...] = ()  #: Each time it was started, the last hundred.
    #: Devices it held, from each moment on.
    sizes: tuple[tuple[float, int], ...] = ()


class Decision(Frozen, frozen=True):
    """One command, and why it was given."""

    seq: int  #: Entry of the journal.
    step: int  #: Decisions of one step were made together.
    at: float  #: When.
    job: str  #: About which job.
    command: Literal["start", "resize", "stop", "park", "ended"]  #: What was to be done.
    devices: int = 0  #: It has from then on.
    reason: Reason | None = None  #: Why.


class Receipt(Frozen, frozen=True):
    """What became of a job, and what it took."""

    job: str  #: Its number.
    state: State  #: How it ended, or is.
    submitted: float  #: When.
    began: float | None = None  #: When it first ran.
    ended: float | None = None  #: When it was over.
    waited_seconds: float = 0.0  #: Without devices.
    #: Seconds of waiting by the code of their reason.
    waits: dict[str, float] = msgspec.field(default_factory=dict)
    ran_seconds: float = 0.0  #: With devices.
    device_seconds: float = 0.0  #: It used.
    #: Of work that a failure took along.
    lost_device_seconds: float = 0.0
    starts: int = 0  #: Times it was started.
    resizes: int = 0  #: Times it was given more, fewer or other devices.
    parks: int = 0  #: Times it left its devices for others, or as a user wished.
    failures: int = 0  #: Times it failed by its own fault.
    #: None: nothing measured it.
    energy_kwh: float | None = None


class QueueRecord(Frozen, frozen=True):
    """A queue as the API shows it."""

    queue: Queue  #: As it was made.
    used: int = 0  #: Devices its jobs and those below it hold.
    entitled: int = 0  #: Devices it may count on now.
    running: int = 0  #: Jobs that hold devices.
    waiting: int = 0  #: Jobs that hold none.
    #: Past use in device-hours, decayed.
    history_device_hours: float = 0.0
    #: None: without end.
    budget_left_device_hours: float | None = None


class UserRecord(Frozen, frozen=True):
    """What one user has here now, and has had."""

    user: str  #: Account name.
    running: int = 0  #: Jobs that hold devices.
    waiting: int = 0  #: Jobs that hold none.
    devices: int = 0  #: Held now.
    device_hours: float = 0.0  #: Used so far.


class UsageRow(Frozen, frozen=True):
    """What a user, a queue or a job used in some time."""

    who: str  #: User, queue or job.
    jobs: int = 0  #: With some part in that time.
    device_hours: float = 0.0  #: Used in it.
    waited_hours: float = 0.0  #: Of jobs without devices.
    failed: int = 0  #: Jobs that failed in it.
    energy_kwh: float | None = None  #: None: nothing measured it.


class StatusRecord(Frozen, frozen=True):
    """How the daemon is."""

    version: str  #: Of bough.
    pid: int  #: Its process.
    since: float  #: When it started.
    home: str  #: Where it keeps what must survive.
    system: bool = False  #: It serves all users of the machine.
    policy: str = ""  #: Who gets how many devices.
    devices: int = 0  #: All.
    free: int = 0  #: Devices nobody uses.
    taken: int = 0  #: Devices others use.
    unhealthy: int = 0  #: Devices that do not work, or may not be used.
    running: int = 0  #: Jobs that hold devices.
    waiting: int = 0  #: Jobs that hold none.
    ended: int = 0  #: Jobs that are over.
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
    locality_seconds: float = 180.0  #: Longest wait for devices close together.
    damp_seconds: float = 0.0  #: A job does not grow again within this time.
    moving_share: float = 0.1  #: Most of its time that a job spends on changing size.
    #: Wait before a job that failed is tried again, doubled each time.
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 300.0  #: The longest such wait.
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

    name: str  #: Its name.
    user: str  #: Whom it speaks for.
    scopes: tuple[str, ...]  #: What it allows: read, submit, manage, admin.
    created: float  #: When.
    expires: float | None = None  #: When; None: never.


class NewToken(Frozen, frozen=True):
    """A token that was just made: its secret is shown this once."""

    token: TokenRecord  #: What is known of it.
    secret: str  #: What a client sends.


class LogChunk(Frozen, frozen=True):
    """Some whole lines of one worker's log."""

    attempt: int  #: Of the job.
    role: str  #: Of the worker.
    rank: int  #: Of the worker.
    #: Where in the worker's log they begin, in bytes.
    at: int
    text: str  #: The lines.


class LogEnd(Frozen, frozen=True):
    """The job is over: nothing more will be logged."""

    end: State  #: How it ended.
    code: int | None = None  #: Its exit code.


class Problem(Frozen, frozen=True):
    """An error as the API tells it (RFC 9457)."""

    title: str  #: Of its status.
    status: int  #: Of HTTP.
    detail: str = ""  #: What went wrong, in a sentence.
    type: str = "about:blank"  #: Always the same.
    #: Word for programs: input, not-found, forbidden, conflict, too-many, full.
    code: str = ""
    file: str = ""  #: Of a mistake in what was sent: where it is.
    line: int | None = None  #: In that file.
    field: str = ""  #: Name of what is wrong.
    hint: str = ""  #: How to put it right.
    retry_after_seconds: float | None = None  #: Ask again then.


class Submission(Frozen, frozen=True):
    """What a client sends to have a job run."""

    spec: JobSpec
    recipe: Recipe = Recipe()
    #: Sent again with the same key, it is the same job.
    key: str = ""

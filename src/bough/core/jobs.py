"""The live jobs as columns, and the life cycle of a job as one table of transitions."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from bough.core.model import JobSpec, Wish

Slots = tuple[tuple[int, int], ...]
Seats = tuple[tuple[int, int, int], ...]

ANYWHERE = Wish()

#: state -> word of what happened -> next state. Anything else is a bug, and asserted.
TRANSITIONS: Final[dict[str, dict[str, str]]] = {
    "waiting": {"start": "starting", "end": "ended"},
    "starting": {"started": "running", "stop": "stopping", "exit": "waiting", "end": "ended"},
    "running": {"resize": "resizing", "stop": "stopping", "exit": "waiting", "end": "ended"},
    "resizing": {"resized": "running", "stop": "stopping", "exit": "waiting", "end": "ended"},
    "stopping": {"exit": "waiting", "end": "ended"},
}


class Trouble(msgspec.Struct):
    """What is remembered of a job's tries that failed or were lost."""

    #: How the last one ended: its code, its kind (exits.py), and in words; empty: none failed.
    code: int = 0
    kind: str = ""
    text: str = ""
    #: Failures that pass by themselves, and so do not count against `spec.retries`.
    passing: int = 0
    #: Failures without a long run between them; of those that pass, in a row, after a short run.
    streak: int = 0
    quick: int = 0
    #: Seconds it had run in all when it failed last.
    ran: float = 0.0
    #: Tries in a row that were lost after a short run, and what it had run when it was lost last.
    lost: int = 0
    lost_ran: float = 0.0
    #: Not tried again before.
    again_at: float = 0.0


class Job:
    """One live job: what was asked and what has happened; its numbers are a row of the columns."""

    __slots__ = (
        "begins", "clock", "ends_as", "epoch", "failures", "had", "held", "held_by_user", "id",
        "in_place", "leaves", "leaving", "lost_by", "lost_to", "place", "plain", "pools", "recent",
        "recent_at", "seats", "serial", "spec", "state", "step", "told_at", "trouble", "waits_for",
        "within",
    )  # fmt: skip

    def __init__(self, id: str, serial: int, spec: JobSpec) -> None:
        self.id = id
        self.serial = serial
        self.ask(spec)
        self.state = "waiting"
        #: Counts incarnations; answers from older ones are ignored.
        self.epoch = 0
        #: Counts resizes within an epoch.
        self.step = 0
        #: What it is meant to hold; what its body was told to hold; what it was told to leave.
        self.place: Slots = ()
        self.held: Slots = ()
        self.leaving: Slots = ()
        #: Where each worker of a gang of roles sits: (role, node, devices).
        self.seats: Seats = ()
        #: Failed tries that count against `spec.retries`; and what is known of all of them.
        self.failures = 0
        self.trouble: Trouble | None = None
        self.held_by_user = False
        #: Name of the end it is being stopped for ("cancelled", "timed-out"); empty: it goes on.
        self.ends_as = ""
        #: When it was last told something; seconds its last beginning (a start or a resize) and
        #: its last leaving took from the order to the answer.
        self.told_at = 0.0
        self.begins = 0.0
        self.leaves = 0.0
        #: The part of their full clock at which its devices are to go.
        self.clock = 1.0
        #: Devices it was told to hold before the last command.
        self.had = 0
        #: Job of higher priority that took its devices last, and in words what befell them.
        self.lost_to = self.lost_by = ""
        #: Pools it accepts, best first.
        self.pools: tuple[int, ...] = ()
        #: Jobs that must end first.
        self.waits_for: set[str] = set()
        #: Seconds it ran on each pool, older ones counting less, up to a moment (recent.py).
        self.recent: dict[int, float] = {}
        self.recent_at = 0.0

    def ask(self, spec: JobSpec) -> None:
        """Take over what is asked."""
        self.spec = spec
        #: The level of the tree that the policy wants its place to lie within.
        self.within = ""
        #: Asks for devices alone: no roles, CPUs, memory or topology wish.
        self.plain = not (spec.roles or spec.cpus or spec.memory or spec.topology != ANYWHERE)
        #: Can change its size without ending its processes.
        self.in_place = spec.resize_in_place and not spec.roles

    def stay_within(self, level: str) -> None:
        """Let its next place lie inside one domain of this level; empty: anywhere."""
        if level != self.within:
            self.ask(self.spec)
            self.within = level
            self.plain = self.plain and not level

    def where(self) -> Wish:
        """What is asked of its place: by its user, else by the policy."""
        wish = self.spec.topology
        if not self.within or wish.mode != "prefer":
            return wish
        return Wish(mode="require", level=self.within)

    def lean(self) -> Job:
        """The same without its wishes for CPUs and memory; itself if it has none."""
        spec = self.spec
        bare = msgspec.structs.replace
        if not (spec.cpus or spec.memory or any(r.cpus or r.memory for r in spec.roles)):
            return self
        roles = tuple(bare(r, cpus=0.0, memory=0) for r in spec.roles)
        return Job(self.id, self.serial, bare(spec, cpus=0.0, memory=0, roles=roles))

    def change_seconds(self) -> float:
        """What a change of size seems to cost it."""
        return self.begins if self.in_place else self.begins + self.leaves

    def moves(self, word: str, event: Any = None) -> None:
        """Take the transition; an illegal one is a bug that names what caused it."""
        after = TRANSITIONS[self.state].get(word)
        assert after is not None, f"job {self.id} is {self.state}: {word!r} is illegal ({event!r})"
        self.state = after


class Column:
    """A typed column of the table; reading it gives the live rows, unwriteable."""

    def __init__(self, row: int, doc: str) -> None:
        self.row = row
        self.__doc__ = doc


class IntColumn(Column):
    """A column of whole numbers."""

    def __get__(self, jobs: Jobs, owner: type | None = None) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = jobs.ints[self.row, jobs.pick]
        return found


class FloatColumn(Column):
    """A column of real numbers."""

    def __get__(self, jobs: Jobs, owner: type | None = None) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = jobs.floats[self.row, jobs.pick]
        return found


class Jobs:
    """Columns of jobs; row i of every column is the same job, in order of submission."""

    __slots__ = ("flat", "floats", "ints", "n", "now", "pick")

    serial = IntColumn(0, "grows with submission")
    cls = IntColumn(1, "index into View.classes: allowed sizes and believed speeds")
    size = IntColumn(2, "devices it is meant to hold now; 0 when waiting")
    min = IntColumn(3, "fewest devices it can run with")
    max = IntColumn(4, "most it can use")
    lo = IntColumn(
        5, "fewest it may be given now, if any (min, or its size while it may not shrink)"
    )
    hi = IntColumn(6, "most it may be given now (max, or less while damped or limited)")
    must = IntColumn(
        7, "1: it may not be parked now (not preemptible, or within its minimum run time)"
    )
    priority = IntColumn(8, "higher goes first")
    queue = IntColumn(9, "index into View.queues")
    pool = IntColumn(10, "kind of device it uses or would use")
    wish = IntColumn(11, "the size it asks for when it is rigid or just starts (its largest)")
    busy = IntColumn(12, "1: its last command is not answered yet, so that it may not be resized")
    ready = IntColumn(13, "1: it may run (not held, its dependencies have ended)")
    guaranteed = IntColumn(14, "1: admitted with a promise")
    user = IntColumn(15, "index of the user")
    cause = IntColumn(16, "why it waits: index into reason.CODES")
    changes = IntColumn(17, "how often it was given another number of devices than 0 so far")
    measured = IntColumn(18, "1: it has reported how fast it runs")

    submitted = FloatColumn(0, "when it was submitted")
    since = FloatColumn(1, "when its size last changed")
    begun = FloatColumn(2, "when it first started; NaN before")
    run_since = FloatColumn(3, "when it was last started from nothing; NaN before")
    attained_until = FloatColumn(4, "device-seconds used up to `since`")
    left_at = FloatColumn(
        5, "estimated work left at `since` (device-seconds on one device); inf: unknown"
    )
    rate = FloatColumn(6, "believed work per second at the present size")
    deadline = FloatColumn(7, "when it must be done; inf: whenever")
    ran_until = FloatColumn(8, "seconds it ran up to `since`")
    weight = FloatColumn(9, "weight of the job among others of its queue")
    max_run = FloatColumn(10, "seconds it may run at most")
    wish_speed = FloatColumn(11, "believed work per second at its wished size")
    done_until = FloatColumn(12, "believed work done up to `since`")
    guess = FloatColumn(13, "work expected from jobs that ended, whatever the estimate says")

    INTS = 19
    FLOATS = 14

    def __init__(
        self,
        ints: npt.NDArray[np.int64],
        floats: npt.NDArray[np.float64],
        pick: Any,
        n: int,
        now: float = 0.0,
    ) -> None:
        self.ints = ints
        self.floats = floats
        self.pick = pick
        self.n = n
        self.now = now
        #: Known that no row is locked or has a priority; False when that is not known.
        self.flat = False

    def __len__(self) -> int:
        return self.n

    def attained(self) -> npt.NDArray[np.float64]:
        """Device-seconds used so far."""
        return self.attained_until + self.size * (self.now - self.since)

    def left(self) -> npt.NDArray[np.float64]:
        """Estimated work left now (device-seconds on one device)."""
        return np.maximum(self.left_at - self.rate * (self.now - self.since), 0.0)

    def done(self) -> npt.NDArray[np.float64]:
        """Believed work done so far."""
        return self.done_until + self.rate * (self.now - self.since)

    def left_or_guess(self) -> npt.NDArray[np.float64]:
        """Estimated work left; without an estimate, what is left of the guess.

        A job that outlives the guess is expected to go on for half of what it has done: run
        times of training jobs are long-tailed, so the longer one ran, the longer it still will.
        """
        left = self.left()
        unknown = np.isinf(left)
        if unknown.any():
            done = self.done()
            left = np.where(unknown, np.maximum(self.guess - done, done / 2), left)
        return left

    def ran(self) -> npt.NDArray[np.float64]:
        """Seconds spent running so far."""
        return self.ran_until + (self.size > 0) * (self.now - self.since)

    def seconds_left(self) -> npt.NDArray[np.float64]:
        """Estimated run time left at the wished size."""
        return self.left() / self.wish_speed

    def rows(self, index: npt.NDArray[np.int64]) -> Jobs:
        """These rows only, as a table of their own."""
        return Jobs(self.ints, self.floats, index, len(index), self.now)


class JobTable(Jobs):
    """The one writeable table: adds, removes and finds rows."""

    __slots__ = ("items", "serials", "wf", "wi", "_cells")

    def __init__(self, room: int = 256) -> None:
        #: The jobs in row order, and their serial numbers (ascending, for finding rows).
        self.items: list[Job] = []
        self.serials: list[int] = []
        self._hold(np.zeros((self.INTS + self.FLOATS, room), np.int64))
        super().__init__(self.ints, self.floats, slice(0, 0), 0)

    def _hold(self, cells: npt.NDArray[np.int64]) -> None:
        """Write through wi and wf; everybody else reads through views that refuse to be written.

        Both lie in one block of memory, so that rows are moved at once.
        """
        self._cells = cells
        self.wi, self.wf = cells[: self.INTS], cells[self.INTS :].view(np.float64)
        self.ints, self.floats = self.wi.view(), self.wf.view()
        self.ints.flags.writeable = self.floats.flags.writeable = False

    def add(self, job: Job, ints: tuple[int, ...], floats: tuple[float, ...]) -> int:
        """Append a row; serial numbers grow, so rows stay in order of submission."""
        i = self.n
        assert not self.serials or job.serial > self.serials[-1]
        if i == self.wi.shape[1]:
            self._hold(np.concatenate([self._cells, np.zeros_like(self._cells)], axis=1))
        self.wi[:, i] = ints
        self.wf[:, i] = floats
        self.items.append(job)
        self.serials.append(job.serial)
        self.n = i + 1
        self.pick = slice(0, i + 1)
        return i

    def remove(self, row: int) -> None:
        """Close the gap; the rows behind move up."""
        n = self.n
        if row < n - 1:
            self._cells[:, row : n - 1] = self._cells[:, row + 1 : n]
        del self.items[row], self.serials[row]
        self.n = n - 1
        self.pick = slice(0, n - 1)

    def row(self, job: Job) -> int:
        """Where the job's row is now."""
        return bisect_left(self.serials, job.serial)

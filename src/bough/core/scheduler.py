"""The brain: events in, commands out, the same for the simulator, this machine and Kubernetes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from bough.core import model as m
from bough.core import snapshot
from bough.core.apply import HANDLERS
from bough.core.arrival import admission_view
from bough.core.causes import note_causes
from bough.core.clocks import set_clocks, slow_down
from bough.core.content import (
    PAUSE_MAX,
    all_have_what_they_want,
    can_be_content,
    seat_newcomer,
)
from bough.core.decisions import reason_for
from bough.core.drawing import drawn
from bough.core.ending import release_dependents, stop_for_good
from bough.core.meter import Meter
from bough.core.planning import draft, expire_locks
from bough.core.policy import Ints, Policy
from bough.core.queues import QueueTree
from bough.core.reason import Reason, explain
from bough.core.remarks import BadPlan
from bough.core.remedy import cheapest
from bough.core.repack import repack
from bough.core.retries import end_waits, next_try
from bough.core.settle import Settlement, retry_pending
from bough.core.speedup import SpeedBook
from bough.core.state import State
from bough.core.supply import Supply
from bough.core.topology import Topology

#: Times a plan is made anew because some of what it granted could not be placed.
ATTEMPTS = 8
#: A moment so close to a round (as a part of it) is the round: products of times are rounded.
ROUNDING = 1e-6
#: A patience of this or more is never lost.
NEVER_SECONDS = 1e12


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How plans are made and carried out, whatever the policy."""

    #: A gang that found no compact place accepts to be scattered after this long.
    locality_seconds: float = 180.0
    #: A running job is not grown again within this time of its last change.
    damp_seconds: float = 0.0
    #: Nor does it grow sooner than its last change has been worth: of its time, at most this share
    #: goes into growing, by the seconds a change was seen to cost it.
    moving_share: float = 0.1
    #: Plans are made at multiples of this only; 0: at every event.
    round_seconds: float = 0.0
    #: Place everything anew at each decision, moving jobs freely (as some simulators do): "best"
    #: fit or "first" fit; empty: places are kept.
    repack: Literal["", "best", "first"] = ""
    #: Let jobs that end teach the prior for jobs without an estimate.
    learns: bool = True
    #: Wait before a job that failed is tried again, doubled each time it fails soon after; 0: none.
    backoff_seconds: float = 0.0
    backoff_max_seconds: float = 300.0
    #: Ask the policy even when all jobs have what they want and who comes can have it too.
    always_asks: bool = False
    #: Where power comes from and how much may be used.
    supply: Supply | None = None


class Scheduler:
    """A deterministic state machine: it never sleeps, reads a clock, opens a file or draws lots."""

    def __init__(
        self,
        policy: Policy,
        topology: Topology | None = None,
        *,
        queues: QueueTree | None = None,
        speedups: SpeedBook | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.policy = policy
        self.settings = settings = settings or Settings()
        self.state = State(topology or Topology(), queues or QueueTree(), speedups or SpeedBook())
        self.state.damp_seconds = settings.damp_seconds
        self.state.calm_times = 1.0 / settings.moving_share if settings.moving_share else 0.0
        self.state.learns = settings.learns
        self.state.memory_seconds = policy.remembers()
        self.state.backoff_seconds = settings.backoff_seconds
        self.state.backoff_max_seconds = settings.backoff_max_seconds
        self.state.supply = supply = settings.supply
        self.state.meter = Meter(supply) if supply is not None and supply.budgets else None
        self.state.locality_relaxes = settings.locality_seconds < NEVER_SECONDS
        #: When time alone may change something; the body sends a Tick then.
        self.wake_at = m.INFINITY
        self._admits = type(policy).admit is not Policy.admit
        self._plan_wake_at = m.INFINITY
        #: Plans until it is looked whether all are content, and how many the next time.
        self._pause = self._patience = 0

    def handle(self, events: Sequence[m.Event]) -> list[m.Command]:
        """One step: what happened, what is to be done now."""
        state = self.state
        state.out = []
        # 1. What happened.
        for event in events:
            if event.at >= state.now:
                if not state.queues.trivial:
                    state.queues.charge(event.at, self._used())
                if state.meter is not None:
                    state.meter.advance(event.at)
                state.now = event.at
            taken: m.Event | None = event
            if self._admits and type(event) is m.Submitted:
                taken = self._admit(event)
            if taken is not None:
                HANDLERS[type(taken)](state, taken)
        # 2. What time has changed.
        if state.locks or state.limits or state.backoffs or self._plan_wake_at <= state.now:
            self._expire()
        if state.meter is not None and state.meter.turned():
            state.replan = True
        # 3. Wishes, places, commands.
        if state.replan and (not self.settings.round_seconds or self._round_is_due()):
            self._decide()
        elif state.fresh:
            if not seat_newcomer(state, self.policy):
                self._decide()
            state.fresh.clear()
        # 4. Starts and growths whose devices are free by now.
        elif state.pending:
            retry_pending(state)
        # 5. What all this draws; when to be woken.
        if state.slowed:
            slow_down(state)
        if state.meter is not None:
            state.meter.watts = drawn(state)
        self.wake_at = self._next_wake()
        return state.out

    def why(self, id: str, now: float | None = None) -> Reason:
        """Why the job is where it is, with the cheapest change that would let it start now.

        `now` is when that is asked, if nothing has happened for a while: waits are told up to it.
        """
        state, then = self.state, self.state.now
        state.now = max(then, then if now is None else now)
        try:
            reason = explain(state, id)
            if reason.remedy or id not in state.jobs or state.jobs[id].place:
                return reason
            remedy = cheapest(self, state.jobs[id])
        finally:
            state.now = then
        return msgspec.structs.replace(reason, remedy=remedy) if remedy else reason

    def reason_for(self, command: m.Command) -> Reason:
        """Why this command was given; to be asked before the next events are handled."""
        return reason_for(self.state, command)

    def picture(self, now: float | None = None) -> snapshot.Image:
        """What it knows, for as many forks as one likes; nothing has happened until `now`."""
        # How jobs ended is many, and never changes: forks take it over as it is.
        found = snapshot.picture(self.state, self._plan_wake_at, past=False)
        return msgspec.structs.replace(found, now=max(found.now, now or found.now))

    def fork(self, picture: snapshot.Image | None = None) -> Scheduler:
        """An equal one that shares nothing that changes with this one."""
        state = self.state
        other = Scheduler(
            self.policy, state.topology.blank(), speedups=state.speedups.twin(),
            settings=self.settings,
        )  # fmt: skip
        other._plan_wake_at = snapshot.follow(other.state, picture or self.picture())
        other.state.ended, other.state.farewells = state.ended.copy(), state.farewells.twin()
        other.wake_at = other._next_wake()
        return other

    def to_bytes(self) -> bytes:
        """Everything needed to go on with the same commands."""
        return snapshot.encode(self.state, self._plan_wake_at)

    def from_bytes(self, data: bytes) -> None:
        """Take over from a snapshot; only for a scheduler that has handled nothing yet."""
        self._plan_wake_at = snapshot.restore(self.state, data)
        self.wake_at = self._next_wake()

    # ------------------------------------------------------------------ the steps

    def _admit(self, event: m.Submitted) -> m.Submitted | None:
        """Ask the policy whether it takes the job, and as what; a refusal (None) is final."""
        state = self.state
        if event.id in state.jobs or event.id in state.ended:
            return None
        verdict = self.policy.admit(admission_view(state, event.spec, self.policy), event.spec)
        if not verdict.accepted:
            state.ended[event.id] = "rejected"
            state.farewells.keep(event.id, verdict.reason())
            state.out.append(m.Ended(event.id, 0, "rejected", verdict.text or verdict.code))
            release_dependents(state, event.id)
            return None
        if not verdict.promised and event.spec.service == "guaranteed":
            spec = msgspec.structs.replace(event.spec, service="best-effort")
            return msgspec.structs.replace(event, spec=spec)
        return event

    def _used(self) -> Ints:
        """Devices held by each queue's own jobs."""
        table = self.state.table
        count = len(self.state.queues.names)
        used: Ints = np.bincount(table.queue, weights=table.size, minlength=count).astype(np.int64)
        return used

    def _expire(self) -> None:
        """Locks that are lifted, run times that are over, plans that time has aged."""
        state = self.state
        if state.locks and state.locks[0][0] <= state.now:
            state.replan = True
        while state.limits and state.limits[0][0] <= state.now:
            _, serial, epoch = heapq.heappop(state.limits)
            row = state.by_serial(serial)
            if row is not None and state.table.items[row].epoch == epoch:
                job = state.table.items[row]
                if job.held and not job.ends_as:
                    stop_for_good(state, job, "timed-out")
        if state.backoffs:
            end_waits(state)
        if self._plan_wake_at <= state.now:
            state.replan = True

    def _round_is_due(self) -> bool:
        """Whether plans may be made now; at once where a budget is used up."""
        if self.state.meter is not None and self.state.meter.is_used_up:
            return True
        rounds = self.state.now / self.settings.round_seconds
        return abs(rounds - round(rounds)) < ROUNDING

    def _decide(self) -> None:
        """Ask the policy, prove on the tree that it fits, and only then tell the bodies."""
        state = self.state
        state.replan = state.content = False
        state.fresh.clear()
        expire_locks(state)
        blocked: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None
        failed: dict[int, int] = {}
        wake_at = m.INFINITY
        for attempt in range(ATTEMPTS):
            try:
                wish = draft(state, self.policy, blocked)
            except BadPlan as error:
                state.refused = str(error)
                self._plan_wake_at = m.INFINITY
                return
            moves = self.policy.moves and wish.moves
            trial = Settlement(state, self.settings.locality_seconds, moves)
            how = self.settings.repack
            placed = repack(trial, wish, how) if how else trial.apply(wish)
            failed.update(trial.failed)
            wake_at = min(wake_at, wish.wake_at, trial.wake_at)
            if placed or attempt == ATTEMPTS - 1:
                break
            trial.rollback()
            if blocked is None:
                blocked = np.zeros(state.table.n, bool)
            blocked[list(trial.failed)] = True
        state.refused = ""
        trial.commit()
        set_clocks(state, wish.clocks)
        note_causes(state, wish, failed)
        # A moment that is not in the future cannot be waited for.
        self._plan_wake_at = wake_at if wake_at > state.now else m.INFINITY
        if not failed and not self.settings.always_asks:
            self._look_for_content()

    def _look_for_content(self) -> None:
        """Note if all jobs have all they want; where somebody wants more, look less often."""
        state = self.state
        self._pause -= 1
        if self._pause > 0 or not can_be_content(state, self.policy):
            return
        if self.settings.repack or self.settings.round_seconds:
            return
        state.content = all_have_what_they_want(state, self.policy)
        if state.content:
            self._plan_wake_at = m.INFINITY
            self._patience = 0
        self._patience = min(2 * self._patience + 1, PAUSE_MAX)
        self._pause = 0 if state.content else self._patience

    def _next_wake(self) -> float:
        """The next moment at which time alone may change something."""
        state = self.state
        wake = self._plan_wake_at
        if state.locks:
            wake = min(wake, state.locks[0][0])
        if not state.queues.trivial:
            wake = min(wake, state.queues.next_change(state.now, self._used()))
        every = self.settings.round_seconds
        if every and (state.replan or wake < m.INFINITY):
            if state.replan:
                rounds = math.floor(state.now / every + ROUNDING) + 1
            else:
                rounds = math.ceil(max(wake, state.now) / every - ROUNDING)
            wake = state.round_at = rounds * every
        wake = min(wake, self._next_limit()) if state.limits else wake
        wake = min(wake, state.meter.next_change()) if state.meter is not None else wake
        return min(wake, next_try(state)) if state.backoffs else wake

    def _next_limit(self) -> float:
        """The end of a longest run time that still counts."""
        state = self.state
        while state.limits:
            at, serial, epoch = state.limits[0]
            row = state.by_serial(serial)
            if row is not None and state.table.items[row].epoch == epoch:
                return at
            heapq.heappop(state.limits)
        return m.INFINITY

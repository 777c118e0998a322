"""The decision thread: what happened goes in, is decided on, written down, and only then done.

Nothing else touches the scheduler or appends to the store. Whatever arrived while the last turn was
written goes into one step, and into one transaction.
"""

from __future__ import annotations

import heapq
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import count
from typing import Final, TypeVar

from bough.backends.base import Backend
from bough.core.model import Command, Ended, Event, Exited, Resize, Start, Stop, Tick
from bough.core.reason import Reason
from bough.core.scheduler import Scheduler
from bough.errors import BoughError, DaemonError, FullError
from bough.records import Recipe
from bough.server.anystore import AnyStore
from bough.server.database import StoreError
from bough.server.ledger import Ledger
from bough.server.news import News
from bough.server.rows import Batch, Entry
from bough.server.turn import Act, Look, Turn, answer, refuse

T = TypeVar("T")
_log = logging.getLogger(__name__)
#: Asks and events that go into one step at most.
TURN_MAX: Final = 2000
#: Entries from one snapshot to the next: so many are decided again after a restart.
SNAPSHOT_ENTRIES: Final = 5000
#: After a write has failed, it is tried again so soon; then later and later.
RETRY_SECONDS, RETRY_MAX_SECONDS = 0.5, 10.0
DAY_SECONDS: Final = 86400.0
#: The longest that a thread may wait; with nothing to wait for, it waits without end.
WAIT_MAX_SECONDS: Final = 1e6

ENDING: Final = "The daemon is ending."

Ask = Act[T] | Look[T]


class Loop:
    """The thread, and what it alone may touch."""

    def __init__(
        self,
        store: AnyStore,
        backend: Backend,
        scheduler: Scheduler,
        clock: Callable[[], float],
        rebuild: Callable[[], Scheduler],
    ) -> None:
        self.store = store
        self.scheduler = scheduler
        self.clock = clock
        self.ledger = Ledger(store, backend)
        self.news = News(store.seq, store.events)
        #: What a user should know, as long as it is so.
        self.trouble = ""
        self.keep_days = 30.0
        #: Told how long each turn took.
        self.took: Callable[[float], None] = lambda seconds: None
        self._backend = backend
        self._rebuild = rebuild
        self._inbox: queue.SimpleQueue[Event | Act[object] | Look[object] | None]
        self._inbox = queue.SimpleQueue()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._until: list[tuple[Callable[[], bool], Future[None]]] = []
        self._numbers = count()
        #: Events of the body that could not be written yet, and when that is tried again.
        self._kept: list[Event] = []
        self._retry_at, self._retry_seconds = 0.0, RETRY_SECONDS
        #: Whether the scheduler believes what is not written.
        self._stale = False
        self._snapshot_at = store.seq
        self._stopping = False
        #: Held while something is asked, so that nothing is asked of a thread that has ended.
        self._gate, self._over = threading.Lock(), True
        #: No sooner may time alone be told again, as it could not be decided on.
        self._rest_until = 0.0
        self._thread = threading.Thread(target=self._run, name="bough-decisions", daemon=True)

    # ------------------------------------------------------------------ from any thread

    def start(self, events: Sequence[Event] = ()) -> None:
        """Begin with what is known to have happened."""
        for event in events:
            self.emit(event)
        self._over = False
        self._thread.start()

    def stop(self) -> None:
        """Finish what was asked, keep a snapshot, and end."""
        self._inbox.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def emit(self, event: Event) -> None:
        """Something happened."""
        self._inbox.put(event)

    def act(self, work: Callable[[Turn], Callable[[], T]]) -> Future[T]:
        """Let something happen; answered once it is on the disk."""
        return self._ask(Act(work, Future()))

    def look(self, work: Callable[[], T]) -> Future[T]:
        """Look at what only the decision thread may touch."""
        return self._ask(Look(work, Future()))

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call this in the decision thread after that time; asked of the decision thread only."""
        heapq.heappush(self._timers, (self.clock() + seconds, next(self._numbers), call))

    def until(self, test: Callable[[], bool]) -> Future[None]:
        """Answered once this is so; it is tested in the decision thread, after each turn."""
        future: Future[None] = Future()
        self.look(lambda: self._until.append((test, future)))
        return future

    def plan_anew(self) -> None:
        """Let time pass: what is decided by has changed."""
        self.emit(Tick(at=self.clock()))

    def _ask(self, ask: Ask[T]) -> Future[T]:
        with self._gate:
            if not self._over:
                self._inbox.put(ask)  # type: ignore[arg-type]
                return ask.future
        refuse(ask.future, DaemonError(ENDING))
        return ask.future

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        while not self._stopping:
            items = self._take()
            acts = [item for item in items if isinstance(item, Act)]
            events = [item for item in items if isinstance(item, Event)]
            begun = time.perf_counter()
            try:
                self._turn(events, acts)
                self.took(time.perf_counter() - begun)
                self._call_timers()
            except Exception as error:
                # One turn's trouble must not end all that come after it.
                _log.exception("a turn of the decision thread")
                self._refuse_all(acts, error)
            for item in items:
                if isinstance(item, Look):
                    answer(item.future, item.work)
            self._until = [each for each in self._until if not _answered(*each)]
        self._end()

    def _take(self) -> list[Event | Act[object] | Look[object]]:
        """All that has come; waits until there is something to do."""
        items: list[Event | Act[object] | Look[object]] = []
        wait: float | None = self._seconds_to_wait()
        try:
            item = self._inbox.get(timeout=wait)
            while True:
                if item is None:
                    self._stopping = True
                else:
                    items.append(item)
                if len(items) >= TURN_MAX or self._stopping:
                    break
                item = self._inbox.get_nowait()
        except queue.Empty:
            pass
        return items

    def _seconds_to_wait(self) -> float | None:
        at = self._due_at()
        if self._timers:
            at = min(at, self._timers[0][0])
        if at == float("inf"):
            return None
        return min(max(at - self.clock(), 0.0), WAIT_MAX_SECONDS)

    def _due_at(self) -> float:
        """When something is to be done though nothing came in."""
        if self.trouble:
            return self._retry_at
        return max(self.scheduler.wake_at, self._rest_until)

    def _call_timers(self) -> None:
        now = self.clock()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()

    # ------------------------------------------------------------------ one turn

    def _turn(self, events: list[Event], acts: Sequence[Act[object]]) -> None:
        """Decide on what came, write it down, do it, and answer."""
        events = [*self._kept, *events]
        self._kept = events
        if self._stale and not self._renew(acts):
            return
        turn = Turn(self.clock())
        turn.events += events
        answers = [(act, done) for act in acts if (done := self._begin(act, turn)) is not None]
        if not turn.events and self._due_at() <= turn.at:
            turn.events.append(Tick(at=turn.at))
        try:
            commands = self._step(turn) if turn.events else []
        except StoreError as error:
            self._unwritten(error, [act for act, _ in answers])
            return
        except Exception as error:
            self._broken(error, events, acts, answers)
            return
        self._kept = []
        if turn.events:
            self._well()
        for command, _ in commands:
            try:
                self._carry_out(command)
            except Exception:  # it is written: a restart would give it once more
                _log.exception("carrying out %s", command)
        for act, done in answers:
            answer(act.future, done)
        self._keep_snapshot()

    def _begin(self, act: Act[T], turn: Turn) -> Callable[[], T] | None:
        """What it adds to the turn; None when it is refused."""
        mark = turn.mark()
        try:
            return act.work(turn)
        except Exception as error:
            turn.back_to(mark)
            refuse(act.future, error)
            return None

    def _step(self, turn: Turn) -> list[tuple[Command, Reason | None]]:
        """Decide and write down."""
        scheduler, first = self.scheduler, self.store.seq + 1
        self._stale = True  # until it is written
        commands: list[tuple[Command, Reason | None]] = []
        for command in scheduler.handle(turn.events):
            commands.append((command, scheduler.reason_for(command)))
        draft = self.ledger.draft(turn, commands, scheduler)
        self.store.append(
            Batch(
                at=turn.at,
                events=turn.events,
                commands=commands,
                submissions=turn.accepted,
                records=draft.records,
                accounts=draft.accounts,
            )
        )
        self._stale = False
        self.ledger.keep(draft)
        step = self.store.step
        said: list[tuple[Event | Command, Reason | None]] = [(each, None) for each in turn.events]
        said += commands
        self.news.publish(
            [Entry(seq, turn.at, step, what, why) for seq, (what, why) in enumerate(said, first)]
        )
        return commands

    def _carry_out(self, command: Command) -> None:
        if isinstance(command, Ended):
            self._backend.forget(command.id)
        if not isinstance(command, Start | Resize | Stop):
            return
        job = self.scheduler.state.jobs[command.id]
        recipe = self.store.recipe(command.id)
        if recipe is None and isinstance(command, Start):
            _log.error("job %s has no recipe", command.id)
            at, epoch = self.clock(), command.epoch
            self.emit(Exited(at=at, id=command.id, epoch=epoch, why="failed", code=125))
            return
        self._backend.execute(command, job.spec, recipe or Recipe())

    # ------------------------------------------------------------------ what goes wrong

    def _unwritten(self, error: StoreError, acts: Sequence[Act[object]]) -> None:
        """Nothing of the turn was done. What the body told is kept, and tried again."""
        if not self.trouble:
            _log.error("nothing can be written down: %s", error)
        self.trouble = f"Nothing can be written down: {error}."
        self._retry_at = self.clock() + self._retry_seconds
        self._retry_seconds = min(2 * self._retry_seconds, RETRY_MAX_SECONDS)
        self._refuse_all(acts, FullError(str(error)))
        self._renew(())

    def _well(self) -> None:
        if self.trouble:
            _log.warning("things can be written down again")
        self.trouble, self._retry_seconds = "", RETRY_SECONDS

    def _renew(self, acts: Sequence[Act[object]]) -> bool:
        """Let the scheduler believe what is written, and nothing else."""
        try:
            self.scheduler = self._rebuild()
        except (BoughError, OSError) as error:
            _log.exception("the store cannot be read")
            self.trouble = f"The store cannot be read: {error}."
            self._retry_at = self.clock() + RETRY_MAX_SECONDS
            self._refuse_all(acts, FullError(str(error)))
            return False
        self.scheduler.state.causes.clear()
        self._stale = False
        return True

    def _broken(
        self,
        error: Exception,
        events: list[Event],
        acts: Sequence[Act[object]],
        answers: Sequence[tuple[Act[object], Callable[[], object]]],
    ) -> None:
        """Our own mistake: find out by what, and go on without it."""
        self._kept = []
        if not self._renew(acts):
            self._kept = events
            return
        if len(events) + len(answers) > 1:
            for event in events:
                self._turn([event], ())
            for act, _ in answers:
                self._turn([], (act,))
            return
        if not events and not answers:  # time itself: it passes again, but not at once
            self._rest_until = self.clock() + RETRY_MAX_SECONDS
        _log.error("dropped, as it cannot be decided on: %s", events or "a request", exc_info=error)
        self._refuse_all([act for act, _ in answers], error)

    def _refuse_all(self, acts: Sequence[Act[object]], error: Exception) -> None:
        for act in acts:
            if not act.future.done():
                refuse(act.future, error)

    # ------------------------------------------------------------------ snapshots

    def _keep_snapshot(self, *, now: bool = False) -> None:
        """So that a restart need not decide all of it again."""
        entries = self.store.seq - self._snapshot_at
        if entries < (1 if now else SNAPSHOT_ENTRIES) or self._stale:
            return
        self._snapshot_at = self.store.seq
        try:
            self.store.append(Batch(at=self.clock(), accounts=self.ledger.behind()))
            self.store.save_snapshot(self.store.seq, self.scheduler.to_bytes())
            self.store.prune(self.clock() - self.keep_days * DAY_SECONDS)
        except StoreError as error:  # the next one will do
            _log.warning("no snapshot could be kept: %s", error)

    def _end(self) -> None:
        """Nobody is left waiting for an answer."""
        with self._gate:
            self._over = True
        while True:
            try:
                item = self._inbox.get_nowait()
            except queue.Empty:
                break
            if isinstance(item, Act | Look):
                refuse(item.future, DaemonError(ENDING))
        self._keep_snapshot(now=True)
        self.news.end()


def _answered(test: Callable[[], bool], future: Future[None]) -> bool:
    """Whether nobody waits for this any more."""
    try:
        if not test():
            return future.cancelled()
    except Exception as error:
        refuse(future, error)
        return True
    answer(future, lambda: None)
    return True

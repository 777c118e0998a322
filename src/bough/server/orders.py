"""What callers want done, as events of a turn; carried out in the decision thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bough.core.model import (
    Amended,
    Cancelled,
    DeviceHealth,
    Held,
    NodeDrained,
    Queue,
    QueueSet,
)
from bough.core.queues import QueueTree
from bough.core.scheduler import Scheduler
from bough.core.state import State
from bough.errors import (
    BoughError,
    ConflictError,
    FullError,
    InputError,
    NotFoundError,
    nearest,
)
from bough.records import (
    ENDED,
    Amendment,
    Config,
    ConfigChange,
    DeviceRecord,
    JobRecord,
    QueueRecord,
    Submission,
)
from bough.server import intake, rules, views
from bough.server.acceptance import Acceptance
from bough.server.database import StoreError
from bough.server.parts import Parts
from bough.server.permissions import Caller, check_admin, check_owner
from bough.server.references import find
from bough.server.replay import make_scheduler
from bough.server.turn import Turn

Jobs = tuple[JobRecord, ...]
Devices = tuple[DeviceRecord, ...]
#: Why a device is not used that an admin has put aside.
QUARANTINE = "put aside by an admin"


class Orders:
    """Each method adds to the turn, and gives what makes the answer once that is written."""

    def __init__(self, parts: Parts, acceptance: Acceptance) -> None:
        self._parts = parts
        self._store, self._loop = parts.store, parts.loop
        self._acceptance = acceptance

    @property
    def _state(self) -> State:
        return self._loop.scheduler.state

    # ------------------------------------------------------------------ jobs

    def submit(self, caller: Caller, given: Sequence[Submission], turn: Turn) -> Callable[[], Jobs]:
        """Take jobs on."""
        ids = self._acceptance.accept(caller, given, turn)
        return lambda: self._records(ids)

    def retry(self, caller: Caller, ref: str, turn: Turn) -> Callable[[], Jobs]:
        """Of an array, repeat those members that are not done."""
        records = self._records(self._owned(caller, ref))
        going = [each.id for each in records if each.state not in ENDED]
        if going:
            raise ConflictError(f"Job {going[0]} is not over yet.")
        again = [each.id for each in records if each.state != "done" or len(records) == 1]
        if not again:
            raise ConflictError("All of its jobs are done.")
        ids = self._acceptance.repeat(caller, again, turn)
        return lambda: self._records(ids)

    def stop(self, caller: Caller, ref: str, turn: Turn) -> Callable[[], Jobs]:
        """Those that are over stay as they are."""
        ids = self._owned(caller, ref)
        turn.events += [Cancelled(at=turn.at, id=id) for id in ids if id in self._state.jobs]
        return lambda: self._records(ids)

    def hold(self, caller: Caller, ref: str, held: bool, turn: Turn) -> Callable[[], Jobs]:
        """Park, or let go on."""
        ids = self._owned(caller, ref)
        turn.events += [Held(at=turn.at, id=id, held=held) for id in self._going(ids)]
        return lambda: self._records(ids)

    def amend(self, caller: Caller, ref: str, wish: Amendment, turn: Turn) -> Callable[[], Jobs]:
        """Ask for something else from now on."""
        ids = self._owned(caller, ref)
        going = self._going(ids)
        self._check_wish(caller, wish, going, turn.at)
        turn.events += [
            Amended(
                at=turn.at, id=id, devices=wish.devices, queue=wish.queue, priority=wish.priority,
                deadline=wish.deadline, max_run_seconds=wish.max_run_seconds,
            )
            for id in going
        ]  # fmt: skip
        return lambda: self._records(ids)

    def _check_wish(self, caller: Caller, wish: Amendment, ids: Sequence[str], now: float) -> None:
        if wish == Amendment():
            raise InputError("says nothing that is to be changed")
        if wish.queue is not None:
            intake.check_name(wish.queue, "queue")
            if wish.queue not in self._state.queues.names and not caller.admin:
                hint = nearest(wish.queue, self._state.queues.names)
                raise InputError(f"no queue is called {wish.queue!r}", field="queue", hint=hint)
        if wish.deadline and wish.deadline <= now:
            raise InputError("is in the past", field="deadline")
        intake.check_change(wish)
        for id in ids:
            if wish.devices is not None and self._state.jobs[id].spec.roles:
                raise ConflictError(f"Job {id} is a gang of roles, which keeps its sizes.")

    def _owned(self, caller: Caller, ref: str) -> list[str]:
        """Jobs that the caller may change."""
        ids = find(self._store, caller, ref)
        for record in self._records(ids):
            check_owner(caller, record)
        return ids

    def _going(self, ids: Sequence[str]) -> list[str]:
        """Those that are not over; there must be some."""
        going = [id for id in ids if id in self._state.jobs]
        if not going:
            what = f"Job {ids[0]} is over." if len(ids) == 1 else "All of its jobs are over."
            raise ConflictError(what)
        return going

    def _records(self, ids: Sequence[str]) -> Jobs:
        live, now = self._loop.ledger.live, self._loop.clock()
        found = [views.as_of(live[id], now) if id in live else self._store.job(id) for id in ids]
        return tuple(record for record in found if record is not None)

    # ------------------------------------------------------------------ queues and nodes

    def queues(self) -> tuple[QueueRecord, ...]:
        """All of them, as they are."""
        return views.queues(self._state, self._loop.clock())

    def devices(self) -> Devices:
        """All of them, as they are."""
        parts = self._parts
        return views.devices(self._state, self._loop.ledger.live, parts.readings, parts.taken)

    def set_queue(self, caller: Caller, queue: Queue, turn: Turn) -> Callable[[], QueueRecord]:
        """Proved on a twin of the tree before anybody is told."""
        check_admin(caller, "set queues")
        intake.check_name(queue.name, "name")
        twin = QueueTree()
        twin.restore(self._state.queues.state())
        try:
            for event in turn.events:
                if isinstance(event, QueueSet):
                    twin.set(event.queue)
            twin.set(queue)
        except ValueError as error:
            raise InputError(str(error), field="queue") from None
        turn.events.append(QueueSet(at=turn.at, queue=queue))
        return lambda: next(each for each in self.queues() if each.queue.name == queue.name)

    def drain(self, caller: Caller, node: str, drained: bool, turn: Turn) -> Callable[[], Devices]:
        """Let a node take nothing new, or let it take jobs again."""
        check_admin(caller, "drain nodes")
        self._check_node(node)
        turn.events.append(NodeDrained(at=turn.at, name=node, drained=drained))
        return lambda: tuple(each for each in self.devices() if each.node == node)

    def quarantine(
        self, caller: Caller, node: str, device: int, bad: bool, turn: Turn
    ) -> Callable[[], Devices]:
        """Use a device no longer, or again."""
        check_admin(caller, "put devices aside")
        count = self._check_node(node)
        if not 0 <= device < count:
            raise NotFoundError(f"Node {node} has no device {device}; it has {count}.")
        note = QUARANTINE if bad else self._trouble_of(node, device)
        turn.events.append(
            DeviceHealth(at=turn.at, name=node, device=device, healthy=not note, note=note)
        )
        return lambda: tuple(
            each for each in self.devices() if (each.node, each.index) == (node, device)
        )

    def _trouble_of(self, node: str, device: int) -> str:
        """Why a device that nobody has put aside is not to be used; empty: it is well."""
        reading = self._parts.readings.get((node, device))
        return (reading.ailment if reading else "") or self._parts.taken.get((node, device), "")

    def _check_node(self, name: str) -> int:
        book = self._state.nodes.get(name)
        if book is None or book.down:
            hint = nearest(name, [n for n, b in self._state.nodes.items() if not b.down])
            raise NotFoundError(f"No node is called {name!r} ({hint}).")
        return book.node.devices

    # ------------------------------------------------------------------ what is decided by

    def configure(self, caller: Caller, wish: ConfigChange, turn: Turn) -> Callable[[], Config]:
        """From the next turn on it is decided by this."""
        check_admin(caller, "change what is decided by")
        rules.changed(self._parts.config, wish)
        # Of that moment: others may have changed it in the same turn.
        return lambda: self._decide_by(rules.changed(self._parts.config, wish))

    def _decide_by(self, config: Config) -> Config:
        """Between two turns: what was decided before is written under what it was decided by."""
        parts, loop = self._parts, self._loop
        conditions = rules.conditions_of(config, parts.machine)
        fresh: Scheduler = make_scheduler(conditions)
        try:
            fresh.from_bytes(loop.scheduler.to_bytes())
        except (ValueError, AssertionError) as error:
            raise BoughError(f"That cannot be decided by: {error}.") from error
        try:
            parts.store.set_setting(rules.SETTING, config)
            parts.store.set_conditions(conditions)
        except StoreError as error:
            raise FullError(str(error)) from error
        parts.conditions = conditions
        loop.scheduler, parts.config, loop.keep_days = fresh, config, config.keep_days
        loop.plan_anew()
        return config

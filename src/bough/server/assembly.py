"""Puts a daemon together: store, body, scheduler, the thread that decides; and takes it apart."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from bough.backends.local import Local
from bough.core.model import Event, Held, Tick
from bough.core.scheduler import Scheduler
from bough.errors import BoughError
from bough.hardware.probe import Machine, probe
from bough.server import recovery, rules
from bough.server.anystore import AnyStore
from bough.server.clock import take_over
from bough.server.identity import identity_of
from bough.server.loop import Loop
from bough.server.opening import open_store
from bough.server.parts import Parts
from bough.server.replay import resume
from bough.server.service import Service
from bough.server.turn import Turn
from bough.server.watching import Watching

#: Jobs that were parked because the daemon ended, to go on with the next one.
PARKED: Final = "parked_at_end"
PARK_SECONDS: Final = 300.0


class Wish(NamedTuple):
    """What a daemon is asked to be."""

    home: Path
    #: As `bough.hardware.probe` reads it; None: whatever is found.
    devices: str | None = None
    #: Serve all users of this machine.
    system: bool = False
    #: Where the store is; None: where it was, or else a file in the home.
    store: str | None = None


def assemble(wish: Wish) -> Service:
    """Everything is open, compared with what really is, and begins to decide."""
    machine = probe(wish.devices)
    store = open_store(wish.store, wish.home)
    try:
        parts = _put_together(wish, machine, store)
    except BaseException:
        store.close()
        raise
    _begin(parts)
    return Service(parts)


def _put_together(wish: Wish, machine: Machine, store: AnyStore) -> Parts:
    config = rules.known_config(store)
    conditions = rules.conditions_of(config, machine)
    scheduler, outcome = resume(store, conditions)
    if outcome.difference is not None:
        store.notes.append(
            f"This bough would have decided otherwise in step {outcome.difference.step}; "
            "it goes on from what is really there."
        )
    last = _last_moment(store, scheduler)
    busy = any(job.held for job in scheduler.state.table.items)
    clock = take_over(store, last, busy=busy)
    identity = identity_of if wish.system else None
    body = Local(wish.home, machine.nodes, clock, identity=identity)

    def rebuild() -> Scheduler:
        return resume(store, parts.conditions)[0]

    loop = Loop(store, body, scheduler, clock, rebuild)
    loop.keep_days = config.keep_days
    loop.ledger.catch_up(scheduler.state.causes)
    scheduler.state.causes.clear()
    parts = Parts(
        home=wish.home, store=store, backend=body, loop=loop, clock=clock, machine=machine,
        config=config, conditions=conditions, system=wish.system,
    )  # fmt: skip
    return parts


def _last_moment(store: AnyStore, scheduler: Scheduler) -> float:
    """When the journal ends."""
    last = list(store.events(max(0, store.seq - 1), 1))
    return max(scheduler.state.now, last[-1].at if last else 0.0)


def _begin(parts: Parts) -> None:
    loop, store, body = parts.loop, parts.store, parts.backend
    state, now = loop.scheduler.state, loop.clock()
    restarted = parts.clock.stands is not None
    watching = Watching(parts)
    parked = store.setting(PARKED, list[str]) or []
    events: list[Event] = [
        *recovery.of_nodes(state, parts.machine.nodes, now),
        *recovery.of_jobs(loop.scheduler, store, body, restarted=restarted),
        *recovery.unparked(parked, state, now),
        *watching.begin(),
    ]
    if parked:
        store.set_setting(PARKED, [])
    for event in events:
        loop.emit(event)
    body.open(loop.emit)  # and with it, what it has found out already
    if restarted:
        parts.clock.go()
        loop.emit(Tick(at=parts.clock()))  # from here on, what is decided is of the present
    loop.start()


def take_apart(service: Service, *, park: bool = False) -> None:
    """Jobs go on without us, or are parked until the next daemon comes."""
    parts = service.parts
    if park:
        park_all(parts)
    parts.unwatch()
    service.foresight.end()
    parts.loop.stop()
    parts.backend.close()
    parts.store.close()


def park_all(parts: Parts) -> None:
    """Wait until all jobs have left their devices; those that do not in time go on."""
    loop = parts.loop

    def hold_all(turn: Turn) -> Callable[[], None]:
        state = loop.scheduler.state
        ids = [job.id for job in state.table.items if not job.held_by_user]
        parts.store.set_setting(PARKED, ids)
        turn.events += [Held(at=turn.at, id=id) for id in ids]
        return lambda: None

    def all_left() -> bool:
        return not any(kept.record.devices for kept in loop.ledger.live.values())

    with suppress(BoughError, TimeoutError):
        loop.act(hold_all).result(PARK_SECONDS)
        loop.until(all_left).result(PARK_SECONDS)

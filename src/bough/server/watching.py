"""Tells the scheduler what the meters say of devices, and jobs' accounts what power they drew."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

import msgspec

from bough.backends import attempts
from bough.core.model import DeviceHealth, Event
from bough.hardware.meters import Holding, Round, spent
from bough.hardware.monitor import Monitor
from bough.hardware.whose import ours_below
from bough.server.orders import QUARANTINE
from bough.server.parts import Parts
from bough.server.turn import Turn

_Key = tuple[str, int]


class Watching:
    """Between the monitor's thread and the decision thread."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._loop = parts.loop
        #: What was told before there was anybody to hear it.
        self._early: list[DeviceHealth] | None = []
        self._monitor = Monitor(
            parts.machine,
            ours_below(self._shims),
            self._changed,
            held=self._held,
            metered=self._metered,
        )
        parts.check_devices, parts.unwatch = self.check, self._monitor.stop

    def begin(self) -> list[Event]:
        """Look for the first time, before anything is decided; what the scheduler must know."""
        self._monitor.start()
        self._parts.readings = readings = self._monitor.readings
        if any(each.joules is not None or each.watts is not None for each in readings.values()):
            self._loop.ledger.left = []
        early, self._early = self._early or [], None
        return [event for event in early if self._is_news(event)]

    def check(self) -> None:
        """Look now, and wait until the scheduler has heard of it."""
        self._parts.readings = self._monitor.check()
        self._loop.look(lambda: None).result()

    # ------------------------------------------------------------------ the monitor asks

    def _shims(self) -> Collection[int]:
        """Whose descendants are our jobs' processes."""
        found = set()
        for id, kept in list(self._loop.ledger.live.items()):
            if kept.record.place:
                home = self._parts.home
                shim = attempts.read_shim(attempts.directory_of(home, id, kept.record.epoch))
                found.add(shim.pid if shim else 0)
        return found - {0}

    def _held(self, node: str, device: int) -> bool:
        return any(
            name == node and device in numbers
            for kept in list(self._loop.ledger.live.values())
            for name, numbers in kept.record.place
        )

    # ------------------------------------------------------------------ the monitor tells

    def _changed(self, event: DeviceHealth) -> None:
        event = msgspec.structs.replace(event, at=self._loop.clock())
        if self._early is not None:
            self._note(event)
            self._early.append(event)
        else:
            self._loop.act(lambda turn: self._hear(event, turn))

    def _hear(self, event: DeviceHealth, turn: Turn) -> Callable[[], None]:
        self._note(event)
        if self._is_news(event):
            turn.events.append(event)
        return lambda: None

    def _note(self, event: DeviceHealth) -> None:
        """Who has taken it, for whoever looks at devices."""
        taken = self._monitor.verdicts.get((event.name, event.device))
        if taken is not None and taken.state == "taken":
            self._parts.taken[event.name, event.device] = event.note
        else:
            self._parts.taken.pop((event.name, event.device), None)

    def _is_news(self, event: DeviceHealth) -> bool:
        """What an admin has put aside stays so; what is known need not be written down again."""
        book = self._loop.scheduler.state.nodes.get(event.name)
        if book is None:
            return not event.healthy
        known = book.unhealthy.get(event.device)
        return known != QUARANTINE and (known is None) != event.healthy

    def _metered(self, before: Round, after: Round) -> None:
        """In the monitor's thread; accounts are the decision thread's."""
        self._parts.readings = after.readings
        shift = self._loop.clock() - time.time()
        rounds = [each._replace(at=each.at + shift) for each in (before, after)]
        self._loop.look(lambda: self._charge(*rounds))

    def _charge(self, before: Round, after: Round) -> None:
        ledger = self._loop.ledger
        now = [
            Holding(id, node, device, kept.account.sizes[-1][0] if kept.account.sizes else kept.at)
            for id, kept in ledger.live.items()
            for node, devices in kept.record.place
            for device in devices
        ]
        left, ledger.left = ledger.left or [], [] if ledger.left is not None else None
        ledger.charge(spent(before, after, [*now, *left]), self._loop.clock())

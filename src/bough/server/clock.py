"""The time that events carry: it never goes back, whatever is done to the clock of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from bough.backends.processes import boot_id
from bough.core.model import Frozen
from bough.core.units import format_duration
from bough.server.anystore import AnyStore
from bough.server.database import StoreError

#: Under which name it is kept how time is told.
SETTING: Final = "clock"
#: Clocks that differ by more than this were set by somebody.
SET_SECONDS: Final = 60.0


class Reckoning(Frozen, frozen=True):
    """How a daemon told the time, for those that come after it while the machine runs on."""

    #: Names the run of the machine.
    boot_id: str
    #: From the seconds since it began to the time of events.
    offset: float


class Clock:
    """The wall clock at the start, and from there on what has passed since, sleep included.

    Whoever sets the machine's clock changes it for a later daemon only, and not into the past:
    a journal's times never fall.
    """

    def __init__(
        self,
        not_before: float = 0.0,
        *,
        wall: Callable[[], float] | None = None,
        passed: Callable[[], float] | None = None,
        offset: float | None = None,
    ) -> None:
        self._passed = passed or since_boot
        passed_now = self._passed()
        if offset is None:
            offset = (wall or time.time)() - passed_now
        self.offset = max(offset, not_before - passed_now)
        #: The moment at which it stands still.
        self.stands: float | None = None

    def __call__(self) -> float:
        return self.offset + self._passed() if self.stands is None else self.stands

    def go(self) -> None:
        """No longer stand still."""
        self.stands = None


def since_boot() -> float:
    """Seconds the machine has been there, while it slept too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def take_over(store: AnyStore, last: float, *, busy: bool) -> Clock:
    """The clock of a new daemon; `last` is when the journal ends.

    Jobs that run on are counted by the time they began in, or a clock that was set meanwhile would
    change how long they have run. With nothing to count, the machine's clock is believed. After a
    restart of the machine it stands at the journal's end until it is told to go: what is lost has
    not run since.
    """
    boot = boot_id()
    before = store.setting(SETTING, Reckoning)
    same = before is not None and before.boot_id == boot
    clock = Clock(last, offset=before.offset if before and same and busy else None)
    ahead = clock() - time.time()
    if abs(ahead) > SET_SECONDS:
        where = "behind" if ahead > 0 else "ahead of"
        store.notes.append(
            f"The machine's clock is {format_duration(abs(ahead))} {where} bough's, which never "
            "goes back, and goes on evenly while jobs run; deadlines are kept by bough's."
        )
    with suppress(StoreError):  # a full disk keeps no daemon from starting
        store.set_setting(SETTING, Reckoning(boot_id=boot, offset=clock.offset))
    if before is not None and not same and last:
        clock.stands = last
    return clock

"""What a daemon is made of, in one place for those who need several of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bough.backends.base import Backend
from bough.hardware.probe import Machine
from bough.records import Config
from bough.server.anystore import AnyStore
from bough.server.clock import Clock
from bough.server.loop import Loop
from bough.server.rows import Conditions
from bough.server.views import Readings


@dataclass(slots=True, kw_only=True)
class Parts:
    """What a daemon is made of."""

    home: Path
    store: AnyStore
    backend: Backend
    loop: Loop
    clock: Clock
    machine: Machine
    config: Config
    conditions: Conditions
    #: Jobs run as whoever submitted them.
    system: bool = False
    #: Ends the daemon's process; `park` tells whether jobs are parked before.
    end: Callable[[bool], None] = lambda park: None
    #: What the meters said last, and who has taken which device.
    readings: Readings = field(default_factory=dict)
    taken: dict[tuple[str, int], str] = field(default_factory=dict)
    #: Asks the meters at once.
    check_devices: Callable[[], None] = lambda: None
    #: Asks them no more.
    unwatch: Callable[[], None] = lambda: None
    #: Address of the network, if it listens there.
    listen: str = ""

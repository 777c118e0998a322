"""Watches the devices: who else is on them, and how they fare; a thread only where meters are."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Literal

from bough.core.model import DeviceHealth
from bough.hardware.meters import Round
from bough.hardware.probe import Machine
from bough.hardware.readings import Reading, Readings
from bough.hardware.verdict import Verdict, verdict

_log = logging.getLogger(__name__)

#: A driver that hangs is not waited for any longer.
PATIENCE_SECONDS: Final = 60.0
#: Nor is the monitor's own thread, when it is to end.
STOP_SECONDS: Final = 5.0
#: Looks in a row that must agree before a device is taken, or free again: what has just ended may
#: be listed a moment longer, and what has just begun is not known yet.
LOOKS: Final = 2
_Key = tuple[str, int]


class Monitor:
    """Tells of each device that must not be handed out, and when it may be again.

    `ours` says whether a process belongs to a job of ours, `held` whether a job of ours holds a
    device. Both are asked, and `changed` and `metered` are called, in the monitor's thread or in
    that of who calls `start` or `check`. The first look tells of every device, good ones too:
    nobody knows what became of them while nobody looked.

    A device that a job of ours holds is not taken from under it because somebody joins it there,
    nor for an ailment it can live with: that is told once the job has gone.
    """

    def __init__(
        self,
        machine: Machine,
        ours: Callable[[int], bool],
        changed: Callable[[DeviceHealth], None],
        *,
        seconds: float | None = None,
        held: Callable[[str, int], bool] = lambda node, device: False,
        metered: Callable[[Round, Round], None] | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._machine = machine
        self._ours, self._held = ours, held
        self._changed, self._metered = changed, metered
        least = machine.reader.seconds
        #: Between two looks; infinite: there are no meters, and no thread.
        self.seconds = least if seconds is None or least == math.inf else seconds
        self._patience_seconds = patience_seconds
        self._looking = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        #: Asks the driver, which may never answer.
        self._asking: threading.Thread | None = None
        self._last: Round | None = None
        self._verdicts: dict[_Key, Verdict] = {}
        #: What was told of each, and what is to be told once it was seen often enough.
        self._told: dict[_Key, Literal["well", "taken", "unhealthy"]] = {}
        self._rumours: dict[_Key, tuple[str, int]] = {}

    def start(self) -> None:
        """Look once, tell of everything, and go on looking."""
        self._look(at_once=True)
        if self.seconds < math.inf:
            self._thread = threading.Thread(target=self._run, name="devices", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Look no more; a driver that hangs is left hanging."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def check(self) -> Readings:
        """Look now, believe it at once, and forget failures that somebody has seen to."""
        self._machine.reader.forgive()
        return self._look(at_once=True)

    @property
    def readings(self) -> Readings:
        """The latest ones."""
        return self._last.readings if self._last else {}

    @property
    def verdicts(self) -> Mapping[tuple[str, int], Verdict]:
        """How each device is by the latest readings, be it told already or not."""
        return dict(self._verdicts)

    def _run(self) -> None:
        while not self._stopping.wait(self.seconds):
            self._look(at_once=False)

    def _look(self, at_once: bool) -> Readings:
        with self._looking:
            before, now = self._last, Round(time.time(), self._read())
            self._last = now
            for key, reading in now.readings.items():
                try:
                    self._judge(key, reading, at_once)
                except Exception:
                    # One device's trouble must not end the watch over all others.
                    _log.exception("judging device %s:%s", *key)
            if before is not None and self._metered is not None:
                try:
                    self._metered(before, now)
                except Exception:
                    _log.exception("counting energy")
            return now.readings

    def _judge(self, key: _Key, reading: Reading, at_once: bool) -> None:
        """Tell what is new of a device, when it is certain."""
        held = self._held(*key)
        found = verdict(reading, self._ours, held)
        self._verdicts[key] = found
        told = self._told.get(key)
        if held and not found.broken:
            found = Verdict() if told is None else found._replace(state=told)
        if found.state == told:
            self._rumours.pop(key, None)
            return
        state, seen = self._rumours.get(key, ("", 0))
        seen = seen + 1 if state == found.state else 1
        if seen < LOOKS and not (at_once or found.broken or told is None):
            self._rumours[key] = found.state, seen
            return
        node, device = key
        well = found.state == "well"
        self._changed(
            DeviceHealth(at=time.time(), name=node, device=device, healthy=well, note=found.note)
        )
        # Only now: if nobody could be told, the next look tries again.
        self._rumours.pop(key, None)
        self._told[key] = found.state

    # ------------------------------------------------------------------------- asking the driver

    def _read(self) -> Readings:
        """What the meters say; after long silence, that they are silent."""
        answers: list[Readings] = []

        def ask() -> None:
            answers.append(self._machine.reader.read())

        if self._asking is None or not self._asking.is_alive():
            self._asking = threading.Thread(target=ask, name="asking devices", daemon=True)
            self._asking.start()
            self._asking.join(self._patience_seconds)
        if answers:
            return answers[0]
        note = f"does not answer (no word from its driver for {self._patience_seconds:g} s)"
        return {
            (node.name, index): self.readings.get((node.name, index), Reading())._replace(
                ailment=note, broken=False, users=None
            )
            for node in self._machine.nodes
            for index in range(node.devices)
        }

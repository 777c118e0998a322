"""A bar on stderr for what takes long: shown to people only, and not for what is over at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

#: What is done sooner shows no bar.
QUIET_SECONDS = 2.0
#: Drawn at most this often.
REDRAW_SECONDS = 0.1


class Bar:
    """Call it with the share that is done. Draws without a thread, so that processes may fork."""

    def __init__(
        self,
        label: str,
        quiet_seconds: float = QUIET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.label = label
        self.quiet_seconds = quiet_seconds
        self.shown: Progress | None = None
        self._clock = clock
        self._began = self._drawn = clock()
        self._visible = sys.stderr.isatty()

    def __call__(self, share: float) -> None:
        now = self._clock()
        if not self._visible or now - self._began < self.quiet_seconds:
            return
        if self.shown is None:
            self.shown = self._start()
        elif now - self._drawn < REDRAW_SECONDS:
            return
        self._drawn = now
        self.shown.update(self.shown.task_ids[0], completed=share, description=self.label)
        self.shown.refresh()

    def _start(self) -> Progress:
        from rich import progress
        from rich.console import Console

        shown = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        shown.start()
        shown.add_task(self.label, total=1.0)
        return shown

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown is not None:
            self.shown.stop()

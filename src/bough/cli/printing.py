"""What workers print, on the terminal; where there are several, each line says whose it is."""

from __future__ import annotations

import sys
from typing import Final

import click

from bough.cli.palette import colours, painted
from bough.records import LogChunk

#: One colour per rank; none means "good" or "bad" here.
RANKS: Final = ("cyan", "magenta", "yellow", "blue", "green", "bright_cyan", "bright_magenta")


class Printer:
    """Prints chunks of logs as they come."""

    def __init__(self, prefixed: bool) -> None:
        self.prefixed = prefixed
        self._colour = colours()
        self._out = sys.stdout.buffer

    def show(self, chunk: LogChunk, job: str = "") -> None:
        """Whole lines of one worker, each with its prefix."""
        text = chunk.text
        if self.prefixed or job:
            prefix = self._prefix(chunk, job)
            text = "".join(f"{prefix}{line}" for line in text.splitlines(keepends=True))
        self._out.write(text.encode("utf-8", "replace"))
        if not text.endswith("\n"):
            self._out.write(b"\n")
        self._out.flush()

    def _prefix(self, chunk: LogChunk, job: str) -> str:
        who = str(chunk.rank) if chunk.role == "worker" else f"{chunk.role} {chunk.rank}"
        parts = (job, who if self.prefixed else "")
        text = f"[{' '.join(part for part in parts if part)}]"
        if self._colour:
            text = click.style(text, fg=RANKS[chunk.rank % len(RANKS)])
        return f"{text} "


def say(text: str) -> None:
    """A line of ours beside the job's own: on stderr, and quiet."""
    line = painted(f"bough: {text}", "quiet", colours(sys.stderr))
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()

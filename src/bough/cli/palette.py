"""One colour, one meaning: the same on every screen, and none where nobody sees it."""

from __future__ import annotations

import os
import sys
from typing import Any, Final, TextIO

import click

#: Meaning -> how it looks. Nothing on a screen is coloured but by one of these.
LOOKS: Final[dict[str, dict[str, Any]]] = {
    "": {},
    "works": {"fg": "green"},  # it runs, it is sound
    "waits": {"fg": "yellow"},  # it waits, is changing, or should be looked at
    "wrong": {"fg": "red"},  # it went wrong
    "foreign": {"fg": "magenta"},  # somebody's outside of bough
    "type": {"fg": "cyan"},  # a command to type
    "name": {"bold": True},  # what the rest is about
    "quiet": {"dim": True},  # over, empty, or beside the point
}
#: Whose a thing is: colours that say nothing of good or bad, and go round.
HUES: Final = ("cyan", "blue", "bright_cyan", "bright_magenta", "bright_blue", "white")
LOOKS.update({f"hue-{number}": {"fg": colour} for number, colour in enumerate(HUES)})

STATES: Final = {
    "waiting": "waits", "starting": "waits", "resizing": "waits", "stopping": "waits",
    "running": "works", "done": "quiet", "cancelled": "quiet",
    "failed": "wrong", "timed-out": "wrong", "rejected": "wrong",
}  # fmt: skip
DEVICES: Final = {
    "free": "quiet",
    "held": "works",
    "taken": "foreign",
    "unhealthy": "wrong",
    "drained": "waits",
}


def colours(stream: TextIO | None = None) -> bool:
    """Whether there are eyes to see them, and they want them (https://no-color.org)."""
    stream = stream or sys.stdout
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, meaning: str, colour: bool) -> str:
    """The text as that meaning looks."""
    return click.style(text, **LOOKS[meaning]) if colour and LOOKS[meaning] else text

"""What the parts of the screen of `bough top` tell one another (textual extra)."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widgets import Static

from bough.cli.top_feed import Away, Snapshot


class Seen(Message):
    """The feed has something new."""

    def __init__(self, seen: Snapshot | Away) -> None:
        super().__init__()
        self.seen = seen


class Said(Message):
    """What came of what a key asked for."""

    def __init__(self, text: str, meaning: str = "") -> None:
        super().__init__()
        self.text, self.meaning = text, meaning


class Chosen(Message):
    """Somebody clicked on a line."""

    def __init__(self, line: int, twice: bool) -> None:
        super().__init__()
        self.line, self.twice = line, twice


class Listing(Static):
    """Devices, queues and jobs; a click chooses a job."""

    def on_click(self, event: events.Click) -> None:
        self.app.post_message(Chosen(event.y, event.chain > 1))

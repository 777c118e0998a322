"""The journal as it is written: server-sent events that go on where they broke.

An event's id is the number of its entry, and everything is in the store: a listener that tells the
last id it has heard gets every later entry, each once.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from bough.core.model import Event, Exited, Submitted
from bough.errors import InputError
from bough.server import rows
from bough.server.operations import NUMBER_MAX, Ask, Stream
from bough.server.permissions import without_commands
from bough.server.rows import Entry

MEDIA: Final = "text/event-stream"
#: A comment is sent when nothing else was for so long: proxies cut what is silent.
ALIVE_SECONDS: Final = 15.0
#: How soon a browser comes back.
_HELLO: Final = b"retry: 1000\n\n"
_NUMBER: Final = re.compile("[0-9]{1,16}")


def events(ask: Ask, after: int | None) -> Stream:
    """Everything after that entry, or after the one that a listener says it has heard."""
    heard = ask.headers.get("last-event-id", "")
    if heard:
        if not _NUMBER.fullmatch(heard) or int(heard) > NUMBER_MAX:
            raise InputError("is the number of an entry", field="Last-Event-ID")
        after = int(heard)
    headers = {"x-accel-buffering": "no"}
    return Stream(_told(ask, after), MEDIA, headers=headers, endless=True)


async def _told(ask: Ask, after: int | None) -> AsyncGenerator[bytes, None]:
    async with ask.service.follow(after) as follower:
        yield _HELLO
        while not ask.service.over:
            entries = await follower.take(ALIVE_SECONDS)
            yield b"".join(map(as_event, entries)) or b": still here\n\n"


def as_event(entry: Entry) -> bytes:
    """One entry, with its reason if it is a command; without what is its owner's alone."""
    what = entry.what
    if isinstance(what, Submitted):
        what = msgspec.structs.replace(what, spec=without_commands(what.spec))
    elif isinstance(what, Exited) and what.note:
        what = msgspec.structs.replace(what, note="")
    data = msgspec.to_builtins(what)
    data |= {"seq": entry.seq, "step": entry.step}
    if entry.reason is not None:
        data["reason"] = entry.reason
    if not isinstance(what, Event):
        data["at"] = entry.at
    name = type(what).__name__.encode()
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (entry.seq, name, rows.pack(data))

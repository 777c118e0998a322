"""One worker's log as plain text, whole or some bytes of it."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from bough.errors import NotFoundError
from bough.server.log_files import Part, parts_of
from bough.server.operations import Ask, Stream
from bough.server.problems import HttpError

MEDIA: Final = "text/plain; charset=utf-8"
PIECE: Final = 1 << 18
_RANGE: Final = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))")


async def read(ask: Ask, ref: str, attempt: int, rank: int) -> Stream:
    """Bytes keep their places when old parts are dropped: of those, nothing can be sent."""
    in_thread = ask.around.in_thread
    source = await in_thread(partial(ask.service.logs, ask.caller, ref))
    logs = [file for epoch, files in source.attempts if epoch == attempt for file in files]
    paths = [file.path for file in logs if file.rank == rank]
    if not paths:
        raise NotFoundError(f"Job {source.job} has no log of worker {rank} in attempt {attempt}.")
    with ExitStack() as stack:
        parts = await in_thread(lambda: stack.enter_context(parts_of(Path(paths[-1]))))
        begin, end = (parts[0].begin, parts[-1].end) if parts else (0, 0)
        first, after, status = _wanted(ask.headers.get("range", ""), begin, end)
        headers = {"accept-ranges": "bytes", "content-length": str(after - first)}
        if status == 206:
            headers["content-range"] = f"bytes {first}-{after - 1}/{end}"
        pieces = _pieces(ask, parts, first, after)
        return Stream(pieces, MEDIA, status, headers, close=stack.pop_all().close)


def _wanted(range: str, begin: int, end: int) -> tuple[int, int, int]:
    """First byte, the one after the last, and the status; several ranges are too many for us."""
    match = _RANGE.fullmatch(range.replace(" ", ""))
    if match is None:
        return begin, end, 200
    first, last, suffix = match.groups()
    if suffix is not None:
        first, after = max(begin, end - int(suffix)), end
    else:
        first, after = int(first), min(end, int(last) + 1 if last else end)
        if last and int(last) < int(first):
            return begin, end, 200  # it is to be ignored
    if first >= end or after <= max(first, begin):
        raise HttpError(
            416, f"there are bytes {begin} to {end}", headers={"content-range": f"bytes */{end}"}
        )
    return max(first, begin), after, 206


async def _pieces(ask: Ask, parts: list[Part], at: int, after: int) -> AsyncGenerator[bytes, None]:
    for part in parts:
        while part.begin <= at < min(part.end, after):
            call = partial(part.read, at, min(PIECE, after - at))
            piece = await ask.around.in_thread(call)
            if not piece:
                return
            at += len(piece)
            yield piece

"""What a daemon tells as it happens: logs and events, taken up where a connection broke."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from bough.connection import LOST, Connection, Stream, lost
from bough.errors import DaemonError
from bough.records import LogChunk, LogEnd

_END = b'{"end"'
#: Before a stream that ended without a word is opened again.
_PAUSE_SECONDS = 0.2


class Happening(NamedTuple):
    """One entry of the journal."""

    seq: int
    type: str
    data: dict[str, Any]


def logs(
    connection: Connection, path: str, query: Mapping[str, Any], follow: bool
) -> Iterator[LogChunk | LogEnd]:
    """Chunks, and the end when there is one."""
    seen: dict[tuple[int, int], int] = {}
    query = {**query, "follow": "true" if follow else None}
    while True:
        stream = _open(connection, path + asked(query), {})
        try:
            for found in _log_lines(stream):
                if isinstance(found, LogEnd):
                    yield found
                    return
                new = _unseen(found, seen)
                if new is not None:
                    yield new
            if not follow or connection.closed:
                return
        except LOST as error:
            if connection.closed:
                return
            if not follow:
                raise lost(error, again=True) from None
        finally:
            stream.close()
        time.sleep(_PAUSE_SECONDS)
        if seen:  # all of it, so that nothing between is missed; what was seen is left out
            query = {**query, "tail": None}


def events(connection: Connection, after: int | None) -> Iterator[Happening]:
    """Entries of the journal, each once, in order, until the connection is closed."""
    while not connection.closed:
        headers = {} if after is None else {"last-event-id": str(after)}
        stream = _open(connection, "/v1/events", headers)
        try:
            for found in _happenings(stream):
                after = found.seq
                yield found
        except LOST:
            pass
        finally:
            stream.close()
        time.sleep(_PAUSE_SECONDS)


def asked(query: Mapping[str, Any]) -> str:
    """The part of an address after the path."""
    given = {name: value for name, value in query.items() if value is not None and value != []}
    return "?" + urlencode(given, doseq=True) if given else ""


def _open(connection: Connection, path: str, headers: Mapping[str, str]) -> Stream:
    return connection.insist(lambda: connection.stream(path, headers))


def _log_lines(stream: Stream) -> Iterator[LogChunk | LogEnd]:
    for line in stream.lines():
        if line:  # an empty one only shows that the connection lives
            kind = LogEnd if line.startswith(_END) else LogChunk
            yield _decoded(line, kind)


def _decoded(line: bytes, kind: type[LogChunk] | type[LogEnd]) -> LogChunk | LogEnd:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError as error:
        raise DaemonError(f"The daemon is of another version: {error}.") from None


def _unseen(chunk: LogChunk, seen: dict[tuple[int, int], int]) -> LogChunk | None:
    """What of it is new."""
    worker = (chunk.attempt, chunk.rank)
    data = chunk.text.encode("utf-8", "surrogatepass")
    end, begin = chunk.at + len(data), seen.get(worker, 0)
    if end <= begin:
        return None
    seen[worker] = end
    if chunk.at >= begin:
        return chunk
    text = data[begin - chunk.at :].decode("utf-8", "replace")
    return msgspec.structs.replace(chunk, at=begin, text=text)


def _happenings(stream: Stream) -> Iterator[Happening]:
    """Server-sent events: fields on lines of their own, an empty line ends an event."""
    fields: dict[str, str] = {}
    for line in stream.lines():
        if line.rstrip(b"\r"):
            name, _, value = line.decode("utf-8", "replace").rstrip("\r").partition(":")
            value = value.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{value}" if name in fields else value
            continue
        if fields.get("data") and fields.get("id", "").isdecimal():
            data = msgspec.json.decode(fields["data"], type=dict[str, Any])
            yield Happening(int(fields["id"]), fields.get("event", "message"), data)
        fields = {}

"""What an operation of the API is: declared once, then routed, decoded and documented from that.

    @api.route("POST /v1/jobs/{ref}/stop", scope="manage")
    def stop(ask: Ask, ref: Ref) -> Future[JobRecord]:
        '''Stop a job.'''

Of the signature, names in the path are its parameters, `query` is a struct of query parameters,
`body` what the request carries, and what is returned is answered as JSON. A handler that returns a
future only asks and is called at once; one that is a coroutine is on its own; any other may have
to read from the disk and is called in a thread.
"""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)
from urllib.parse import parse_qsl

import msgspec

from bough.errors import InputError, nearest
from bough.server.problems import HttpError

if TYPE_CHECKING:
    from bough.server.bell import Bell
    from bough.server.metrics import Metrics
    from bough.server.permissions import Caller
    from bough.server.service import Service

T = TypeVar("T")
Q = TypeVar("Q", bound="Query")
Scope = Literal["read", "submit", "manage", "admin"]
H = TypeVar("H", bound=Callable[..., Any])

#: A job by its number or its name, a queue, a node: nothing that could be taken for a path.
Ref = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^/\\\x00-\x1f\x7f]+$")]
#: A number that JSON, SQLite and numpy all know.
NUMBER_MAX = 1 << 53
Count = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
MIB = 1 << 20


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what may follow the question mark of an address."""


class NoQuery(Query, frozen=True):
    """Nothing may."""


class InThread(Protocol):
    """Calls something in a worker thread."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]: ...


class Surroundings(NamedTuple):
    """What some operations need of the server around them."""

    in_thread: InThread
    metrics: Metrics
    bell: Bell
    #: The OpenAPI document, as bytes.
    document: bytes


class Ask(NamedTuple):
    """A request whose sender is known."""

    service: Service
    caller: Caller
    headers: Mapping[str, str]
    around: Surroundings


class Answer(NamedTuple, Generic[T]):
    """An answer that is more than a value."""

    value: T
    status: int = 200
    headers: Mapping[str, str] = {}


class Raw(NamedTuple):
    """An answer that is bytes already."""

    data: bytes
    media: str
    status: int = 200
    headers: Mapping[str, str] = {}


class Stream(NamedTuple):
    """An answer in pieces."""

    pieces: AsyncGenerator[bytes, None]
    media: str
    status: int = 200
    headers: Mapping[str, str] = {}
    #: It goes on until somebody hangs up, or the server ends.
    endless: bool = False
    #: Called when no more of it is sent, also if nothing ever was.
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    handler: Callable[..., Any]
    #: What a token must allow; None: nobody is asked who they are.
    scope: Scope | None
    status: int
    #: Type of the answer; None: it is a Stream, Raw, or nothing.
    answer: Any
    media: str
    #: Parameters in the path.
    places: Mapping[str, Any]
    query: type[Query]
    #: Type of what the request carries; None: nothing.
    body: Any
    #: Header of the request: what it is for.
    headers: Mapping[str, str]
    #: Statuses beyond those any operation can have: what they mean.
    also: Mapping[int, str]
    #: It returns a future, at once.
    asks: bool
    #: The answer may be long in coming; nobody waits for it when the server ends.
    patient: bool
    #: Of what the request carries.
    bytes_max: int

    @property
    def name(self) -> str:
        """Unique among operations."""
        return self.handler.__name__

    @property
    def body_required(self) -> bool:
        """Not so where every field has a default."""
        return self.body is not None and not _all_default(self.body)

    @property
    def coroutine(self) -> bool:
        """Whether it waits by itself."""
        return inspect.iscoroutinefunction(self.handler)


@dataclass(frozen=True, slots=True)
class Operations:
    """All of them, in order."""

    all: list[Operation] = field(default_factory=list)

    def route(
        self,
        what: str,
        *,
        scope: Scope | None = "read",
        status: int = 200,
        media: str = "application/json",
        headers: Mapping[str, str] | None = None,
        also: Mapping[int, str] | None = None,
        patient: bool = False,
        bytes_max: int = 8 * MIB,
    ) -> Callable[[H], H]:
        """Declare the function under it as an operation."""

        def declare(handler: H) -> H:
            method, path = what.split()
            hints = get_type_hints(handler, include_extras=True)
            answer = hints.pop("return")
            asks = get_origin(answer) is Future
            if asks or get_origin(answer) is Answer:
                (answer,) = get_args(answer)
            self.all.append(
                Operation(
                    method=method, path=path, handler=handler, scope=scope, status=status,
                    answer=None if answer in (Raw, Stream, type(None)) else answer, media=media,
                    places={name: hints[name] for name in re.findall(r"{(\w+)}", path)},
                    query=hints.get("query", NoQuery), body=hints.get("body"),
                    headers=headers or {}, also=also or {}, asks=asks, patient=patient,
                    bytes_max=bytes_max,
                )
            )  # fmt: skip
            return handler

        return declare

    def by_path(self) -> dict[str, dict[str, Operation]]:
        """What can be done at each path."""
        found: dict[str, dict[str, Operation]] = {}
        for operation in self.all:
            found.setdefault(operation.path, {})[operation.method] = operation
        return found


def _all_default(kind: Any) -> bool:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return False
    return not any(each.required for each in msgspec.structs.fields(kind))


# ------------------------------------------------------------------------------------ decoding


def arguments_of(
    operation: Operation, places: Mapping[str, str], query: bytes, body: bytes
) -> dict[str, Any]:
    """What the handler is called with."""
    found: dict[str, Any] = {
        name: _convert(places[name], kind, name) for name, kind in operation.places.items()
    }
    asked = read_query(operation.query, query)
    if operation.query is not NoQuery:
        found["query"] = asked
    if operation.body is not None:
        found["body"] = read_body(operation.body, body)
    elif body.strip() not in (b"", b"{}"):
        raise HttpError(400, "this takes nothing from the request's body")
    return found


def read_query(kind: type[Q], raw: bytes) -> Q:
    """Unknown names, and names that come twice where one value is meant, are errors."""
    lists = {each.encode_name: _is_list(each.type) for each in msgspec.structs.fields(kind)}
    found: dict[str, Any] = {}
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
    except (UnicodeError, ValueError):
        raise HttpError(400, "the query is not text in UTF-8") from None
    for name, value in pairs:
        if name not in lists:
            hint = nearest(name, lists) if lists else "there are none here"
            raise HttpError(400, f"no parameter is called {name!r}", hint=hint)
        if lists[name]:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise HttpError(400, f"parameter {name} is given twice")
        else:
            found[name] = value
    asked: Q = _convert(found, kind, "")
    return asked


def read_body(kind: Any, raw: bytes) -> Any:
    """JSON of exactly that type; nothing in it may be said twice."""
    if not raw.strip() and _all_default(kind):
        return kind()
    try:
        value = msgspec.json.decode(raw, type=kind)
        bare = json.loads(raw, object_pairs_hook=_once)
        if _LONG_NUMBER.search(raw):
            _check_numbers(bare)
    except msgspec.ValidationError as error:
        raise _input_error(error, "") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
        raise HttpError(400, f"the body is not JSON: {error}") from None
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Who reads the first of two and who reads the last would see different requests."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise HttpError(400, f"{_twice(pairs)!r} stands twice in one object")
    return found


def _twice(pairs: list[tuple[str, Any]]) -> str:
    return Counter(name for name, _ in pairs).most_common(1)[0][0]


def _convert(value: Any, kind: Any, name: str) -> Any:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _input_error(error, name) from None


_AT = re.compile(r"(.*) - at `(?:key in )?\$?\.?([^`]*)`$", re.DOTALL)


def _input_error(error: msgspec.ValidationError, name: str) -> InputError:
    """msgspec says the place at the end, in backquotes."""
    match = _AT.match(str(error))
    what, at = match.groups() if match else (str(error), "")
    return InputError(what.replace("`", ""), field=".".join(filter(None, (name, at))) or None)


def _is_list(kind: Any) -> bool:
    return get_origin(kind) in (tuple, list)


_LONG_NUMBER = re.compile(rb"[0-9]{16,}|[0-9][eE]\+?[0-9]")


def _check_numbers(value: Any, at: str = "") -> None:
    """Python's integers have no end; those of everything behind it do."""
    if isinstance(value, dict):
        for name, item in value.items():
            _check_numbers(item, f"{at}.{name}".strip("."))
    elif isinstance(value, list):
        for item in value:
            _check_numbers(item, f"{at}[…]")
    elif isinstance(value, int | float) and not -NUMBER_MAX <= value <= NUMBER_MAX:
        raise InputError("is too large a number", field=at or None, hint="at most 2**53")

"""What went wrong, as every surface of the API tells it: a Problem with a status and a word."""

from __future__ import annotations

import logging

import msgspec

from bough.errors import (
    BoughError,
    ConflictError,
    DaemonError,
    ForbiddenError,
    FullError,
    InputError,
    NotFoundError,
    TooManyError,
)
from bough.records import Problem

log = logging.getLogger("bough.http")

#: Class of error: status and word; the client has the same table the other way round.
KINDS: dict[type[BoughError], tuple[int, str]] = {
    InputError: (422, "input"),
    NotFoundError: (404, "not-found"),
    ForbiddenError: (403, "forbidden"),
    ConflictError: (409, "conflict"),
    TooManyError: (429, "too-many"),
    FullError: (507, "full"),
    DaemonError: (503, "unavailable"),
}
#: What a status is called where the error has no title of its own.
TITLES = {
    400: "The request cannot be read",
    401: "Who are you?",
    403: "That is not yours to do",
    404: "There is nothing of that name",
    405: "That cannot be done with this",
    408: "The request came too slowly",
    409: "It cannot be done as things are now",
    413: "The request is too large",
    415: "The request is not JSON",
    416: "There is nothing at that place of the log",
    421: "This is not the server you meant",
    422: "The input cannot be used",
    429: "That is more than is allowed at once",
    431: "The headers are too large",
    500: "Something went wrong inside bough",
    503: "bough cannot answer now",
    507: "There is no room to write it down",
}
_WORDS = {
    400: "malformed", 401: "unauthorized", 404: "not-found", 405: "method", 408: "slow",
    413: "too-large", 415: "media-type", 416: "range", 421: "host", 500: "internal",
    503: "unavailable",
}  # fmt: skip


class HttpError(BoughError):
    """The request itself is at fault, before anybody looks at what it asks for."""

    def __init__(
        self, status: int, detail: str, *, hint: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.hint = hint
        self.headers = headers or {}


def problem_of(error: Exception) -> Problem:
    """The same error as data. What nobody expected goes to the log, never to the caller."""
    if isinstance(error, HttpError):
        word = _WORDS.get(error.status, "")
        return _problem(error.status, word, str(error), hint=error.hint)
    if isinstance(error, InputError):
        return msgspec.structs.replace(
            _problem(422, "input", error.what, hint=error.hint or ""),
            file=error.file or "",
            line=error.line,
            field=error.field or "",
        )
    for kind in type(error).__mro__:
        if kind in KINDS:
            found = _problem(*KINDS[kind], str(error))
            if isinstance(error, TooManyError):
                return msgspec.structs.replace(found, retry_after_seconds=error.retry_after_seconds)
            return found
    if isinstance(error, BoughError):  # of the store: it has a sentence
        return _problem(500, "internal", str(error))
    log.error("an answer could not be given", exc_info=error)
    return _problem(500, "internal", "What happened is in the daemon's log.")


def headers_of(error: Exception) -> dict[str, str]:
    """What the status obliges to."""
    if isinstance(error, HttpError):
        return error.headers
    if isinstance(error, TooManyError):
        return {"retry-after": str(max(1, round(error.retry_after_seconds)))}
    return {}


def _problem(status: int, code: str, detail: str, *, hint: str = "") -> Problem:
    return Problem(title=TITLES[status], status=status, detail=detail, code=code, hint=hint)

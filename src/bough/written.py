"""Options of a program as a job file has them, so that both are read by the same rules."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from numbers import Number
from os import PathLike
from typing import Any, Final

from bough.errors import InputError
from bough.jobfile import Present, submissions
from bough.localtime import LOCAL
from bough.located import Field, Node
from bough.records import Recipe, Submission


def written(value: Any) -> Node:
    """A value as text, a list or fields. Numbers become text and are read again as such."""
    if isinstance(value, Node):
        return value
    if isinstance(value, Mapping):
        return Node(0, {str(name): (0, written(item)) for name, item in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return Node(0, [written(item) for item in value])
    text = _text(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r} is not text in UTF-8") from None
    return Node(0, text)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone().isoformat()
    if isinstance(value, timedelta):
        return f"+{value.total_seconds():f}s"
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    if not isinstance(value, str | Number | PathLike):
        raise InputError(f"{type(value).__name__} cannot be written down: {value!r:.60}")
    return str(value)


def read(
    documents: Sequence[Field], caller: Recipe, names: Mapping[str, str], file: str | None = None
) -> list[Submission]:
    """The jobs; where an option is wrong, it is called as the user called it."""
    try:
        return submissions(documents, caller, Present(time.time(), LOCAL), file)
    except InputError as error:
        if error.line is None and error.field:
            name, dot, rest = error.field.partition(".")
            error.file, error.field = None, names.get(name, name) + dot + rest
        raise


__all__: Final = ["read", "written"]

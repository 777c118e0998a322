"""How a job is to be run, as its file says it: the fields that become a Recipe."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from bough.core.units import parse_duration, parse_size, shown
from bough.located import Field
from bough.records import Recipe

PATH_MAX: Final = 4096
LOG_MIN: Final = 64 * 1024
GRACE_MAX_SECONDS: Final = 86_400.0


def merged(given: Mapping[str, Any], caller: Recipe) -> Recipe:
    """The caller's, with what was written."""
    found = dict(given)
    if "cwd" in found:
        found["cwd"] = os.path.normpath(os.path.join(caller.cwd, os.path.expanduser(found["cwd"])))
    if "env" in found:
        found["env"] = caller.env | found["env"]
    return msgspec.structs.replace(caller, **found)


def _environment(field: Field) -> dict[str, str]:
    """Variables by name; one that is left empty is empty."""
    found = {}
    for name, value in field.entries().items():
        text = "" if value.empty else value.text()
        if not name or "=" in name or "\0" in name + text:
            raise value.error("cannot be a variable: a name has no '=', and nothing has a NUL")
        found[name] = text
    return found


def _path(field: Field) -> str:
    """A directory."""
    path = field.text()
    if not path.strip() or "\0" in path or len(path) > PATH_MAX:
        raise field.error(f"{shown(path)} is not the name of a directory")
    return path


def _log_size(field: Field) -> int:
    size = field.read(parse_size)
    if size < LOG_MIN:
        raise field.error("must be at least 64KiB")
    return size


def _grace(field: Field) -> float:
    seconds = field.read(parse_duration)
    if seconds > GRACE_MAX_SECONDS:
        raise field.error("must be a day or less")
    return seconds


#: Field of a job: the field of Recipe it becomes, and what reads it.
RECIPE: Final[dict[str, tuple[str, Callable[[Field], Any]]]] = {
    "cwd": ("cwd", _path),
    "env": ("env", _environment),
    "launch": ("launch", lambda field: field.choice(("each", "one"))),
    "grace": ("grace_seconds", _grace),
    "park": ("park", lambda field: field.choice(("stop", "signal"))),
    "log_max": ("log_bytes_max", _log_size),
}

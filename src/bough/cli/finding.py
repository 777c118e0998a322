"""What a look at the installation finds: sound, to be looked at, or broken; and what to do."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """One line of `bough doctor`."""

    #: What was looked at.
    about: str
    verdict: Literal["ok", "warn", "fail"]  #: It works, could be better, or is broken.
    #: What was seen.
    text: str
    #: How to put it right; empty where there is nothing to be done.
    todo: str = ""


def ok(about: str, text: str) -> Finding:
    return Finding(about, "ok", text)


def warn(about: str, text: str, todo: str = "") -> Finding:
    return Finding(about, "warn", text, todo)


def fail(about: str, text: str, todo: str) -> Finding:
    return Finding(about, "fail", text, todo)

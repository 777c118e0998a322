"""Every trace format there is a reader for, and how each is recognised by its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bough.errors import InputError
from bough.sim.formats import elasticflow, muri, own
from bough.sim.trace import Reading, Source, Trace


@dataclass(frozen=True)
class Format:
    """A family of files that one reader understands."""

    #: Where such traces come from, in a line.
    title: str
    recognises: Callable[[Source], bool]
    read: Callable[[Source, Reading], Trace]


#: By name, the most particular first: the first that recognises a file reads it.
FORMATS: dict[str, Format] = {
    "bough": Format("bough's own JSON lines", own.recognises, own.read),
    "elasticflow": Format("ElasticFlow, Microsoft ITP", elasticflow.recognises, elasticflow.read),
    "muri": Format("Muri and Tiresias", muri.recognises, muri.read),
}


def recognise(source: Source) -> str:
    """The format whose columns the file has."""
    if not source.path.is_dir() and not source.text.strip():
        raise InputError("is empty", file=source.file)
    for name, format in FORMATS.items():
        if format.recognises(source):
            return name
    first = source.text.lstrip().split("\n", 1)[0][:60]
    raise InputError(
        f"is of no known trace format: it begins {first!r}",
        file=source.file,
        hint=f"name it with --format: {', '.join(FORMATS)}",
    )

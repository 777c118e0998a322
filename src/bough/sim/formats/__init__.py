"""Every trace format there is a reader for, and how each is recognised by its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bough.errors import InputError
from bough.sim.formats import (
    chronus,
    elasticflow,
    gavel,
    helios,
    muri,
    openb,
    own,
    pai,
    philly,
    pollux,
    sacct,
    synergy,
)
from bough.sim.formats.rows import shown
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
    "chronus": Format("Chronus", chronus.recognises, chronus.read),
    "muri": Format("Muri, Tiresias", muri.recognises, muri.read),
    "gavel": Format("Gavel, Shockwave", gavel.recognises, gavel.read),
    "pollux": Format("Pollux, Sia", pollux.recognises, pollux.read),
    "philly": Format("Microsoft Philly", philly.recognises, philly.read),
    "helios": Format("SenseTime Helios, Lucid", helios.recognises, helios.read),
    "pai": Format("Alibaba PAI 2020, GAIA", pai.recognises, pai.read),
    "openb": Format("Alibaba 2023 (openb)", openb.recognises, openb.read),
    "sacct": Format("Slurm's sacct --parsable2", sacct.recognises, sacct.read),
    "synergy": Format("Synergy", synergy.recognises, synergy.read),
}


def recognise(source: Source) -> str:
    """The format whose columns the file has."""
    if not source.path.is_dir() and not source.text.strip():
        raise InputError("is empty", file=source.file)
    for name, format in FORMATS.items():
        if format.recognises(source):
            return name
    if source.path.is_dir():
        raise InputError(f"is a folder without {pai.TASK_TABLE}", file=source.file)
    raise InputError(
        f"is of no known trace format: it begins {shown(source.first)}",
        file=source.file,
        hint=f"name it with --format: {', '.join(FORMATS)}",
    )

"""Which job of a file waits for which: names are unique, and no circle of jobs waits for itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from bough.core.model import After, JobSpec
from bough.core.units import shown
from bough.located import Field

#: What was written, and the jobs it became (several if it is an array).
Written = tuple[Field, list[JobSpec]]
#: In one file, each job times the jobs it waits for.
WAITS_MAX: Final = 1_000_000


def resolve(written: Sequence[Written]) -> list[JobSpec]:
    """All jobs; those that wait for an array wait for each of its members.

    InputError if two jobs have one name, or if jobs of the file wait for each other. A name that
    is not in the file may be that of a job submitted before; only the scheduler can tell.
    """
    owner = _owners(written)
    waits = [
        sorted({owner[after.job] for after in jobs[0].after if after.job in owner})
        for _, jobs in written
    ]
    if circle := _circle(waits):
        names = [_name(written[index][1]) for index in (*circle, circle[0])]
        field = written[circle[0]][0].entries()["after"]
        raise field.error(f"jobs wait for each other: {_chain(names)}")
    arrays = {_name(jobs): jobs for _, jobs in written if jobs[0].array_of}
    resolved: list[JobSpec] = []
    total = 0
    for field, jobs in written:
        after = _members(jobs[0].after, arrays)
        total += len(after) * len(jobs)
        if total > WAITS_MAX:
            raise field.entries()["after"].error(f"brings the file over {WAITS_MAX} waits")
        changed = after != jobs[0].after
        resolved += [msgspec.structs.replace(j, after=after) for j in jobs] if changed else jobs
    return resolved


def _owners(written: Sequence[Written]) -> dict[str, int]:
    """Name of a job or array -> which of the written ones it belongs to."""
    owner: dict[str, int] = {}
    for index, (field, jobs) in enumerate(written):
        for name in {_name(jobs), *(job.name for job in jobs)}:
            if name in owner:
                line = written[owner[name]][0].node.line
                raise field.error(f"a job called {shown(name)} begins on line {line} already")
            owner[name] = index
    return owner


def _members(after: tuple[After, ...], arrays: dict[str, list[JobSpec]]) -> tuple[After, ...]:
    """The same with each array replaced by its members."""
    return tuple(
        one
        for a in after
        for one in (
            (After(job=job.name, on=a.on) for job in arrays[a.job]) if a.job in arrays else (a,)
        )
    )


def _name(jobs: Sequence[JobSpec]) -> str:
    """The name that was written."""
    return jobs[0].array_of or jobs[0].name


def _circle(waits: Sequence[Sequence[int]]) -> list[int]:
    """Jobs each of which waits for the next and the last for the first; empty if there are none."""
    fresh, open_, done = 0, 1, 2
    state = [fresh] * len(waits)
    for start in range(len(waits)):
        path: list[int] = []
        ahead = [start] if state[start] == fresh else []
        while ahead:
            at = ahead[-1]
            if state[at] == fresh:
                state[at] = open_
                path.append(at)
                for other in waits[at]:
                    if state[other] == open_:
                        return path[path.index(other) :]
                ahead += [other for other in waits[at] if state[other] == fresh]
            else:
                ahead.pop()
                if path and path[-1] == at:
                    path.pop()
                    state[at] = done
    return []


def _chain(names: Sequence[str]) -> str:
    short = [*names[:4], "…", names[-1]] if len(names) > 6 else names
    return " after ".join(short)

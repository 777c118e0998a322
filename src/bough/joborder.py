"""Which job of a file waits for which: names are unique, and no circle of jobs waits for itself."""

from __future__ import annotations

from collections.abc import Sequence

from bough.core.model import JobSpec
from bough.core.units import shown
from bough.located import Field


def check_order(written: Sequence[tuple[Field, Sequence[JobSpec]]]) -> None:
    """InputError if two jobs have one name, or if jobs of the file wait for each other.

    Each entry is what was written and the jobs it became. A name that is not in the file may be
    that of a job submitted before; whether it is, only the scheduler can tell.
    """
    owner: dict[str, int] = {}
    for index, (field, jobs) in enumerate(written):
        for name in {job.array_of or job.name for job in jobs} | {job.name for job in jobs}:
            if name in owner:
                other = written[owner[name]][0].node.line
                raise field.error(f"a job called {shown(name)} begins on line {other} already")
            owner[name] = index
    waits = [
        sorted({owner[after.job] for after in jobs[0].after if after.job in owner})
        for _, jobs in written
    ]
    circle = _circle(waits)
    if circle:
        field, jobs = written[circle[0]]
        names = [written[i][1][0].array_of or written[i][1][0].name for i in (*circle, circle[0])]
        raise field.entries()["after"].error(f"jobs wait for each other: {_chain(names)}")


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

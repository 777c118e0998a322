"""An array as a whole: how many of its jobs are where, and each of them on a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bough.cli.grid import bare, wrapped
from bough.cli.ls import Listing, Wanted
from bough.cli.ls import render as table

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.records import JobRecord


def render(jobs: Sequence[JobRecord], look: Look) -> list[str]:
    """Its jobs in the order of their numbers."""
    first = jobs[0]
    number, name = first.id.partition(".")[0], bare(first.array_of)
    states = Counter("parked" if job.held else job.state for job in jobs)
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    head = f"Array {number}  {name}  {len(jobs)} jobs: {counts}"
    lines = [look.paint(line, "name") for line in wrapped(head, look.width)]
    lines += table(Listing(jobs, Wanted(user=first.user)), look)
    if look.people:
        lines += ["", look.paint(f"bough show {first.id}", "type") + " shows one of them."]
    return lines

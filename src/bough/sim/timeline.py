"""Who held which devices when, as rectangles small in number, for the report's chart of devices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from bough.core.model import Place
from bough.sim.record import JobRecord

#: Job number of a span that stands for several short ones.
SEVERAL = -1
#: Spans below this share of the run are merged first: no screen shows them apart.
NARROW = 1 / 4000


class Span(NamedTuple):
    """One job on neighbouring rows for a while."""

    row: int
    rows: int
    begin: float
    end: float
    job: int


class Rows:
    """The devices that are drawn, one row each, node after node."""

    def __init__(self, nodes: list[tuple[str, int]]) -> None:
        #: (name, devices), from the top.
        self.nodes = nodes
        self.first: dict[str, int] = {}
        self.count = 0
        for name, devices in nodes:
            self.first[name] = self.count
            self.count += devices

    def blocks(self, place: Place) -> Iterator[tuple[int, int]]:
        """The place's devices that are drawn, as (first row, neighbouring rows)."""
        held = sorted(
            self.first[name] + device
            for name, devices in place
            if name in self.first
            for device in devices
        )
        for _, block in groupby(enumerate(held), lambda item: item[1] - item[0]):
            rows = [row for _, row in block]
            yield rows[0], len(rows)


def choose_rows(names: Sequence[str], devices: Sequence[int], limit: int) -> Rows:
    """All nodes, or of a large cluster whole nodes at even distances; at least one."""
    nodes = list(zip(names, devices, strict=True))
    total = sum(devices)
    if total <= limit:
        return Rows(nodes)
    count = max(min(len(nodes), limit * len(nodes) // total), 1)
    return Rows([nodes[i * len(nodes) // count] for i in range(count)])


def spans(jobs: Sequence[JobRecord], rows: Rows, until: float) -> Iterator[Span]:
    """Every stay of every job on the chosen rows."""
    for number, job in enumerate(jobs):
        last = until if math.isnan(job.end) else job.end
        ends = [*(when for when, _ in job.places[1:]), last]
        for (begin, place), end in zip(job.places, ends, strict=False):
            if end > begin:
                for row, count in rows.blocks(place):
                    yield Span(row, count, begin, end, number)


def coalesce(found: list[Span], seconds: float, limit: int) -> list[Span]:
    """Merge short neighbours on each row until so few are left; what is long stays as it is."""
    narrow = seconds * NARROW
    merged = found
    while len(merged) > limit and narrow <= seconds:
        merged = _merge(found, narrow)
        narrow *= 2
    return merged


def _merge(found: list[Span], narrow: float) -> list[Span]:
    """Spans shorter than `narrow`, and no further apart than that, become one on their row."""
    wide = [span for span in found if span.end - span.begin >= narrow]
    short = sorted(
        Span(row, 1, span.begin, span.end, span.job)
        for span in found
        if span.end - span.begin < narrow
        for row in range(span.row, span.row + span.rows)
    )
    merged: list[Span] = []
    for span in short:
        last = merged[-1] if merged else None
        if last and last.row == span.row and span.begin - last.end < narrow:
            job = last.job if last.job == span.job else SEVERAL
            merged[-1] = Span(last.row, 1, last.begin, max(last.end, span.end), job)
        else:
            merged.append(span)
    return wide + merged

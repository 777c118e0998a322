"""HiveD: each queue owns cells, not numbers; what it does not use, others use until it asks."""

from __future__ import annotations

import msgspec
import numpy as np

from bough.core.cells import Cells, cells_of, power_above
from bough.core.policy import Ints, Plan, Policy, View
from bough.core.share import fill_in_order, in_order


class Hived(Policy, frozen=True):
    """A queue's jobs have what fits into its cells at once; others run on what that leaves idle.

    Citation: Zhao et al., "HiveD: sharing a GPU cluster for deep learning with guarantees",
    OSDI '20, sections 3 and 4.
    Faithful: a queue (virtual cluster) owns cells, which are blocks of devices near each other; a
    job takes the smallest free cell of its queue that holds it, halved as needed (buddy
    allocation), by priority, then submission; one with a priority below 0 is opportunistic: it
    runs on devices that no guarantee needs now, and gives way at once; who loses its cell to a
    higher priority of its queue is not stopped but goes on as opportunistic while devices are
    idle. A gang that fits into its queue's cells has a whole place at once, whatever the others
    run.
    Ours: cells are counted, and bound to devices only by where jobs are; what is in the way of a
    larger cell moves (stops, and starts on what is left), opportunistic jobs first, then smaller
    cells, so that a whole place is found without binding cells beforehand. Cells are given by
    queue (`cells`), else made of the queue's guarantee: whole nodes and halves of one. Jobs that
    find no cell run as opportunistic until there is one (`spill`). Elastic jobs take the largest
    size that fits. Pinned cells are left out.
    """

    scope = "pool"

    #: Cells of queues, as {"vision": [8, 8, 4]}; of others, what their guarantee makes up.
    cells: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    #: Devices of the largest cell, usually of a node; larger gangs take several.
    node_devices: int = 8
    #: Jobs that find no cell may run on idle devices until there is one.
    spill: bool = True

    def __post_init__(self) -> None:
        for queue, cells in self.cells.items():
            if not all(cell > 0 and power_above(cell) == cell for cell in cells):
                raise ValueError(f"cells of {queue} must be powers of two")
        if self.node_devices < 1 or power_above(self.node_devices) != self.node_devices:
            raise ValueError("node_devices must be a power of two")

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        owned = [Cells(self._owned(view, q), self.node_devices) for q in range(count_queues(view))]
        claims = np.zeros(jobs.n, np.int64)
        for row in in_order(view, -jobs.priority).tolist():
            if jobs.priority[row] >= 0:
                claims[row] = self._claim(view, row, owned[int(jobs.queue[row])])
        most = np.maximum(np.minimum(jobs.wish, jobs.hi), jobs.lo)
        runs = jobs.size > 0
        most[claims > 0] = claims[claims > 0]
        line = in_order(view, claims == 0, ~runs & (claims == 0), -jobs.priority)
        able = (claims > 0) | (jobs.priority < 0) | (jobs.must != 0) | self.spill
        most[~able] = 0
        sizes = fill_in_order(view, line[able[line]], most)
        level = np.ceil(np.log2(np.maximum(claims, 1))).astype(np.int64) + 1
        rank = np.where(claims > 0, level, 0)
        return Plan(np.where(sizes > 0, sizes, most), order=line, rank=rank)

    def _owned(self, view: View, queue: int) -> list[int]:
        """The cells of a queue; without queues, everything is one's."""
        if not view.queues:
            return cells_of(view.devices, self.node_devices)
        share = view.queues[queue]
        if share.name in self.cells:
            return list(self.cells[share.name])
        return cells_of(min(share.guarantee, view.devices), self.node_devices)

    def _claim(self, view: View, row: int, cells: Cells) -> int:
        """The size with which a job fits into its queue's cells, the wished one first; 0: none."""
        jobs = view.jobs
        lo = int(jobs.lo[row])
        most = max(min(int(jobs.wish[row]), int(jobs.hi[row])), lo)
        if jobs.must[row]:
            most = int(jobs.size[row])
        allowed: Ints = view.classes.sizes[jobs.cls[row]]
        fitting = [size for size in dict.fromkeys(allowed[::-1].tolist()) if lo <= size <= most]
        return next((size for size in fitting if size and cells.take(size)), 0)


def count_queues(view: View) -> int:
    """How many queues the rows tell apart."""
    return max(len(view.queues), int(view.jobs.queue.max(initial=0)) + 1)

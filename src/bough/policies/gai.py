"""GAI: classes of priority, jobs on the best they can have, no fast device behind a slow link."""

from __future__ import annotations

import numpy as np

from bough.core.links import reach
from bough.core.model import INFINITY
from bough.core.policy import Bools, Floats, Ints, Plan, Policy, View
from bough.core.share import fit_in_order, in_order
from bough.core.yielding import yielding

#: A moment this close has come: sums of times are rounded.
SLACK_SECONDS = 1e-6
HOUR = 3600.0


class Gai(Policy, frozen=True):
    """Higher classes first; jobs degrade before they wait, and yield where that loses least.

    Citation: Gao, Ren and Cai, "GAI: a centralized tree-based scheduler for machine learning
    workload in large shared clusters", ICA3PP '18. **A reconstruction**: only the abstract and the
    introduction are public, which name the ideas and not the rules.
    Faithful: to these ideas. The cluster is a tree whose inner nodes know what is free below them,
    and a search leaves out what cannot hold the gang (core/levels.py, core/search.py); priority
    has several dimensions; jobs of low priority get less, or are preempted, for those of high;
    GPU training is held up by the network sooner than CPU training, its shortest board.
    Ours: all rules. Classes are the priorities of jobs, and none passes a higher one; within a
    class, waiting, weight, an approaching deadline and a small size are added up, each in the
    seconds of waiting it is worth. A job takes the largest size it can have, down to its least
    (kinds and the width of places degrade in the core); it goes up again when devices are idle
    and it has not changed for a while. Who is of a lower class shrinks or is stopped, whichever
    costs fewest seconds of devices in sum, and only if that surely suffices. A size is ruled out
    on places where a step waits longer for the network than it computes; models whose traffic is
    not known go anywhere.
    """

    surveys = True

    #: Seconds of waiting that a doubled weight is worth.
    weight_seconds: float = HOUR
    #: Seconds of waiting that a deadline without any slack left is worth.
    deadline_seconds: float = HOUR
    #: Seconds of waiting that a halved size is worth.
    size_seconds: float = 600.0
    #: How long a step may wait for the network, in times of what it computes.
    board: float = 1.0
    #: A job grows when it has not changed for so long.
    promote_seconds: float = 300.0
    #: What a restart is believed to cost each device.
    restart_seconds: float = 60.0
    #: What a change of size is believed to cost each device.
    resize_seconds: float = 5.0

    def __post_init__(self) -> None:
        if not (self.board > 0 and self.promote_seconds > 0):
            raise ValueError("board and promote_seconds must be positive")
        if not (self.restart_seconds >= 0 and self.resize_seconds >= 0):
            raise ValueError("restart_seconds and resize_seconds must be 0 or more")

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        allowed, spans = self._boards(view)
        runs = jobs.size > 0
        granted = np.where(runs, np.clip(jobs.size, jobs.lo, jobs.hi), 0)
        line = in_order(view, -jobs.priority, ~runs, -self.score(view))
        free = view.devices - int(granted.sum())
        if free < 0:  # devices were lost
            granted = fit_in_order(granted, view.devices, line[granted[line] > 0], skip=True)
            free = view.devices - int(granted.sum())
        for row in line[granted[line] == 0].tolist():
            free = self._serve(view, row, allowed[row], granted, free)
        wake_at = self._promote(view, line, allowed, granted, free)
        served = granted[line] > 0
        within = np.full(jobs.n, -1)
        rows, steps = (granted[:, None] == view.classes.sizes[jobs.cls]).nonzero()
        within[rows] = spans[rows, steps]
        within[granted == 0] = -1
        order = np.concatenate([line[served], line[~served]])
        sizes = np.where(granted > 0, granted, jobs.lo)
        return Plan(sizes, order=order, within=within, wake_at=wake_at)

    def score(self, view: View) -> Floats:
        """What each job has to show within its class, in seconds of waiting."""
        jobs = view.jobs
        urgent = np.zeros(jobs.n)
        due = (jobs.deadline < INFINITY).nonzero()[0]
        left = jobs.left_or_guess()[due] / jobs.wish_speed[due]
        slack = np.maximum(jobs.deadline[due] - view.now, 0.0) - left
        span = np.maximum(jobs.deadline[due] - jobs.submitted[due], 1e-9)
        urgent[due] = 1.0 - np.clip(slack / span, 0.0, 1.0)
        small = -np.log2(np.maximum(jobs.wish, 1))
        found: Floats = np.maximum(view.now - jobs.submitted, 0.0)
        found += self.weight_seconds * np.log2(np.maximum(jobs.weight, 1e-9))
        return found + self.deadline_seconds * urgent + self.size_seconds * small

    def _boards(self, view: View) -> tuple[Bools, Ints]:
        """Which sizes (by the steps of its class) each row may have, and the level for each.

        The least may go anywhere: nobody waits for a network that is not there.
        """
        jobs = view.jobs
        sizes = view.classes.sizes[jobs.cls]
        allowed = (sizes >= jobs.lo[:, None]) & (sizes <= jobs.hi[:, None]) & (sizes > 0)
        wish = np.maximum(np.minimum(jobs.wish, jobs.hi), jobs.lo)
        allowed &= sizes <= wish[:, None]
        spans = np.full(sizes.shape, -1)
        if view.links is not None and len(view.links.bytes):
            top = len(view.links.names) - 1
            far = reach(view.links, sizes, self.board)
            holds = (far >= 0) & (view.links.most[np.maximum(far, 0)] >= sizes)
            least = sizes == jobs.lo[:, None]
            allowed &= holds | least
            spans = np.where(holds & (far < top), far, -1)
        return allowed, spans

    def _serve(self, view: View, row: int, allowed: Bools, granted: Ints, free: int) -> int:
        """The largest size a waiting job can have, at the cost of lower classes; what is free."""
        jobs = view.jobs
        lower = (granted > 0) & (jobs.priority < jobs.priority[row]) & (jobs.must == 0)
        lower &= jobs.size > 0
        there = free + (int(granted[lower].sum()) if lower.any() else 0)
        sizes = view.classes.sizes[jobs.cls[row]][allowed]
        sizes = sizes[sizes <= there]
        if not len(sizes):
            return free
        size = int(sizes.max())
        if size > free:
            prices = self.restart_seconds, self.resize_seconds
            for victim, kept in yielding(view, lower.nonzero()[0], granted, size - free, prices):
                free += int(granted[victim]) - kept
                granted[victim] = kept
        granted[row] = size
        return free - size

    def _promote(self, view: View, line: Ints, allowed: Bools, granted: Ints, free: int) -> float:
        """Jobs go up again that have long had less than they want; when the next could."""
        jobs, moments = view.jobs, [INFINITY]
        for row in line.tolist():
            if not granted[row] or jobs.size[row] == 0 or free <= 0:
                continue
            own = view.classes.sizes[jobs.cls[row]][allowed[row]]
            more = own[(own > granted[row]) & (own <= granted[row] + free)]
            if not len(more) or granted[row] != jobs.size[row]:
                continue
            at = float(jobs.since[row]) + self.promote_seconds
            if at - SLACK_SECONDS <= view.now:
                free -= int(more.max()) - int(granted[row])
                granted[row] = more.max()
            else:
                moments.append(at)
        return min(moments)

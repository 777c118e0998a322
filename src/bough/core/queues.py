"""The tenancy tree: who may use how many devices, what is lent and taken back, and what is spent.

Entitlements are a function of demand, history and the clock alone: a guarantee that is not asked
for is lent by not being claimed, and reclaimed by being claimed again. Within a queue devices go
first to what may not be taken (floor), then to guarantees, then by weight (docs/queues.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from bough.core.apportion import apportion
from bough.core.model import INFINITY, Queue
from bough.core.queue_checks import check_numbers, check_parent, check_way_up, promise
from bough.core.queue_records import Binding, QueueState, Steps, TreeState

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DEFAULT = "default"
ROOT = -1
HOUR_SECONDS = 3600.0
#: History counts as if every queue had used its share for this part of the half-life before, so
#: that the first minutes of a cluster do not decide its first hours.
CALM = 0.1
#: A queue counts as at most this many times over its share, so that its weight never falls below
#: an eighth: it is slowed, not starved.
OVER_MAX = 4.0


class QueueTree:
    """Queues by index; the root has no name and no limits. "default" is always there, at 0."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.trivial = True
        self._queues: list[Queue] = []
        self._index: dict[str, int] = {}
        self._history: list[float] = []
        self._spent: list[float] = []
        self._used: list[int] = []
        self._parent: list[int] = []
        self._children: list[list[int]] = []
        self._tops: list[int] = []
        self._downwards: list[int] = []
        self._guarantee: list[int] = []
        self._charged_at: float | None = None
        self._append(Queue(name=DEFAULT))

    # ------------------------------------------------------------------------- the tree

    def set(self, queue: Queue) -> None:
        """Make a queue or change it; ValueError when the tree would not make sense."""
        check_numbers(queue)
        check_parent(queue, self._index)
        i = self._index.get(queue.name)
        if i is None:
            self._append(queue)
            return
        before = self._queues[i]
        check_way_up(queue, {q.name: q for q in self._queues})
        self._queues[i] = queue
        try:
            self._arrange()
        except ValueError:
            self._queues[i] = before
            self._arrange()
            raise
        if queue.budget_device_hours != before.budget_device_hours:
            self._spent[i] = 0.0  # a new budget begins now

    def index(self, name: str) -> int:
        """The queue's number; a name not seen before becomes a queue of the root."""
        found = self._index.get(name)
        if found is None:
            self.set(Queue(name=name))
            found = self._index[name]
        return found

    def _append(self, queue: Queue) -> None:
        """A new queue at the end; costs as much as the tree is deep."""
        parent = self._index[queue.parent] if queue.parent else ROOT
        i = child = len(self.names)
        promised = {i: promise(queue, 0)}
        above = parent
        while above != ROOT:  # prove first, change afterwards
            below = sum(self._guarantee[c] for c in self._children[above] if c != child)
            promised[above] = promise(self._queues[above], below + promised[child])
            child, above = above, self._parent[above]
        self._index[queue.name] = i
        self.names.append(queue.name)
        self._queues.append(queue)
        self._history.append(0.0)
        self._spent.append(0.0)
        self._used.append(0)
        self._parent.append(parent)
        self._children.append([])
        (self._tops if parent == ROOT else self._children[parent]).append(i)
        self._downwards.append(i)
        self._guarantee.append(0)
        for j, devices in promised.items():
            self._guarantee[j] = devices
        self.trivial = i == 0 and not _restricted(queue)

    def _arrange(self) -> None:
        """Children, an order from the top to the leaves, and the guarantees that follow."""
        count = len(self.names)
        self._parent = [self._index[q.parent] if q.parent else ROOT for q in self._queues]
        self._children = [[] for _ in range(count)]
        self._tops = []
        for i, parent in enumerate(self._parent):
            (self._tops if parent == ROOT else self._children[parent]).append(i)
        self._downwards = list(self._tops)
        for i in self._downwards:  # grows while it is walked
            self._downwards += self._children[i]
        self._guarantee = [0] * count
        for i in reversed(self._downwards):
            below = sum(self._guarantee[c] for c in self._children[i])
            self._guarantee[i] = promise(self._queues[i], below)
        self.trivial = count == 1 and not _restricted(self._queues[0])

    def get(self, index: int) -> Queue:
        """How the queue was set."""
        return self._queues[index]

    def weight(self, index: int) -> float:
        """Its share among siblings."""
        return self._queues[index].weight

    # --------------------------------------------------------------------- entitlements

    def entitle(
        self,
        now: float,
        pool: str,
        capacity: int,
        demand: Ints,
        floor: Ints,
        elsewhere: Ints | None = None,
        takes: Floats | None = None,
    ) -> Ints:
        """Devices of a pool each queue's own jobs may hold now, by queue index.

        `floor` is what may not be taken from them. `elsewhere` is what they hold in other pools:
        it counts against limits and guarantees, which are for all pools together. `takes`, where
        queues count by what they use most, is what their jobs take of each resource with a device
        (View.takes): no more is handed out then than there is of any.
        """
        other = [0] * len(self.names) if elsewhere is None else self._sums(elsewhere)
        steps = self._steps(pool, demand, floor, other)
        own = self._divide(now, capacity, capacity, steps)
        if takes is None:
            return own
        steps = steps._replace(counts=self._counts(takes, demand))

        def enough(devices: int) -> bool:
            own = self._divide(now, capacity, devices, steps)
            return bool((own @ takes <= capacity * (1 + 1e-9)).all())

        least, most = 0, capacity + 1
        while most - least > 1:
            middle = (least + most) // 2 if most <= capacity else capacity
            least, most = (middle, most) if enough(middle) else (least, middle)
        return self._divide(now, capacity, least, steps)

    def _steps(self, pool: str, demand: Ints, floor: Ints, elsewhere: list[int]) -> Steps:
        """What each queue may not lose, may claim and may have at most, with all below it."""
        own = list(zip(floor.tolist(), np.maximum(demand, floor).tolist(), strict=True))
        floors, bounds = [locked for locked, _ in own], [most for _, most in own]
        claims, ahead = floors[:], [0] * len(own)
        for i in reversed(self._downwards):
            for c in self._children[i]:
                floors[i] += floors[c]
                bounds[i] += bounds[c]
                claims[i] += claims[c]
            bounds[i] = max(floors[i], min(bounds[i], self._ceiling(i, pool, elsewhere[i])))
            guaranteed = self._guarantee[i] - elsewhere[i]
            claims[i] = min(bounds[i], max(guaranteed, claims[i]))
            ahead[i] = claims[i] - max(min(bounds[i], guaranteed), 0)
        return Steps(floors, claims, bounds, ahead, own, [1.0] * len(own))

    def _divide(self, now: float, capacity: int, devices: int, steps: Steps) -> Ints:
        """So many of the devices, from the top of the tree downwards; each queue's own part."""
        given = [0] * len(self.names)
        own = np.zeros(len(given), np.int64)
        self._share_out(now, capacity, devices, self._tops, steps, given)
        for i in self._downwards:
            children = self._children[i]
            if not children:
                own[i] = given[i]
                continue
            locked, most = steps.own[i]
            mine = (locked, locked, most, locked)
            own[i] = self._share_out(now, capacity, given[i], children, steps, given, mine)
        return own

    def _share_out(
        self,
        now: float,
        capacity: int,
        devices: int,
        children: Sequence[int],
        steps: Steps,
        given: list[int],
        mine: tuple[int, int, int, int] = (0, 0, 0, 0),
    ) -> int:
        """Divide a queue's devices: floors, then guarantees, then the rest by weight.

        What a floor takes beyond the guarantee counts as had when the rest is divided.
        The queue's own jobs stand beside its children with weight 1; returns their part.
        """
        bounds = steps.bounds
        asking = [c for c in children if bounds[c]]
        if mine[2] + sum(bounds[c] for c in asking) <= devices:
            for c in asking:
                given[c] = bounds[c]
            return mine[2]
        got = [0] * (len(asking) + 1)
        for step, own in ((steps.floors, mine[0]), (steps.claims, mine[1])):
            top = list(map(max, got, [*(step[c] for c in asking), own]))
            if top != got:
                got = apportion(devices - sum(got), got, top, top)
        top = list(map(max, got, [*(bounds[c] for c in asking), mine[2]]))
        if top != got:
            pull = self._pull(now, asking, capacity)
            counts = steps.counts
            weight = [*(w / counts[c] for w, c in zip(pull, asking, strict=True)), 1.0]
            ahead = [*(steps.ahead[c] for c in asking), mine[3]]
            got = apportion(devices - sum(got), got, top, weight, ahead)
        for c, part in zip(asking, got, strict=False):
            given[c] = part
        return got[-1]

    def _ceiling(self, i: int, pool: str, elsewhere: int) -> int:
        """The most a queue may hold of a pool by its own rules."""
        found = self._ceilings(i, pool, elsewhere)
        return min((b.devices for b in found), default=1 << 62)

    def _ceilings(self, i: int, pool: str, elsewhere: int) -> list[Binding]:
        queue, name = self._queues[i], self.names[i]
        found = []
        if queue.paused:
            found.append(Binding(name, "paused", 0))
        if self._overspent(i):
            found.append(Binding(name, "budget", 0))
        if queue.limit is not None:
            found.append(Binding(name, "limit", max(0, queue.limit - elsewhere)))
        if pool in queue.kind_limits:
            found.append(Binding(name, "kind-limit", queue.kind_limits[pool]))
        if not queue.borrow:
            found.append(Binding(name, "guarantee", max(0, self._guarantee[i] - elsewhere)))
        return found

    def binding(self, index: int, pool: str, elsewhere: Ints | None = None) -> Binding | None:
        """The tightest rule on the way from a queue to the root; None when there is none."""
        other = [0] * len(self.names) if elsewhere is None else self._sums(elsewhere)
        found: list[Binding] = []
        while index != ROOT:
            found += self._ceilings(index, pool, other[index])
            index = self._parent[index]
        return min(found, key=lambda b: b.devices, default=None)

    def broken_by(
        self, index: int, pool: str, used: Ints, more: int, elsewhere: Ints | None = None
    ) -> Binding | None:
        """The rule on the way to the root that so many devices more of a pool would break."""
        other = [0] * len(self.names) if elsewhere is None else self._sums(elsewhere)
        have = self._sums(used)
        while index != ROOT:
            for rule in self._ceilings(index, pool, other[index]):
                if have[index] + more > rule.devices:
                    return rule
            index = self._parent[index]
        return None

    def with_those_below(self, name: str, used: Ints) -> int:
        """Devices that a queue's jobs hold with all jobs below it."""
        return int(self._sums(used)[self._index[name]])

    def _pull(self, now: float, asking: Sequence[int], capacity: int) -> list[float]:
        """Weights of siblings, less for those that used more than their share of the past.

        Halved for each time its share that a queue was above it, doubled for being below: the
        fair-share factor of Slurm, 2 ** -(use / share), among the queues that ask.
        """
        weight = [self._queues[c].weight for c in asking]
        past = [self._decayed(c, now) for c in asking]
        if not any(past):
            return weight
        half_lives = [self._queues[c].half_life_seconds for c in asking]
        counted = sum(w for w, h in zip(weight, half_lives, strict=True) if h)
        calm = CALM * max(half_lives) * capacity
        whole = calm + sum(past)
        pull = []
        for w, h, p in zip(weight, half_lives, past, strict=True):
            share = w / counted if h and w else 0.0
            over = (calm * share + p) / (whole * share) if share else 1.0
            pull.append(w * math.pow(2.0, 1.0 - min(over, OVER_MAX)))
        return pull

    # ------------------------------------------------------------------ history, budgets

    def charge(self, now: float, used: Ints) -> None:
        """Count what each queue's own jobs held from the last call until now."""
        seconds = 0.0 if self._charged_at is None else max(0.0, now - self._charged_at)
        self._charged_at = now if self._charged_at is None else max(now, self._charged_at)
        self._used = self._sums(used)
        for i, devices in enumerate(self._used):
            half_life = self._queues[i].half_life_seconds
            self._spent[i] += devices * seconds
            if half_life:
                kept = math.pow(0.5, seconds / half_life)
                mean_life = half_life / math.log(2)
                self._history[i] = self._history[i] * kept + devices * mean_life * (1 - kept)
            else:
                self._history[i] = 0.0

    def history(self, now: float) -> Floats:
        """Decayed device-seconds of every queue and all below it."""
        return np.array([self._decayed(i, now) for i in range(len(self.names))])

    def budget_left(self, index: int) -> float:
        """Device-hours the queue may still use."""
        left = self._queues[index].budget_device_hours - self._spent[index] / HOUR_SECONDS
        return max(0.0, left)

    def next_change(self, now: float, used: Ints | None = None) -> float:
        """When the first budget runs out if use stays (as told, or as in the last charge)."""
        held = self._used if used is None else self._sums(used)
        soonest = INFINITY
        for i, devices in enumerate(held):
            left = self.budget_left(i)
            if devices and 0 < left < INFINITY:
                soonest = min(soonest, now + left * HOUR_SECONDS / devices)
        return soonest

    def _decayed(self, i: int, now: float) -> float:
        half_life = self._queues[i].half_life_seconds
        if not half_life or self._charged_at is None:
            return 0.0
        return self._history[i] * math.pow(0.5, max(0.0, now - self._charged_at) / half_life)

    def _overspent(self, i: int) -> bool:
        budget = self._queues[i].budget_device_hours
        return budget < INFINITY and self._spent[i] >= budget * HOUR_SECONDS * (1 - 1e-12)

    def _sums(self, own: npt.NDArray[Any]) -> list[Any]:
        """Each queue's own number with those of all queues below it."""
        sums: list[Any] = own.tolist()
        for i in reversed(self._downwards):
            if self._parent[i] != ROOT:
                sums[self._parent[i]] += sums[i]
        return sums

    def _counts(self, takes: Floats, demand: Ints) -> list[float]:
        """What a device of each queue counts as: its part of the resource that is used most.

        Dividing by weight over this evens out dominant shares (Ghodsi et al., NSDI '11).
        """
        most = np.max([self._sums(part) for part in (takes * demand[:, None]).T], axis=0)
        counts = (most / np.maximum(self._sums(demand), 1)).tolist()
        pairs = zip(counts, self._queues, strict=True)
        return [max(count, 1.0) if queue.dominant else 1.0 for count, queue in pairs]

    # ------------------------------------------------------------------------- the rest

    def looks_at_resources(self) -> bool:
        """Whether some queue counts by another resource than devices."""
        return any(queue.dominant for queue in self._queues)

    def state(self) -> TreeState:
        """Everything remembered, as plain data."""
        kept = zip(self._queues, self._history, self._spent, strict=True)
        queues = tuple(QueueState(q, h, s) for q, h, s in kept)
        return TreeState(queues, tuple(self._used), self._charged_at)

    def restore(self, state: object) -> None:
        """Be as the tree was that gave this state, also after a way through JSON."""
        known = msgspec.convert(state, TreeState)
        self._queues = [kept.queue for kept in known.queues]
        self.names = [queue.name for queue in self._queues]
        self._index = {name: i for i, name in enumerate(self.names)}
        self._history = [kept.history for kept in known.queues]
        self._spent = [kept.spent for kept in known.queues]
        self._used, self._charged_at = list(known.used), known.charged_at
        self._arrange()


def _restricted(queue: Queue) -> bool:
    """Whether a queue may hold less than it asks for even when it is alone."""
    capped = queue.limit is not None or bool(queue.kind_limits) or not queue.borrow
    return capped or queue.paused or queue.budget_device_hours < INFINITY

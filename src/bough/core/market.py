"""Devices of the time to come at prices that rise with what is sold: who pays, and when.

An idle device costs little, the last one of a slot as much as anybody would pay; between, the
price grows exponentially with what is sold (Bao et al., INFOCOM '18), also within one sale. So
the cheapest way to do some work by some moment is to take steps (one size more in one slot) in
order of price for work, as steps of a slot get dearer one after another on the concave envelope
of the speeds; only the last step is not used in full.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bough.core.filling import Levels
from bough.core.model import INFINITY
from bough.core.policy import Floats, Ints

#: The first slot, and by how much each is longer than the one before: what is far off is planned
#: anew before it comes.
FIRST_SECONDS = 60.0
GROWTH = 1.12
SLOTS = 60
#: So many ends, evenly spread, are tried for each job.
ENDS = 16


@dataclass(slots=True, frozen=True)
class Asks:
    """What a job needs, and what it is worth to be done."""

    levels: Levels
    work: float
    #: Seconds from now in which it must be done.
    due: float
    #: Its worth if it were done at once, and how that falls: seconds it waited, and from its
    #: submission to its deadline.
    worth: float
    age: float
    span: float
    steep: float

    def worth_at(self, seconds: Floats) -> Floats:
        """What it is worth to be done so many seconds from now: a sigmoid around its deadline."""
        late = self.steep * ((self.age + seconds) / max(self.span, 1e-9) - 1.0)
        fall = (1.0 + np.exp(-self.steep)) / (1.0 + np.exp(np.minimum(late, 50.0)))
        found: Floats = self.worth * fall
        return found


@dataclass(slots=True, frozen=True)
class Offer:
    """The best a job can have at these prices."""

    #: Devices in each slot, and their mean over it: the last step is not used in full.
    sizes: Ints
    used: Floats
    worth: float
    cost: float

    @property
    def payoff(self) -> float:
        """What is left of its worth when all is paid for."""
        return self.worth - self.cost

    def changes_after(self, ends: Floats) -> float:
        """In how many seconds it has another size than now; the slots end at these moments."""
        other = (self.sizes != self.sizes[0]).nonzero()[0]
        return float(ends[other[0] - 1]) if len(other) else INFINITY


class Market:
    """The slots ahead and what is sold of them."""

    def __init__(self, devices: int, lowest: float, highest: float) -> None:
        grid = FIRST_SECONDS * (GROWTH ** np.arange(1, SLOTS + 1) - 1.0) / (GROWTH - 1.0)
        #: When each slot ends, from now.
        self.ends: Floats = grid.astype(np.float64)
        self.seconds: Floats = np.diff(self.ends, prepend=0.0)
        self.devices = devices
        self.sold: Floats = np.zeros(len(self.ends))
        self.lowest, self.highest = lowest, max(highest, lowest)

    def prices(self) -> Floats:
        """Of a device-second in each slot."""
        full = np.minimum(self.sold / max(self.devices, 1), 1.0)
        found: Floats = self.lowest * (self.highest / self.lowest) ** full
        return found

    def costs(self, sizes: Ints) -> Floats:
        """Of going from each of these sizes to the next, for a second of each slot."""
        whole = max(self.devices, 1)
        rise = np.log(self.highest / self.lowest)
        sold = np.minimum((self.sold[:, None] + sizes) / whole, 1.0)
        if rise < 1e-9:
            paid = self.lowest * whole * sold
        else:
            paid = self.lowest * whole / rise * np.exp(rise * sold)
        found: Floats = np.diff(paid, axis=1)
        return found

    def best(self, asks: Asks) -> Offer | None:
        """The schedule of greatest payoff; None if the work cannot be done in time."""
        devices, speeds = envelope(asks.levels)
        more, faster = np.diff(devices), np.diff(speeds)
        room = devices[1:] <= (self.devices - self.sold)[:, None] + 1e-6
        # A deadline within a slot leaves the part before it.
        ends = np.minimum(self.ends, asks.due)
        seconds = np.maximum(ends - (self.ends - self.seconds), 0.0)
        room &= (seconds > 0)[:, None]
        ratio = self.costs(devices) / faster
        order = np.argsort(np.where(room, ratio, np.inf), axis=None, kind="stable")
        order = order[: int(room.sum())]
        slot = order // len(more)
        work = (seconds[:, None] * faster).ravel()[order]
        cost = (ratio * seconds[:, None] * faster).ravel()[order]
        last = int(slot.max(initial=-1))
        best: tuple[float, int, int, float] | None = None
        for end in np.unique(np.linspace(0, last, min(ENDS, last + 1)).astype(int)).tolist():
            among = slot <= end
            done = (work * among).cumsum()
            if not len(done) or done[-1] < asks.work * (1.0 - 1e-9):
                continue
            k = int((done < asks.work * (1.0 - 1e-9)).sum())
            spare = min(max((done[k] - asks.work) / max(work[k], 1e-300), 0.0), 1.0)
            paid = float((cost[:k] * among[:k]).sum() + cost[k] * (1.0 - spare))
            payoff = float(asks.worth_at(ends[end : end + 1])[0]) - paid
            if best is None or payoff > best[0] + 1e-9 * abs(best[0]):
                best = payoff, end, k, float(spare)
        if best is None:
            return None
        payoff, end, k, spare = best
        taken = order[: k + 1][slot[: k + 1] <= end]
        sizes = np.zeros(len(self.ends), np.int64)
        np.add.at(sizes, taken // len(more), more[taken % len(more)])
        used = sizes.astype(np.float64)
        used[slot[k]] -= spare * more[order[k] % len(more)]
        used *= seconds / self.seconds
        worth = float(asks.worth_at(ends[end : end + 1])[0])
        return Offer(sizes, used, worth, worth - payoff)

    def sell(self, offer: Offer) -> None:
        """What was taken makes the rest dearer."""
        self.sold += offer.used


def envelope(levels: Levels) -> tuple[Ints, Floats]:
    """The sizes at which speed grows by less and less for each device, from 0 on."""
    kept = [(0, 0.0)]
    for size, speed in zip(levels.sizes[1:], levels.speeds[1:], strict=True):
        while len(kept) > 1:
            (s, v), (r, w) = kept[-1], kept[-2]
            if (speed - v) * (s - r) <= (v - w) * (size - s):
                break
            kept.pop()
        kept.append((size, speed))
    return np.array([s for s, _ in kept], np.int64), np.array([v for _, v in kept])

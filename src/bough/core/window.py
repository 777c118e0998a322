"""Rounds of a window shared out among gangs: most progress in sum, and nobody left far behind.

Which round of the window a job gets does not matter to what it is worth, only how many it gets.
What the n-th round adds to a concave worth of progress falls with n, so that the best counts are
found by taking rounds in order of what each adds for a device, as in a knapsack whose items may
be cut; only the last one taken can be off. What must be (fairness, the longest job) is taken
beforehand. An integer program over all (job, round) pairs would find the same counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bough.core.policy import Floats, Ints

#: Progress at which the logarithm is taken; between, it is a straight line.
BASES = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
#: In the place of the logarithm of no progress at all.
ORIGIN = 1e-6
LOGARITHMS = np.log(np.maximum(BASES, ORIGIN))
#: What must be left of the longest job is found to this part of a round.
PRECISE = 0.01
#: Parts of a round that do not count as another one.
ROUNDING = 1e-9


@dataclass(slots=True, frozen=True)
class Window:
    """So many rounds of so many devices, and what each job has done and has left."""

    rounds: int
    devices: int
    #: Of each job: devices, the part of its work that is done, and rounds it still needs.
    size: Ints
    done: Floats
    need: Floats
    #: The part of its work that it does in a round.
    step: Floats
    #: What its worth counts among the others'.
    weight: Floats

    def least(self, after: float) -> Ints:
        """Rounds that each needs so that nobody needs more than this after the window."""
        return np.ceil(np.maximum(self.need - after, 0.0) - ROUNDING).astype(np.int64)

    def holds(self, least: Ints) -> bool:
        """Whether there is room for all of these."""
        fits = bool((least <= self.rounds).all() and (self.size <= self.devices)[least > 0].all())
        return fits and int((least * self.size).sum()) <= self.rounds * self.devices

    def worth(self) -> Floats:
        """What each job's progress is worth after 0, 1, … rounds."""
        reached = self.done[:, None] + self.step[:, None] * np.arange(self.rounds + 1)
        made = np.interp(np.minimum(reached, 1.0), BASES, LOGARITHMS)
        found: Floats = made * self.weight[:, None]
        return found

    def first_gain(self) -> Floats:
        """What the first round adds, for a device."""
        worth = self.worth()
        found: Floats = (worth[:, 1] - worth[:, 0]) / self.size
        return found

    def share(self, least: Ints) -> tuple[Ints, float]:
        """Rounds of each with the greatest worth in sum, none less than it must, and that sum."""
        n, worth = np.arange(self.rounds), self.worth()
        most = np.minimum(np.ceil(self.need - ROUNDING), self.rounds)
        gain = np.diff(worth, axis=1) / self.size[:, None]
        row, at = ((n >= least[:, None]) & (n < most[:, None])).nonzero()
        order = np.lexsort((at, row, -gain[row, at]))
        row = row[order]
        room = self.rounds * self.devices - int((least * self.size).sum())
        counts = least.copy()
        while len(row) and room > 0:
            row = row[self.size[row] <= min(room, self.devices)]
            taken = int(self.size[row].cumsum().searchsorted(room, "right"))
            np.add.at(counts, row[:taken], 1)
            room -= int(self.size[row[:taken]].sum())
            row = row[taken:]
        return counts, float(worth[np.arange(len(counts)), counts].sum())


def share_window(window: Window, least: Ints, behind: float) -> Ints:
    """Rounds of each; a round that the longest job still needs afterwards costs `behind`.

    As little as possible is left of the longest job, then a round more, and so on: the best of
    these is taken.
    """
    low, high = 0.0, float(window.need.max(initial=0.0))
    if window.holds(np.maximum(least, window.least(0.0))):
        high = 0.0
    while high - low > PRECISE:
        middle = (low + high) / 2
        if window.holds(np.maximum(least, window.least(middle))):
            high = middle
        else:
            low = middle
    longest = float(window.need.max(initial=0.0))
    best, found = -np.inf, least
    for more in range(window.rounds + 1):
        after = min(high + more, longest)
        counts, worth = window.share(np.maximum(least, window.least(after)))
        if worth - behind * after > best:
            best, found = worth - behind * after, counts
        if after >= longest:
            break
    return found

"""Chronus: promises are packed into leases ahead of time, and best effort fills what is left."""

from __future__ import annotations

import numpy as np

from bough.core.filling import promised_rows
from bough.core.model import INFINITY, JobSpec
from bough.core.policy import ACCEPTED, Floats, Ints, Newcomer, Plan, Policy, Verdict, View
from bough.core.share import fit_in_order, in_order, stable_order, wished
from bough.core.slices import keeps_its_turn, next_turn, turn_after
from bough.core.units import format_duration

#: Part of a lease that does not count as another one: products of times are rounded.
ROUNDING = 1e-6
#: Leases looked ahead at most, for those whose deadline is later still.
AHEAD_MAX = 100_000


class Chronus(Policy, frozen=True):
    """Time is let in leases; a deadline is promised if enough leases before it are free.

    Citation: Gao et al., "Chronus: a novel deadline-aware scheduler for deep learning training
    jobs", SoCC '21, section 4, and its released simulator.
    Faithful: devices are given for a lease at a time; a promise needs as many leases as its work
    takes at its wished size, each with room for the whole gang, before its deadline; jobs are
    packed in order of their slack in leases; who cannot be packed beside the promises made
    before runs without one, as best effort; others fill each lease by least device time left;
    idle devices are let at once.
    Ours: packing is greedy, each job into its earliest leases with room, as is the released
    code's default; its integer program is left out. Slack is that at submission, so that the
    order stays and what was packed once can be packed again at every later lease. Leases of all
    jobs begin together, at multiples of their length. Where a job goes is left to the core.
    """

    content_with = "wish"

    #: How long a lease lasts.
    lease_seconds: float = 240.0
    #: Part of the believed speeds not counted on when promises are made and kept.
    margin: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.lease_seconds < INFINITY:
            raise ValueError("lease_seconds must be positive and finite")
        if not 0 <= self.margin < 1:
            raise ValueError(f"margin {self.margin} must be 0 or more and less than 1")

    def admit(self, view: View, job: JobSpec) -> Verdict:
        asks = view.newcomer
        if asks is None or job.service != "guaranteed" or asks.deadline == INFINITY:
            return ACCEPTED
        if asks.left == INFINITY:
            text = "It is not known how long it runs, so that no leases can be set aside for it."
            return Verdict(accepted=True, promised=False, code="no-estimate", text=text)
        if not self._fits(view, asks):
            left = format_duration(max(asks.deadline - view.now, 0.0))
            text = f"Too few leases are free before its deadline in {left}."
            return Verdict(accepted=True, promised=False, code="deadline", text=text)
        return ACCEPTED

    def _fits(self, view: View, asks: Newcomer) -> bool:
        """Whether the newcomer can be packed beside all that was promised before."""
        sizes, speeds = view.classes.sizes[asks.cls], view.classes.speed[asks.cls]
        most = int((sizes <= view.devices).sum()) - 1
        if not sizes[most]:
            return False
        begin = next_turn(view.now, self.lease_seconds) - self.lease_seconds
        if view.now - begin > ROUNDING * self.lease_seconds:
            begin += self.lease_seconds  # the present lease is let already
        needs = self._needs(view, promised_rows(view), begin)
        left = np.array([asks.left])
        new = self._leases(
            left, np.array([asks.deadline]), speeds[most : most + 1], np.array([view.now]), left,
            begin,
        )  # fmt: skip
        new[0, 3] = sizes[most]
        every = np.concatenate([needs, new])
        free = self._free(view, begin, int(every[:, 1].max()))
        return all(pack(free, every[row]) is not None for row in stable_order(every[:, 2]).tolist())

    def plan(self, view: View) -> Plan:
        jobs, lease = view.jobs, self.lease_seconds
        keeps = keeps_its_turn(jobs, view.now, lease)
        begin = next_turn(view.now, lease) - lease
        # 0: has this lease, 1: is packed into it, 2: others, 3: is packed into later ones.
        rank = np.where(keeps, 0, 2)
        rows = promised_rows(view)
        # Who came since it began was promised later ones.
        rows = rows[jobs.submitted[rows] <= begin + ROUNDING * lease]
        if len(rows) and not keeps[rows].all():
            needs = self._needs(view, rows, begin)
            free = self._free(view, begin, int(needs[:, 1].max()))
            for i in stable_order(needs[:, 2]).tolist():
                leases = pack(free, needs[i])
                if leases is not None and not keeps[rows[i]]:
                    rank[rows[i]] = 1 if len(leases) and leases[0] == 0 else 3
        service = jobs.left_or_guess() / jobs.wish_speed * jobs.wish
        order, size = in_order(view, rank, service), wished(jobs)
        granted = fit_in_order(size, view.devices, order, skip=True)
        wake_at = turn_after(jobs, granted, view.now, lease) if (granted == 0).any() else INFINITY
        return Plan(size, order=order, wake_at=wake_at)

    def _needs(self, view: View, rows: Ints, begin: float) -> Ints:
        """Leases, those before the deadline, slack at submission and devices of each."""
        jobs = view.jobs
        ahead = jobs.rate[rows] * max(begin - view.now, 0.0)
        left = np.maximum(jobs.left()[rows] - ahead, 0.0)
        found = self._leases(
            left, jobs.deadline[rows], np.maximum(jobs.wish_speed[rows], 1e-300),
            jobs.submitted[rows], jobs.left()[rows] + jobs.done()[rows], begin,
        )  # fmt: skip
        found[:, 3] = wished(jobs)[rows]
        return found

    def _leases(
        self, left: Floats, deadline: Floats, speed: Floats, submitted: Floats, total: Floats,
        begin: float,
    ) -> Ints:  # fmt: skip
        lease = self.lease_seconds * (1.0 - self.margin)
        need = np.ceil(left / speed / lease - ROUNDING)
        before = np.floor((deadline - begin) / self.lease_seconds + ROUNDING)
        slack = (deadline - submitted) / self.lease_seconds - total / speed / lease
        columns = np.stack([need, before, slack, np.zeros(len(left))], axis=1)
        found: Ints = np.clip(np.floor(columns), -AHEAD_MAX, AHEAD_MAX).astype(np.int64)
        return found

    def _free(self, view: View, begin: float, leases: int) -> Ints:
        """Devices free in each lease from then on, but for those that may not be taken away."""
        jobs = view.jobs
        free = np.full(max(leases, 1), view.devices, np.int64)
        if not jobs.flat:
            promised = jobs.guaranteed & (jobs.deadline < INFINITY) & (jobs.left_at < INFINITY)
            for row in ((jobs.must != 0) & (promised == 0)).nonzero()[0].tolist():
                seconds = float(jobs.left()[row]) / max(float(jobs.rate[row]), 1e-300)
                end = (view.now + seconds - begin) / self.lease_seconds
                free[: int(min(np.ceil(end), len(free)))] -= jobs.lo[row]
        return free


def pack(free: Ints, need: Ints) -> Ints | None:
    """The earliest leases with room for the gang, which are taken; None if they are too few."""
    leases, before, _, size = need.tolist()
    found: Ints = (free[: max(before, 0)] >= size).nonzero()[0][: max(leases, 0)]
    if len(found) < leases:
        return None
    free[found] -= size
    return found

"""Dominant resource fairness: users are evened out, not jobs, so that more jobs gain nothing."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bough.core.policy import Floats, Ints, Plan, Policy, View
from bough.core.share import in_order, stable_order, wished


class Drf(Policy, frozen=True):
    """The user who holds the smallest share of the resource they use most goes next.

    Citation: Ghodsi et al., "Dominant resource fairness: fair allocation of multiple resource
    types", NSDI '11, algorithm 1; a baseline of Optimus (EuroSys '18).
    Faithful: progressive filling, one job of the user with the least dominant share at a time;
    users who cannot go on are passed over; running jobs are kept.
    Ours: a user's jobs go by priority, then submission. Devices are the resource that counts,
    as CPUs and memory are in step with them (`JobSpec.cpus` and `memory` are per device).
    """

    #: Whose shares are evened out.
    among: Literal["user", "queue"] = "user"
    #: Preempt jobs of those who hold more than their share.
    preempt: bool = False

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        size = wished(jobs, keep=not self.preempt)
        party = jobs.user if self.among == "user" else jobs.queue
        waits = jobs.size == 0
        before = self._share_before(view, party, size, waits)
        keys = (before,) if self.preempt else (waits, before)
        return Plan(size, order=in_order(view, *keys))

    def _share_before(self, view: View, party: Ints, size: Ints, waits: Ints) -> Floats:
        """The share of its party at each job's turn: what the party's jobs before it hold."""
        turn = in_order(view) if self.preempt else in_order(view, waits)
        turn = turn[stable_order(party[turn])]
        held = size[turn].cumsum() - size[turn]
        first = np.ones(len(turn), np.bool_)
        first[1:] = party[turn][1:] != party[turn][:-1]
        held -= np.maximum.accumulate(np.where(first, held, 0))
        share = np.empty(len(turn))
        share[turn] = held / max(view.devices, 1)
        return share

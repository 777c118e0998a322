"""Dominant resource fairness: users are evened out, not jobs, so that more jobs gain nothing."""

from __future__ import annotations

import numpy as np

from bough.core.policy import Bools, Floats, Plan, Policy, View
from bough.core.share import in_order, stable_order, wished


class Drf(Policy, frozen=True):
    """The user who holds the smallest share of the resource they use most goes next.

    Citation: Ghodsi et al., "Dominant resource fairness: fair allocation of multiple resource
    types", NSDI '11, algorithm 1; a baseline of Optimus (EuroSys '18).
    Faithful: progressive filling, one job of the user with the least dominant share at a time;
    users who cannot go on are passed over; running jobs are kept.
    Ours: a user's jobs go by priority, then submission. The resources are devices, CPUs and
    memory, those of the nodes that have the kind of device in question.
    """

    weighs = True

    #: Preempt jobs of those who hold more than their share.
    preempt: bool = False

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        size = wished(jobs, keep=not self.preempt)
        waits = jobs.size == 0
        before = self._share_before(view, size[:, None] * view.takes, waits)
        keys = (before,) if self.preempt else (waits, before)
        return Plan(size, order=in_order(view, *keys))

    def _share_before(self, view: View, takes: Floats, waits: Bools) -> Floats:
        """The dominant share of its user at each job's turn: of what the jobs before it take."""
        user = view.jobs.user
        turn = in_order(view) if self.preempt else in_order(view, waits)
        turn = turn[stable_order(user[turn])]
        held = takes[turn].cumsum(axis=0) - takes[turn]
        first = np.ones(len(turn), np.bool_)
        first[1:] = user[turn][1:] != user[turn][:-1]
        held -= np.maximum.accumulate(np.where(first[:, None], held, 0.0), axis=0)
        share = np.empty(len(turn))
        share[turn] = held.max(axis=1) / max(view.devices, 1)
        return share

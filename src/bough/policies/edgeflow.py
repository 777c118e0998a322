"""EdgeFlow: promises are kept in the cloud, and what the edge can do as well is done there."""

from __future__ import annotations

import numpy as np

from bough.core.edges import Edge, edge_of, in_pool, late, saved, seconds_there
from bough.core.elastic import promised_first
from bough.core.filling import Rules
from bough.core.model import INFINITY, JobSpec
from bough.core.policy import ACCEPTED, Ints, Plan, Policy, Verdict, View
from bough.core.promises import judged


class EdgeFlow(Policy, frozen=True):
    """ElasticFlow in the cloud; jobs that one device at the edge can end in time are moved there.

    Citation: Gu, Jin, Liu, "Deep learning job scheduling for cloud-edge collaboration" (EdgeFlow),
    Journal of Software, 2025 (in Chinese).
    Faithful: deadline jobs share the cloud as in `elasticflow`; idle edge servers, which have one
    device each, take selected jobs, and give them back when they would be late there; moving
    costs time; a job that the cloud alone would refuse is tried at the edge.
    A reconstruction (the selection's formula was not available): a job goes where the edge can end
    it in time with its way there, those first that would be late in the cloud, then by device time
    saved in the cloud for each second at the edge. A job moves between cloud and edge at most once
    in `calm_seconds`. Which jobs may leave the cloud is said by the kinds they accept: edge nodes
    (`tier: edge`) are of kinds of their own.
    """

    scope = "cluster"
    places = True

    #: Not moved between cloud and edge again within this time of its last change.
    calm_seconds: float = 600.0
    #: Refuse a guaranteed job whose deadline can be kept neither here nor there.
    admission: bool = True
    #: Planned changes of size are put at multiples of this; 0: at any moment.
    slot_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.calm_seconds < INFINITY and 0 <= self.slot_seconds < INFINITY):
            raise ValueError("calm_seconds and slot_seconds must be 0 or more, and finite")

    def admit(self, view: View, job: JobSpec) -> Verdict:
        asks = view.newcomer
        if not self.admission or job.service != "guaranteed" or asks is None:
            return ACCEPTED
        verdict = judged(view, self._rules())
        if verdict.accepted or asks.deadline == INFINITY or asks.left == INFINITY:
            return verdict
        waiting = int(((view.jobs.size == 0) & (view.jobs.guaranteed != 0)).sum())
        for there in asks.edges:
            seconds = asks.left / there.speed + there.move_seconds
            if there.free > waiting and view.now + seconds <= asks.deadline:
                return ACCEPTED
        return verdict

    def _rules(self) -> Rules:
        return Rules(True, self.slot_seconds)

    def plan(self, view: View) -> Plan:
        if not view.classes_on.size:
            sizes, wake_at = promised_first(view, self._rules())
            return Plan(sizes, wake_at=wake_at)
        jobs, edge = view.jobs, edge_of(view)
        plan = np.zeros((jobs.n, len(view.pools)), np.int64)
        home = self._homes(view, edge)
        for pool in edge.pools:
            for row in self._chosen(view, edge, pool, home, plan).tolist():
                plan[row, pool] = 1
        wake_at = INFINITY
        for pool in edge.cloud:
            rows: Ints = ((home == pool) & (plan.sum(axis=1) == 0)).nonzero()[0]
            if len(rows):
                sizes, again = promised_first(in_pool(view, rows, pool), self._rules())
                plan[rows, pool] = sizes
                wake_at = min(wake_at, again)
        return Plan(plan, wake_at=wake_at)

    def _homes(self, view: View, edge: Edge) -> Ints:
        """The cloud pool of each row: its own, or the first that it can run on; -1: none."""
        able = view.classes_on[:, edge.cloud] >= 0
        first = np.array([*edge.cloud, -1])[np.where(able.any(axis=1), able.argmax(axis=1), -1)]
        return np.where(np.isin(view.jobs.pool, edge.cloud), view.jobs.pool, first)

    def _chosen(self, view: View, edge: Edge, pool: int, home: Ints, plan: Ints) -> Ints:
        """Rows that are to be on the devices of an edge pool."""
        jobs, free = view.jobs, view.pools[pool]
        there = (jobs.pool == pool) & (jobs.size > 0)
        seconds = seconds_there(view, edge, pool)
        calm = (jobs.size > 0) & (view.now - jobs.since < self.calm_seconds)
        moves = ~there & (jobs.must == 0) & ~calm & (jobs.lo <= 1)
        able = np.isfinite(seconds) & (plan.sum(axis=1) == 0)
        able &= view.now + seconds <= jobs.deadline
        pressed = np.zeros(jobs.n, np.bool_)
        worth = np.full(jobs.n, np.inf)
        for cloud in edge.cloud:
            rows: Ints = ((home == cloud) & ~there).nonzero()[0]
            if len(rows):
                pressed[rows] = late(in_pool(view, rows, cloud), self._rules())
                worth[rows] = saved(view, seconds, cloud)[rows]
        stays = there & (able | calm | (jobs.must != 0) | (home < 0))
        # Who runs in the cloud without a promise is left there: it would only be slower.
        comes = moves & able & ((jobs.size == 0) | (jobs.guaranteed != 0))
        order = np.lexsort((jobs.serial, -worth, ~pressed, jobs.guaranteed == 0, ~stays))
        found: Ints = order[(stays | comes)[order]][:free]
        return found

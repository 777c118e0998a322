"""What a run amounts to: every number bough prints about a run is computed here, in one way.

docs/metrics.md says in words what each is. A number that does not exist (a mean over no jobs,
deadlines where none were set) is None, never 0 and never NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from bough.core.energy import JOULES_OF_KWH
from bough.core.policy import Bools, Floats
from bough.core.supply import GRAMS_OF_KILO
from bough.sim.bounds import lower_bound
from bough.sim.record import JobRecord, RunRecord

Row = dict[str, Any]

DEVICE_HOUR_SECONDS = 3600.0


def summarise(record: RunRecord) -> Row:
    """The whole run as one flat row; only `waits_seconds` is a table of its own, by cause."""
    jobs, done = record.jobs, np.array([job.state == "done" for job in record.jobs], bool)
    jct = completion_seconds(jobs)[done]
    states = _count_states(jobs)
    bound = lower_bound((job for job in jobs if job.state == "done"), record.devices)
    return {
        "policy": record.policy,
        "jobs": len(jobs),
        "completed": states.get("done", 0),
        "rejected": states.get("rejected", 0),
        **{f"{name}_jct_seconds": value for name, value in _spread(jct).items()},
        "makespan_seconds": _known(horizon(record)[1]),
        **_deadlines(jobs),
        "utilisation": _held_share(record),
        "preemptions": sum(job.preemptions for job in jobs),
        "resizes": sum(job.resizes for job in jobs),
        "migrations": sum(job.migrations for job in jobs),
        "lost_device_hours": sum(job.lost_device_seconds for job in jobs) / DEVICE_HOUR_SECONDS,
        "cpu_seconds": record.cpu_seconds,
        "decision_p99_seconds": _percentile(record.decision_seconds, 99),
        # What follows is more than was asked for, and may grow.
        "failed": states.get("failed", 0),
        "cancelled": states.get("cancelled", 0),
        "timed_out": states.get("timed-out", 0),
        "unfinished": states.get("unfinished", 0),
        "lower_bound_mean_jct_seconds": _known(bound),
        "mean_jct_over_bound": _ratio(float(jct.mean()) if len(jct) else 0.0, bound),
        "mean_slowdown": _mean(jct / _column(jobs, "ideal_seconds")[done]),
        **_fairness(record, done),
        **_waiting(jobs),
        "useful_utilisation": _held_share(record, useful=True),
        "fragmentation": _mean_fragmentation(record),
        "device_hours": sum(job.device_seconds for job in jobs) / DEVICE_HOUR_SECONDS,
        "restarts": sum(job.restarts for job in jobs),
        **_supplies(record),
        "decision_p50_seconds": _percentile(record.decision_seconds, 50),
        "decisions": len(record.decision_seconds),
        "events": record.events,
    }


def completion_seconds(jobs: Sequence[JobRecord]) -> Floats:
    """From submission to the end, job by job; NaN for those that have not ended."""
    found: Floats = _column(jobs, "end") - _column(jobs, "submit")
    return found


def horizon(record: RunRecord) -> tuple[float, float]:
    """The first submission, and how long after it the last job ended.

    A run that was cut short lasts until the cut.
    """
    if not record.jobs:
        return record.started, math.nan
    first = min(job.submit for job in record.jobs)
    if any(job.state == "unfinished" for job in record.jobs):
        return first, max(record.ended - first, 0.0)
    ends = [job.end for job in record.jobs if not math.isnan(job.end)]
    return first, max(ends) - first if ends else math.nan


def fair_seconds(jobs: Sequence[JobRecord], devices: int) -> Floats:
    """How long each job would take if all jobs in the system shared the cluster evenly.

    Generalised processor sharing on the same submissions: while the jobs present wish for D
    devices of C, each goes at min(1, C / D) of the speed it has alone. The same for every policy,
    so that their fairness can be compared. In virtual time, which advances at that rate, every
    job simply takes its ideal time: O(n log n).
    """
    submit, ideal = _column(jobs, "submit"), _column(jobs, "ideal_seconds")
    fair = np.full(len(jobs), np.nan)
    order = [i for i in np.argsort(submit, kind="stable").tolist() if not math.isnan(ideal[i])]
    present: list[tuple[float, int]] = []
    now, virtual, wished = -math.inf, 0.0, 0

    def run_until(moment: float) -> None:
        """Let time pass, and the jobs end that do."""
        nonlocal now, virtual, wished
        while present:
            slower = max(wished / devices, 1.0)
            at = now + (present[0][0] - virtual) * slower
            if at > moment:
                virtual += (moment - now) / slower
                break
            virtual, job = heappop(present)
            now = at
            wished -= jobs[job].wish
            fair[job] = at - submit[job]
        now = moment

    for job in order:
        run_until(float(submit[job]))
        heappush(present, (virtual + float(ideal[job]), job))
        wished += jobs[job].wish
    run_until(math.inf)
    return fair


def over_time(record: RunRecord, bins: int = 100) -> dict[str, list[float]]:
    """Utilisation and fragmentation in equal stretches of the run, and when each begins."""
    first, seconds = horizon(record)
    if not record.usage or not seconds > 0:
        return {"seconds": [], "utilisation": [], "fragmentation": []}
    edges = np.linspace(first, first + seconds, bins + 1)
    when, held, free, biggest = np.array(record.usage, float).T
    usable = held + free
    stretch = np.diff(edges)
    used, there = _integral(when, held, edges), _integral(when, usable, edges)
    broken = _integral(when, fragmentation(record, free, biggest), edges)
    return {
        "seconds": (edges[:-1] - first).tolist(),
        "utilisation": np.divide(used, there, out=np.zeros(bins), where=there > 0).tolist(),
        "fragmentation": (broken / stretch).tolist(),
    }


def fragmentation(record: RunRecord, free: Floats, biggest: Floats) -> Floats:
    """How far the biggest block on one node falls short of what as many free devices could be."""
    node = max(record.node_devices, default=record.devices)
    possible = np.minimum(free, node)
    share = np.divide(biggest, possible, out=np.ones(len(free)), where=possible > 0)
    found: Floats = 1.0 - np.minimum(share, 1.0)
    return found


def job_rows(record: RunRecord) -> Iterator[Row]:
    """One row for each job, in order of submission."""
    fair, known = fair_seconds(record.jobs, record.devices).tolist(), record.accounted
    for job, fair_jct in zip(record.jobs, fair, strict=True):
        jct = job.end - job.submit
        met = job.state == "done" and job.end <= job.deadline
        yield {
            "policy": record.policy,
            "id": job.id,
            "user": job.user,
            "queue": job.queue,
            "service": job.service,
            "kind": job.kind,
            "wish": job.wish,
            "state": job.state,
            "submit": job.submit,
            "start": _known(job.begin),
            "end": _known(job.end),
            "jct_seconds": _known(jct) if job.state == "done" else None,
            "wait_seconds": math.fsum(job.waits.values()),
            "slowdown": _ratio(jct, job.ideal_seconds) if job.state == "done" else None,
            "fairness": _ratio(jct, fair_jct) if job.state == "done" else None,
            "deadline": _known(job.deadline),
            "met_deadline": met if math.isfinite(job.deadline) else None,
            "device_seconds": job.device_seconds,
            "lost_device_seconds": job.lost_device_seconds,
            "energy_kwh": job.energy_joules / JOULES_OF_KWH if known >= {"energy"} else None,
            "carbon_kg": job.carbon_grams / GRAMS_OF_KILO if known >= {"carbon"} else None,
            "cost": job.cost if known >= {"cost"} else None,
            "preemptions": job.preemptions,
            "resizes": job.resizes,
            "migrations": job.migrations,
            "restarts": job.restarts,
            "sizes": job.sizes,
            "waits": job.waits,
        }


def mean_waits(jobs: Sequence[JobRecord]) -> dict[str, float]:
    """Seconds waited for each cause, for the average job; the longest first."""
    total: dict[str, float] = {}
    for job in jobs:
        for cause, seconds in job.waits.items():
            total[cause] = total.get(cause, 0.0) + seconds
    return {
        cause: seconds / len(jobs)
        for cause, seconds in sorted(total.items(), key=lambda item: (-item[1], item[0]))
    }


# --------------------------------------------------------------------------- parts of the row


def _spread(seconds: Floats) -> dict[str, float | None]:
    return {"mean": _mean(seconds), **{f"p{p}": _percentile(seconds, p) for p in (50, 95, 99)}}


def _supplies(record: RunRecord) -> Row:
    """What was drawn, emitted and paid; None for what was not accounted for."""
    jobs, known = record.jobs, record.accounted
    energy = math.fsum(job.energy_joules for job in jobs) / JOULES_OF_KWH
    carbon = math.fsum(job.carbon_grams for job in jobs) / GRAMS_OF_KILO
    used = [spent / had if had > 0 else math.inf for _, _, had, spent in record.windows if spent]
    return {
        "energy_kwh": energy if "energy" in known else None,
        "carbon_kg": carbon if "carbon" in known else None,
        "cost": math.fsum(job.cost for job in jobs) if "cost" in known else None,
        "most_of_a_budget": max(used, default=0.0) if record.windows else None,
    }


def _deadlines(jobs: Sequence[JobRecord]) -> Row:
    """Jobs done in time, of those with a deadline, and of those of them that were taken on."""
    asked = [job for job in jobs if math.isfinite(job.deadline)]
    met = sum(job.state == "done" and job.end <= job.deadline for job in asked)
    admitted = sum(job.admitted and job.state != "rejected" for job in asked)
    return {
        "deadline_ratio_submitted": _ratio(met, len(asked)),
        "deadline_ratio_admitted": _ratio(met, admitted),
    }


def _fairness(record: RunRecord, done: Bools) -> Row:
    fair = fair_seconds(record.jobs, record.devices)[done]
    rho = completion_seconds(record.jobs)[done] / np.where(fair > 0, fair, np.nan)
    rho = rho[~np.isnan(rho)]
    return {
        "mean_fairness": _mean(rho),
        "p99_fairness": _percentile(rho, 99),
        "worst_fairness": _known(float(rho.max())) if len(rho) else None,
        "unfair_ratio": _mean(rho > 1.0 + 1e-9),
    }


def _waiting(jobs: Sequence[JobRecord]) -> Row:
    waits = mean_waits(jobs)
    free = [j for j in jobs if j.state == "done" and not math.isfinite(j.deadline)]
    first = _column(jobs, "begin") - _column(jobs, "submit")
    return {
        "best_effort_mean_jct_seconds": _mean(completion_seconds(free)),
        "mean_first_start_seconds": _mean(first[~np.isnan(first)]),
        "mean_wait_seconds": math.fsum(waits.values()) if jobs else None,
        "waits_seconds": waits,
    }


def _held_share(record: RunRecord, *, useful: bool = False) -> float | None:
    """Device-seconds held (less those lost) of all there were while there were jobs."""
    held = math.fsum(job.device_seconds for job in record.jobs)
    lost = math.fsum(job.lost_device_seconds for job in record.jobs) if useful else 0.0
    return _ratio(held - lost, record.devices * horizon(record)[1])


def _mean_fragmentation(record: RunRecord) -> float | None:
    shares = over_time(record, bins=1)["fragmentation"]
    return shares[0] if shares else None


def _count_states(jobs: Sequence[JobRecord]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for job in jobs:
        counts[job.state] = counts.get(job.state, 0) + 1
    return counts


# --------------------------------------------------------------------------- arithmetic


def _integral(when: Floats, value: Floats, edges: Floats) -> Floats:
    """Integral over each stretch between edges of a value that holds until the next change."""
    total = np.concatenate(([0.0], np.cumsum(value[:-1] * np.diff(when))))
    inside = np.clip(edges, when[0], None)
    last = np.clip(np.searchsorted(when, inside, side="right") - 1, 0, None)
    found: Floats = np.diff(total[last] + value[last] * (inside - when[last]))
    return found


def _column(jobs: Sequence[JobRecord], name: str) -> Floats:
    return np.array([getattr(job, name) for job in jobs], float)


def _mean(values: Floats | Bools) -> float | None:
    return _known(float(np.mean(values))) if len(values) else None


def _percentile(values: Floats | Sequence[float], percent: float) -> float | None:
    """Linear between the two nearest ranks."""
    return _known(float(np.percentile(values, percent))) if len(values) else None


def _ratio(part: float, whole: float) -> float | None:
    return _known(part / whole) if whole > 0 else None


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None

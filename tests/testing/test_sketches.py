"""The contract suffices for published systems: sketches of how some of them decide, in its words.

Not the systems themselves, which are policies of their own; each sketch needs what is peculiar
to its system, and is held to the whole contract.
"""

from __future__ import annotations

import numpy as np

from bough.core.model import INFINITY
from bough.core.policy import Ints, Plan, Policy, View
from bough.core.share import in_order, marginal_fill, wished
from bough.testing.policies import PolicyContract


class TimeSlices(Policy, frozen=True):
    """Gandiva (OSDI '18): who ran longest without a break gives way to who waited longest."""

    #: How long a job runs before others have their turn.
    quantum_seconds: float = 60.0

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        runs = jobs.size > 0
        used = np.where(runs, view.now - jobs.run_since, 0.0)
        over = used >= self.quantum_seconds - 1e-6
        waited_since = np.where(runs, INFINITY, jobs.since)
        order = in_order(view, ~runs | over, waited_since)
        next_turn = (self.quantum_seconds - used[runs & ~over]).min(initial=INFINITY)
        return Plan(wished(jobs), order=order, wake_at=view.now + float(next_turn))


class FinishTimeFairness(Policy, frozen=True):
    """Themis (NSDI '20): who will finish latest, compared with an equal share, goes first."""

    def plan(self, view: View) -> Plan:
        jobs = view.jobs
        with np.errstate(invalid="ignore"):
            shared = view.now - jobs.submitted + jobs.left() / jobs.wish_speed
            alone = (jobs.done() + jobs.left()) / jobs.wish_speed * max(jobs.n, 1)
            unfairness = np.nan_to_num(shared / np.maximum(alone, 1e-9), nan=0.0, posinf=0.0)
        return Plan(wished(jobs), order=in_order(view, -unfairness))


class LeastThenGain(Policy, frozen=True):
    """ElasticFlow (ASPLOS '23): what a deadline needs first, the rest where it adds most."""

    def plan(self, view: View) -> Ints:
        jobs, classes = view.jobs, view.classes
        seconds = np.clip(jobs.deadline - view.now, 1e-9, 1e12)
        sizes, speed = classes.sizes[jobs.cls], classes.speed[jobs.cls]
        enough = speed * seconds[:, None] >= jobs.left()[:, None]
        allowed = (sizes >= jobs.lo[:, None]) & (sizes <= jobs.hi[:, None])
        fits = enough & allowed
        promised = fits.any(axis=1) & (jobs.must == 0)
        need = np.where(promised, sizes[np.arange(jobs.n), fits.argmax(axis=1)], jobs.lo)
        return marginal_fill(view, order=in_order(view, jobs.deadline), least=need)


class RemainingTimeGain(Policy, frozen=True):
    """Optimus (EuroSys '18): each device to the job whose remaining time it shortens most."""

    def plan(self, view: View) -> Ints:
        speed = np.maximum(view.classes.speed, 1e-9)
        positive = view.classes.sizes > 0
        gain = np.where(positive, 1 / speed[:, 1:2] - 1 / speed, 0.0)
        work = np.minimum(view.jobs.left(), 1e12)
        return marginal_fill(view, gain, weights=np.maximum(work, 1e-9))


class TestTimeSlices(PolicyContract):
    policies = (TimeSlices(), TimeSlices(quantum_seconds=5.0))
    at_wish = True
    passes_over = True
    settles = False  # those whose turn is over are sent away and come back first


class TestFinishTimeFairness(PolicyContract):
    policies = (FinishTimeFairness(),)
    at_wish = True
    passes_over = True
    settles = False  # waiting makes unfair, so time alone changes the order, at every moment


class TestLeastThenGain(PolicyContract):
    policies = (LeastThenGain(),)
    work_conserving = False  # a job whose deadline needs more than is left holds back the rest
    settles = False  # the less time is left, the more a deadline needs


class TestRemainingTimeGain(PolicyContract):
    policies = (RemainingTimeGain(),)
    settles = False  # the more work is left, the more a device shortens it

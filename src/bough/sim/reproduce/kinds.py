"""Policies over several kinds of device, as Gavel's simulator has them: decided anew each round."""

from __future__ import annotations

import msgspec
import numpy as np

from bough.core.model import INFINITY
from bough.core.policy import Ints, Plan, Policy, View
from bough.core.share import stable_order

#: Steps per second of each job, in order of submission, on each kind, in the order of the cluster.
Rates = tuple[tuple[float, ...], ...]


class Booking:
    """Which kind each job is booked on, and when that was decided."""

    def __init__(self) -> None:
        self.at = 0.0
        self.jobs: tuple[int, ...] = ()
        self.kind: dict[int, int] = {}


class FastestFirst(Policy, frozen=True):
    """First in, first out, each on the kind that is fastest for it: Gavel's FIFO with knowledge.

    Citation: Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep
    learning workloads", OSDI '20; its simulator.
    Faithful: everybody is booked anew when jobs came or went, but not within `least_seconds` of
    the last time; in between, devices that were left stay idle.
    """

    scope = "cluster"

    rates: Rates
    least_seconds: float = 1920.0
    booking: Booking = msgspec.field(default_factory=Booking)

    def plan(self, view: View) -> Plan:
        jobs, booking, now = view.jobs, self.booking, view.now
        serials = tuple(jobs.serial.tolist())
        # Theirs takes 0 seconds for "never decided", so that it decides twice at the start.
        idle = not any(serial in booking.kind for serial in serials)
        free_to_decide = booking.at <= 0.0 or now - booking.at >= self.least_seconds or idle
        if serials != booking.jobs and free_to_decide:
            booking.at, booking.jobs = now, serials
            booking.kind = self.book(view, serials)
        sizes = np.zeros((jobs.n, len(view.pools)), np.int64)
        for row, serial in enumerate(serials):
            if serial in booking.kind:
                sizes[row, booking.kind[serial]] = jobs.wish[row]
        later = booking.at + self.least_seconds
        return Plan(sizes, wake_at=INFINITY if serials == booking.jobs else max(later, now))

    def book(self, view: View, serials: tuple[int, ...]) -> dict[int, int]:
        """Job after job takes the fastest kind that has room, until one fits nowhere."""
        free = list(view.pools)
        by_name = sorted(range(len(free)), key=lambda p: view.pool_names[p])
        found: dict[int, int] = {}
        for serial, size in zip(serials, view.jobs.wish.tolist(), strict=True):
            fitting = [pool for pool in by_name if free[pool] >= size]
            if not fitting:
                break
            pool = max(fitting, key=lambda p: self.rates[serial][p])
            if self.rates[serial][pool] > 0:
                found[serial] = pool
                free[pool] -= size
        return found


class LeastAttained(Policy, frozen=True):
    """Whoever has used the fewest device-seconds goes first, decided anew each round."""

    round_seconds: float

    def plan(self, view: View) -> Plan:
        order = stable_order(view.jobs.attained())
        return Plan(view.jobs.wish, order=order, wake_at=view.now + self.round_seconds)


class LeastAttainedOfKinds(Policy, frozen=True):
    """The same on several kinds: whoever has used the fewest device-seconds chooses first.

    Ours, in the place of Gavel's max-min fairness: that solves a linear program for the share of
    time of each job on each kind and works the shares off round by round.
    """

    scope = "cluster"

    rates: Rates
    round_seconds: float
    #: Each takes the kind that is fastest for it; else the kinds take turns.
    aware: bool = False

    def plan(self, view: View) -> Plan:
        jobs, free = view.jobs, list(view.pools)
        sizes = np.zeros((jobs.n, len(free)), np.int64)
        turn = int(view.now // self.round_seconds)
        order: Ints = stable_order(jobs.attained())
        for row in order.tolist():
            size, rates = int(jobs.wish[row]), self.rates[int(jobs.serial[row])]
            fitting = [p for p in range(len(free)) if rates[p] > 0 and free[p] >= size]
            if not fitting:
                continue
            if self.aware:
                pool = max(fitting, key=lambda p: rates[p])
            else:
                pool = min(fitting, key=lambda p: (p - row - turn) % len(free))
            sizes[row, pool] = size
            free[pool] -= size
        return Plan(sizes, wake_at=view.now + self.round_seconds)

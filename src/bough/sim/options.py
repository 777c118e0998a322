"""How the simulated world behaves and how the scheduler in it is set; everything is seeded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from bough.core.model import INFINITY, Queue
from bough.core.scheduler import Settings
from bough.core.speedup import SpeedBook
from bough.core.supply import Supply


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """How often what breaks, and for how long; an infinite mean time means never."""

    node_mtbf_seconds: float = INFINITY
    node_repair_seconds: float = 3600.0
    device_mtbf_seconds: float = INFINITY
    device_repair_seconds: float = 6 * 3600.0
    #: How long a node stays away that was taken away (see Terms.evictions_per_hour).
    evicted_seconds: float = 1800.0
    #: Mean device-time between crashes that are the job's own fault.
    job_mtbf_seconds: float = INFINITY


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """One set of these, a trace, a cluster and a policy give one result, always the same."""

    seed: int = 0
    #: Relative error of what the policy believes about speed-ups and run times.
    speed_error: float = 0.0
    failures: Failures = Failures()
    queues: tuple[Queue, ...] = ()
    #: Virtual time at which the replay stops.
    until: float = INFINITY
    #: Only the first so many jobs; 0: all.
    jobs: int = 0
    #: Seconds until a job makes progress after a start, a resize in place; seconds to leave.
    start_seconds: float = 0.0
    resize_seconds: float = 0.0
    park_seconds: float = 0.0
    #: Work is saved this often; what was done since is lost when something breaks.
    checkpoint_seconds: float = 1800.0
    #: Loss of speed of a job whose nodes are full of other jobs (0.1: one tenth slower).
    interference: float = 0.0
    #: Share of starts that draw a slow device, and how much slower the whole gang is then.
    straggler_share: float = 0.0
    straggler_slowdown: float = 0.3
    #: Knobs of the scheduler.
    locality_seconds: float = 180.0
    damp_seconds: float = 0.0
    moving_share: float = 0.1
    round_seconds: float = 0.0
    #: Place everything anew at each decision: "best" fit, "first" fit, or not at all.
    repack: Literal["", "best", "first"] = ""
    #: Keep places over time, for the Gantt chart.
    detail: bool = False
    #: Account for energy, also where nothing else asks for it.
    energy: bool = False
    #: Where power comes from, and its budgets; its series begin with the run.
    supply: Supply | None = None
    #: Jobs whose story is told.
    explain: frozenset[str] = frozenset()

    def beginning(self, at: float) -> Options:
        """The same for a run that begins at a moment."""
        if self.supply is None:
            return self
        return msgspec.structs.replace(self, supply=self.supply.beginning(at))

    def settings(self, learns: bool) -> Settings:
        """What of this is the scheduler's."""
        return Settings(
            locality_seconds=self.locality_seconds, damp_seconds=self.damp_seconds,
            moving_share=self.moving_share, round_seconds=self.round_seconds, repack=self.repack,
            learns=learns, supply=self.supply,
        )  # fmt: skip


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is given besides its options: none of it changes the result."""

    #: Reads CPU seconds, for the run as a whole; None: not measured.
    clock: Callable[[], float] | None = None
    #: Reads seconds, quickly, for each decision; None: not measured.
    stopwatch: Callable[[], float] | None = None
    #: Told the share of jobs that have ended, now and then.
    on_progress: Callable[[float], None] | None = None
    #: What is believed, and true, about speed-ups; the built-in curves when None.
    speedups: SpeedBook | None = None

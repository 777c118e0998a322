"""What a simulated run leaves behind: one record for each job and the course of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from bough.core.model import INFINITY, Place

NAN = float("nan")


@dataclass(slots=True)
class JobRecord:
    """What happened to one job, in virtual seconds."""

    id: str
    user: str
    queue: str
    service: str
    #: The size the trace gives it, and when it was submitted.
    wish: int
    submit: float
    #: First start and end; NaN when it never came to that.
    begin: float = NAN
    end: float = NAN
    #: done, failed, cancelled, rejected, timed-out or unfinished.
    state: str = "unfinished"
    deadline: float = INFINITY
    admitted: bool = True
    kind: str = ""
    #: Alone and at once: at the size the trace gives; at its fastest size; and the least device
    #: time that any of its sizes needs.
    ideal_seconds: float = NAN
    fastest_seconds: float = NAN
    least_device_seconds: float = NAN
    device_seconds: float = 0.0
    lost_device_seconds: float = 0.0
    #: Its devices' and its share of its nodes'; 0 in runs that do not account for it.
    energy_joules: float = 0.0
    carbon_grams: float = 0.0
    cost: float = 0.0
    preemptions: int = 0
    resizes: int = 0
    migrations: int = 0
    restarts: int = 0
    #: Seconds waited, by cause code.
    waits: dict[str, float] = field(default_factory=dict)
    #: (when, devices) at every change.
    sizes: list[tuple[float, int]] = field(default_factory=list)
    #: (when, place) at every change; only in detailed runs.
    places: list[tuple[float, Place]] = field(default_factory=list)
    #: (when, sentence); only for explained jobs.
    story: list[tuple[float, str]] = field(default_factory=list)


@dataclass(slots=True)
class RunRecord:
    """One trace under one policy on one cluster."""

    policy: str
    cluster: str
    trace: str
    seed: int
    devices: int
    started: float = 0.0
    ended: float = 0.0
    jobs: list[JobRecord] = field(default_factory=list)
    #: (when, devices held, devices free, biggest block that could be placed), thinned when long.
    usage: list[tuple[float, int, int, int]] = field(default_factory=list)
    #: Wall seconds of each decision.
    decision_seconds: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0
    events: int = 0
    node_names: list[str] = field(default_factory=list)
    node_devices: list[int] = field(default_factory=list)
    #: What is accounted for: "energy", "carbon", "cost".
    accounted: frozenset[str] = frozenset()
    #: Windows of budgets: (of what, end, what it had, what was used).
    windows: list[tuple[str, float, float, float]] = field(default_factory=list)

"""On which terms a node is had: how sure it is, what it costs and draws, how far away it lies."""

from __future__ import annotations

import math
from typing import Final, Literal

import msgspec

Tier = Literal["reserved", "spot", "edge"]
TIERS: Final[tuple[Tier, ...]] = ("reserved", "spot", "edge")


class Terms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of a node beside what it is; the usual is said of nodes that are one's own."""

    #: Reserved ones stay; spot ones are taken away when others pay more; edge ones lie elsewhere.
    tier: Tier = "reserved"
    #: Money for each of its devices and hour in which it is held.
    price: float = 0.0
    #: How often it is taken away in an hour on which it is had, in the mean.
    evictions_per_hour: float = 0.0
    #: What it draws beside its devices while anybody is on it; None: as core/energy.py has it.
    watts: float | None = None
    #: Bytes per second between it and the others, for what jobs take along; 0: as fast as needed.
    link: float = 0.0

    def __post_init__(self) -> None:
        for name in ("price", "evictions_per_hour", "watts", "link"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"{name} must be 0 or more, and finite")


#: Of a node of which nothing is said.
USUAL = Terms()

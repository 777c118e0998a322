"""What the tenancy tree keeps and tells: its state as plain data, and what holds a queue down."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from bough.core.model import Queue


class QueueState(msgspec.Struct, frozen=True):
    """What is remembered of one queue."""

    queue: Queue
    #: Decayed device-seconds, and device-seconds taken from the budget.
    history: float
    spent: float


class TreeState(msgspec.Struct, frozen=True):
    """Everything the tree remembers."""

    queues: tuple[QueueState, ...]
    used: tuple[int, ...]
    #: None before the first charge.
    charged_at: float | None


class Binding(msgspec.Struct, frozen=True):
    """What holds a queue down: the queue of the path, why, and at how many devices."""

    queue: str
    #: paused, budget, limit, kind-limit or guarantee (it may not borrow).
    code: str
    devices: int


class Steps(NamedTuple):
    """By queue, with all below it: what it may not lose, what it may claim, its most."""

    floors: list[int]
    claims: list[int]
    bounds: list[int]
    #: What its floor takes beyond its guarantee.
    ahead: list[int]
    #: Of its own jobs alone: what may not be taken from them, and the most they may have.
    own: list[tuple[int, int]]
    #: What a device counts as when the rest is divided by weight.
    counts: list[float]

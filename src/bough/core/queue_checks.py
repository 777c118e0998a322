"""Which trees of queues make no sense, said in one line for whoever wrote them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from bough.core.model import Queue
from bough.errors import nearest


def check_numbers(queue: Queue) -> None:
    """Every number is one that can be meant."""
    if not queue.name:
        raise ValueError("a queue needs a name")
    reals = ("guarantee", "limit", "weight", "half_life_seconds", "budget_device_hours")
    numbers = [(field, getattr(queue, field)) for field in reals]
    numbers += [(f"kind_limits.{kind}", value) for kind, value in queue.kind_limits.items()]
    for field, value in numbers:
        if value is not None and (math.isnan(value) or value < 0):
            raise ValueError(f"queue {queue.name}: {field} is {value}, it must not be negative")
    for field in ("weight", "half_life_seconds"):
        if math.isinf(getattr(queue, field)):
            raise ValueError(f"queue {queue.name}: {field} must be finite")


def check_parent(queue: Queue, names: Iterable[str]) -> None:
    """The parent is there."""
    if queue.parent == queue.name:
        raise ValueError(f"queues form a circle: {queue.name} in {queue.name}")
    if queue.parent and queue.parent not in names:
        hint = nearest(queue.parent, names)
        raise ValueError(f"queue {queue.name}: no queue is called {queue.parent!r}; {hint}")


def check_way_up(queue: Queue, queues: Mapping[str, Queue]) -> None:
    """The way from a queue to the root ends there."""
    path = [queue.name]
    while queue.parent:
        path.append(queue.parent)
        if queue.parent == path[0]:
            raise ValueError(f"queues form a circle: {' in '.join(path)}")
        queue = queues[queue.parent]


def promise(queue: Queue, below: int) -> int:
    """Its guarantee: its own, or what the queues below it need; ValueError when they contradict."""
    if 0 < queue.guarantee < below:
        raise ValueError(
            f"queue {queue.name}: the guarantees below it are {below} devices together, "
            f"more than its own {queue.guarantee}"
        )
    promised = max(queue.guarantee, below)
    if queue.limit is not None and promised > queue.limit:
        raise ValueError(
            f"queue {queue.name}: guarantees of {promised} devices do not fit "
            f"its limit of {queue.limit}"
        )
    return promised

"""Which trees of queues make no sense, said in one line for whoever wrote them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from bough.core.model import Queue
from bough.errors import nearest


def check(queues: Mapping[str, Queue], name: str) -> None:
    """ValueError when the queue of that name, just set, contradicts itself or its tree."""
    queue = queues[name]
    check_numbers(queue)
    check_parents(queues, queue)
    promised = promises(queues)
    for other in queues.values():
        below = sum(promised[q.name] for q in queues.values() if q.parent == other.name)
        if 0 < other.guarantee < below:
            raise ValueError(
                f"queue {other.name}: the guarantees below it are {below} devices together, "
                f"more than its own {other.guarantee}"
            )
        if other.limit is not None and promised[other.name] > other.limit:
            raise ValueError(
                f"queue {other.name}: guarantees of {promised[other.name]} devices do not fit "
                f"its limit of {other.limit}"
            )


def promises(queues: Mapping[str, Queue]) -> dict[str, int]:
    """Each queue's guarantee: its own, or what the queues below it need if it states none."""
    found: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in found:
            below = sum(of(q.name) for q in queues.values() if q.parent == name)
            found[name] = max(queues[name].guarantee, below)
        return found[name]

    return {name: of(name) for name in queues}


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


def check_parents(queues: Mapping[str, Queue], queue: Queue) -> None:
    """The way up ends at the root."""
    path = [queue.name]
    while queue.parent:
        if queue.parent not in queues:
            hint = nearest(queue.parent, queues)
            raise ValueError(f"queue {queue.name}: no queue is called {queue.parent!r}; {hint}")
        path.append(queue.parent)
        if queue.parent in path[:-1]:
            raise ValueError(f"queues form a circle: {' in '.join(path)}")
        queue = queues[queue.parent]

"""Who gives devices up for another, and how many, so that the least is lost by it."""

from __future__ import annotations

from collections.abc import Iterator

from bough.core.offers import Victim, cheapest
from bough.core.policy import Ints, View


def yielding(
    view: View, rows: Ints, held: Ints, need: int, prices: tuple[float, float]
) -> Iterator[tuple[int, int]]:
    """Rows that give up devices so that `need` come together, and what each keeps (0: it stops).

    The prices are the seconds that a restart and a resize cost each device that is held.
    """
    victims = [victim(view, row, int(held[row]), prices) for row in rows.tolist()]
    chosen = cheapest(victims, {n: one.devices for n, one in enumerate(victims)}, need)
    for number, count in (chosen or {}).items():
        yield int(rows[number]), victims[number].kept(count)


def victim(view: View, row: int, held: int, prices: tuple[float, float]) -> Victim:
    """A running job as preemption sees it, wherever it is; it keeps its state when it stops."""
    sizes: list[int] = view.classes.sizes[view.jobs.cls[row]].tolist()
    restart, resize = prices
    return Victim(
        id=str(row), pool=0, slots=((0, (1 << held) - 1),), parkable=True,
        sizes=tuple(sorted({size for size in sizes if size > 0})), lowest=int(view.jobs.lo[row]),
        restart_seconds=restart * held, resize_seconds=resize * held,
    )  # fmt: skip

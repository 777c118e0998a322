"""Who gives devices up for another, and how many, so that the least is lost by it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bough.core.offers import Victim, cheapest
from bough.core.order import stable_order
from bough.core.policy import Ints, View

#: So many rows are compared exactly.
LOOKED_AT = 32


def yielding(
    view: View, rows: Ints, held: Ints, need: int, prices: tuple[float, float]
) -> Iterator[tuple[int, int]]:
    """Rows that give up devices so that `need` come together, and what each keeps (0: it stops).

    The prices are the seconds that a restart and a resize cost each device that is held. Of very
    many rows, only those that yield most cheaply are looked at.
    """
    if len(rows) > LOOKED_AT:
        rows = promising(view, rows, held, need, prices)
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


def promising(
    view: View, rows: Ints, held: Ints, need: int, prices: tuple[float, float]
) -> Ints:  # fmt: skip
    """Those that give most for their price, alone or together enough several times over."""
    has, lo = held[rows], view.jobs.lo[rows]
    restart, resize = prices
    shrinks = np.maximum(has - lo, 0)
    price = np.where(shrinks > 0, resize * has / np.maximum(shrinks, 1), restart)
    gives = np.where(shrinks > 0, shrinks, has)
    order = rows[stable_order(price + restart * (gives < need) * 1e-6)]
    enough = int(held[order].cumsum().searchsorted(4 * need)) + 1
    return np.sort(order[: max(LOOKED_AT, enough)])

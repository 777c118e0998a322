"""Where power comes from and how much of it may be used: intensity, prices, and budgets."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from bough.core.model import INFINITY
from bough.core.series import Series, constant

Resource = Literal["energy", "carbon", "cost"]
#: How many joules a kWh has.
JOULES: Final = 3.6e6
GRAMS_OF_KILO: Final = 1000.0
ONE: Final = constant(1.0)
UNITS: Final[dict[Resource, str]] = {"energy": "kWh", "carbon": "kg CO2", "cost": "money"}


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """So much in each window; what is left of one is had in the next."""

    of: Resource
    #: kWh, kilograms of CO2, or money.
    amount: float
    #: Windows follow one another from the first event on; infinite: one for all.
    window_seconds: float = 86_400.0
    #: Whether what is left is carried over. What was too much is owed in any case.
    carry: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.amount < INFINITY:
            raise ValueError("a budget must be 0 or more, and finite")
        if not self.window_seconds > 0:
            raise ValueError("the window of a budget must be longer than 0")


class Supply(msgspec.Struct, frozen=True, kw_only=True):
    """What the power of a cluster is made of, and what may be used of it."""

    #: Grams of CO2 for each kWh; None: nothing is known of it, and it counts nothing.
    carbon: Series | None = None
    #: Money for each kWh.
    price: Series | None = None
    budgets: tuple[Budget, ...] = ()

    def __post_init__(self) -> None:
        for budget in self.budgets:
            if budget.of == "carbon" and self.carbon is None:
                raise ValueError("a carbon budget needs a carbon intensity")
            if budget.of == "cost" and self.price is None:
                raise ValueError("a budget of money needs a price")

    def beginning(self, at: float) -> Supply:
        """The same with series that begin at a moment."""
        given = {"carbon": self.carbon, "price": self.price}
        moved = {
            name: msgspec.structs.replace(series, start=at)
            for name, series in given.items()
            if series is not None
        }
        return msgspec.structs.replace(self, **moved)

    def series(self, of: Resource) -> Series | None:
        """What each kWh comes to over time, in grams or in units of the resource."""
        return ONE if of == "energy" else self.carbon if of == "carbon" else self.price

    def amount(self, of: Resource, watts: float, begin: float, end: float) -> float:
        """What so many watts use between two moments, in units of the resource."""
        series = self.series(of)
        return 0.0 if series is None else watts * series.integral(begin, end) / unit(of)


def unit(of: Resource) -> float:
    """Watts times the integral of the series, for one unit of the resource."""
    return JOULES * (GRAMS_OF_KILO if of == "carbon" else 1.0)

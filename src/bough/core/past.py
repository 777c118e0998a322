"""What is to be said of jobs that are over, kept small: there may be hundreds of thousands."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from bough.core.reason import Reason


class Mould(NamedTuple):
    """What reasons of one sort have in common: all but their numbers."""

    code: str
    text: str
    remedy: str
    #: Names of the facts, in their order.
    names: tuple[str, ...]


#: Number of the mould, then the facts.
Cast = tuple[int | float | str, ...]


class PastImage(msgspec.Struct, frozen=True):
    """The ends of all jobs that are over."""

    #: How they ended -> jobs, and what is to be said of those that ended otherwise than done.
    ended: dict[str, list[str]]
    moulds: tuple[Mould, ...] = ()
    casts: dict[str, Cast] = {}


class Farewells:
    """The last reason of each job that ended otherwise than done."""

    __slots__ = ("_casts", "_moulds", "_numbers")

    def __init__(self) -> None:
        self._moulds: list[Mould] = []
        self._numbers: dict[Mould, int] = {}
        self._casts: dict[str, Cast] = {}

    def keep(self, id: str, reason: Reason) -> None:
        """Remember what is to be said of a job."""
        mould = Mould(reason.code, reason.text, reason.remedy, tuple(reason.facts))
        number = self._numbers.get(mould)
        if number is None:
            number = self._numbers[mould] = len(self._moulds)
            self._moulds.append(mould)
        self._casts[id] = (number, *reason.facts.values())

    def get(self, id: str) -> Reason | None:
        """What is to be said of a job."""
        cast = self._casts.get(id)
        if cast is None:
            return None
        code, text, remedy, names = self._moulds[int(cast[0])]
        facts = dict(zip(names, cast[1:], strict=True))
        return Reason(code=code, facts=facts, text=text, remedy=remedy)

    def twin(self) -> Farewells:
        """The same, to be changed apart."""
        other = Farewells()
        other._moulds, other._numbers = self._moulds.copy(), self._numbers.copy()
        other._casts = self._casts.copy()
        return other


def image_of(ended: dict[str, str], farewells: Farewells) -> PastImage:
    """Freeze."""
    by_end: dict[str, list[str]] = {}
    for id, how in ended.items():
        by_end.setdefault(how, []).append(id)
    return PastImage(by_end, tuple(farewells._moulds), farewells._casts)


def past_of(image: PastImage) -> tuple[dict[str, str], Farewells]:
    """Thaw."""
    ended: dict[str, str] = {}
    for how, ids in image.ended.items():
        ended |= dict.fromkeys(ids, how)
    farewells = Farewells()
    farewells._moulds, farewells._casts = list(image.moulds), image.casts
    farewells._numbers = {mould: number for number, mould in enumerate(image.moulds)}
    return ended, farewells

"""How far what is believed may be from the truth, and what becomes of a job if it is so."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from bough.core import model as m
from bough.core.bill import Use
from bough.core.expected import NOBODY, Past


class Doubt(msgspec.Struct, frozen=True):
    """How far what is believed may be from the truth."""

    #: Standard deviation of the logarithm of (work of a job / what its user estimated); None: as
    #: users' estimates were seen to be wrong so far.
    estimates: float | None = None
    #: What the curves' own errors are multiplied with.
    speeds: float = 1.0
    #: What came before, and so may come again.
    past: Past = NOBODY
    #: What happens within this part of the time since now happens at once: far away, nobody asks
    #: for seconds. 0: everything at its own moment.
    grain: float = 0.02


#: What is believed is true, and nobody comes.
CERTAIN: Final = Doubt(estimates=0.0, speeds=0.0, grain=0.0)


class Belief(NamedTuple):
    """Of a job's work: what it has done, and the median and the deviation of its logarithm.

    Of work that is left the median is of that alone, and of all of it otherwise.
    """

    done: float
    median: float
    spread: float
    of_left: bool


class Fate(msgspec.Struct):
    """What becomes of a job in one version."""

    #: When it has devices (again), and when it is over; infinite: not within the horizon.
    begins: float = m.INFINITY
    ends: float = m.INFINITY
    #: How it ended.
    how: str = ""
    #: From now on.
    device_seconds: float = 0.0
    #: How often it is told to leave its devices.
    parks: int = 0
    #: Besides devices; None: nobody asked.
    use: Use | None = None

"""A process beside the daemon that runs copies of its state forward, so that nothing waits for it.

It is told everything it needs with each errand, answers, and ends when nobody is at the other end.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import BinaryIO, Final

import msgspec

from bough.core.doubt import Doubt
from bough.core.expected import Arrival, Past
from bough.core.forecast import forecast
from bough.core.model import Frozen, JobSpec
from bough.core.outlooks import Runner, in_turn, outlooks
from bough.core.prospects import Outlook, Quote
from bough.forks import Forks
from bough.server.replay import make_scheduler
from bough.server.rows import Conditions

#: Before each message: its length.
LENGTH: Final = struct.Struct(">Q")
#: Others go first: a forecast can wait, a decision cannot.
NICENESS: Final = 5


class Errand(Frozen, frozen=True):
    """What is to be foretold, and from what."""

    conditions: Conditions
    #: The scheduler as it is.
    snapshot: bytes
    now: float
    #: What was submitted in some time, and may come again.
    begin: float = 0.0
    until: float = 0.0
    arrivals: tuple[tuple[float, JobSpec], ...] = ()
    versions: int = 20
    horizon: float = 0.0
    #: To be quoted; None: the jobs of these ids are to be followed.
    spec: JobSpec | None = None
    ids: tuple[str, ...] = ()


class Answer(Frozen, frozen=True):
    """What was seen."""

    quote: Quote | None = None
    outlooks: dict[str, Outlook] = msgspec.field(default_factory=dict)
    #: Our own mistake, in words.
    error: str = ""


def foretell(errand: Errand, run: Runner = in_turn) -> Answer:
    """Run copies of that state forward."""
    scheduler = make_scheduler(errand.conditions)
    scheduler.from_bytes(errand.snapshot)
    arrivals = [Arrival(at, spec) for at, spec in errand.arrivals]
    doubt = Doubt(past=Past(errand.begin, errand.until, arrivals))
    if errand.spec is not None:
        found = forecast(
            scheduler, errand.spec, errand.versions, errand.horizon, doubt=doubt, now=errand.now,
            run=run,
        )  # fmt: skip
        return Answer(quote=found)
    # Nobody waits for these, and they are asked for often: no more than one processor for them.
    seen = outlooks(
        scheduler, errand.ids, doubt, versions=errand.versions, horizon=errand.horizon,
        now=errand.now,
    )  # fmt: skip
    return Answer(outlooks=seen)


# --------------------------------------------------------------------------- the process


def send(out: BinaryIO, message: Frozen) -> None:
    """One message."""
    data = msgspec.msgpack.encode(message)
    out.write(LENGTH.pack(len(data)))
    out.write(data)
    out.flush()


def receive(given: BinaryIO) -> bytes | None:
    """The next message; None: there is none any more."""
    head = given.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = given.read(length)
    return data if len(data) == length else None


def main() -> None:
    """Until nobody asks any more."""
    os.nice(NICENESS)
    run = Forks()
    while (data := receive(sys.stdin.buffer)) is not None:
        try:
            answer = foretell(msgspec.msgpack.decode(data, type=Errand), run)
        except Exception as error:
            answer = Answer(error=f"{type(error).__name__}: {error}")
        send(sys.stdout.buffer, answer)


if __name__ == "__main__":
    main()

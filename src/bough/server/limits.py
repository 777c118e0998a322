"""How much one sender may ask at once, so that nobody can keep the others from being heard."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from bough.errors import TooManyError

#: Senders that are remembered; those who ask little are forgotten first.
SENDERS_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a sender may do, and for how long we wait for it."""

    #: Of one user; so many may come at once.
    requests_per_second: float = 2000.0
    requests_burst: float = 2000.0
    #: Of the whole server, and of one user or address.
    connections: int = 1024
    connections_each: int = 256
    #: Of what one sender's requests carry, while they are read and answered.
    body_bytes_each: int = 128 << 20
    header_bytes: int = 64 << 10
    #: For all headers of a request.
    header_seconds: float = 10.0
    #: For what a request carries: so long, and one more second for each so many bytes.
    body_seconds: float = 15.0
    body_bytes_per_second: float = 64 << 10
    #: Until a connection that nobody uses is closed.
    idle_seconds: float = 120.0
    #: A reader that takes nothing for so long is given up.
    stuck_seconds: float = 60.0
    #: For answers that are under way when the server ends.
    farewell_seconds: float = 5.0


class Buckets:
    """A bucket of requests for each sender, which fills up with time."""

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        #: What is left, and when that was so.
        self._left: dict[Hashable, tuple[float, float]] = {}

    def take(self, sender: Hashable) -> None:
        """One request; TooManyError when the bucket is empty."""
        now = self._clock()
        left, then = self._left.get(sender, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        if left < 1:
            wait = (1 - left) / self._rate
            raise TooManyError(f"more than {self._rate:g} requests a second", wait)
        if len(self._left) >= SENDERS_MAX and sender not in self._left:
            self._forget(now)
        self._left[sender] = left - 1, now

    def _forget(self, now: float) -> None:
        """Full buckets are as good as none."""
        full = self._burst / self._rate
        self._left = {who: (n, at) for who, (n, at) in self._left.items() if now - at < full}
        while len(self._left) >= SENDERS_MAX:
            self._left.pop(next(iter(self._left)))


class Loads:
    """Bytes of requests that are being read or answered, by who sent them: they lie in memory."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.body_bytes_each
        self._held = Counter[Hashable]()

    def take(self, sender: Hashable, size: int) -> None:
        """So many more; TooManyError when that is too much."""
        if self._held[sender] + size > self._most:
            raise TooManyError(f"more than {self._most >> 20} MiB are on their way to us", 1.0)
        self._held[sender] += size

    def give_back(self, sender: Hashable, size: int) -> None:
        """So many less."""
        self._held[sender] -= size
        if self._held[sender] <= 0:
            del self._held[sender]


class Places:
    """Connections that are open, by who opened them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open = Counter[Hashable]()

    def enter(self, sender: Hashable) -> bool:
        """Whether there is room for one more."""
        limits = self._limits
        if self._open.total() >= limits.connections:
            return False
        if self._open[sender] >= limits.connections_each:
            return False
        self._open[sender] += 1
        return True

    def leave(self, sender: Hashable) -> None:
        """One less."""
        self._open[sender] -= 1
        if not self._open[sender]:
            del self._open[sender]

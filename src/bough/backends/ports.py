"""Ports for the meetings of workers, so that two jobs on one machine never meet each other."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Final

#: Below those the kernel gives to whoever connects (32768 and up, unless somebody changed that).
LOWEST: Final = 20_000
HIGHEST: Final = 32_000


class Ports:
    """Which ports are given out. What other programs use is found by trying."""

    def __init__(self, begin: int = 0) -> None:
        """Two daemons on one machine begin at different places, and so rarely try the same one."""
        self._next = LOWEST + begin % (HIGHEST - LOWEST)
        self._given: dict[str, tuple[int, ...]] = {}

    def take(self, job: str, count: int) -> tuple[int, ...]:
        """So many ports that nobody has; they stay the job's until it is forgotten."""
        given = {port for ports in self._given.values() for port in ports}
        found: list[int] = []
        for _ in range(HIGHEST - LOWEST):
            if len(found) == count:
                break
            port = self._next
            self._next = LOWEST + (port + 1 - LOWEST) % (HIGHEST - LOWEST)
            if port not in given and is_free(port):
                found.append(port)
        else:
            raise OSError(f"no {count} free ports between {LOWEST} and {HIGHEST}")
        self._given[job] = tuple(found)
        return tuple(found)

    def remember(self, job: str, ports: Iterable[int]) -> None:
        """The job has these since before we began."""
        self._given[job] = tuple(ports)

    def forget(self, job: str) -> None:
        """The job is gone."""
        self._given.pop(job, None)


def is_free(port: int) -> bool:
    """Whether a server could listen there now, on any address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True

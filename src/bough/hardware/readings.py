"""What is known of a device, and what its meters say: the words all makers' tools are read into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class NotHere(Exception):
    """A tool or a driver gives no devices; the message is a sentence that says why."""


class DeviceUser(NamedTuple):
    """A process that uses a device."""

    #: 0: nobody tells, but somebody must have all that memory.
    pid: int
    #: Of the device's memory; None: nobody can tell.
    bytes: int | None = None
    #: Empty where the number means nothing here: it is of another container, or just gone.
    user: str = ""
    name: str = ""

    @property
    def known(self) -> bool:
        """There is such a process here."""
        return bool(self.user)


class Reading(NamedTuple):
    """One device at one moment; None where its maker's tool does not say."""

    #: As its maker calls it, and what tells it from all others.
    model: str = ""
    uuid: str = ""
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    temperature: float | None = None
    watts: float | None = None
    #: A counter that only grows, until the driver is loaded anew.
    joules: float | None = None
    #: Part of the time it was busy lately.
    utilisation: float | None = None
    #: A sentence; empty: it is well.
    ailment: str = ""
    #: What runs on it is lost. Otherwise an ailing device only takes nothing new.
    broken: bool = False
    #: Who computes on it; None: nobody can tell.
    users: tuple[DeviceUser, ...] | None = None


class Device(NamedTuple):
    """What does not change while the driver is loaded."""

    #: As the maker's programs count, in the order of the PCI bus.
    number: int
    #: Short and in lower case, as in a job file.
    kind: str
    model: str
    uuid: str = ""
    #: The part of the machine it hangs on; -1: unknown.
    socket: int = -1


class Links(NamedTuple):
    """How devices of one maker reach each other."""

    #: Pairs of numbers with links of their own.
    direct: frozenset[tuple[int, int]] = frozenset()
    #: Bytes per second, both directions together; None: unknown.
    direct_bandwidth: float | None = None
    bus_bandwidth: float | None = None


class Source(Protocol):
    """One way to ask for devices: a library, or a program whose output is read."""

    @property
    def maker(self) -> str: ...
    @property
    def devices(self) -> tuple[Device, ...]: ...
    @property
    def links(self) -> Links: ...
    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Tool, driver and versions, for a user to read."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what could be better."""

    @property
    def seconds(self) -> float:
        """Asking more often would cost too much; infinite: there is nothing to ask."""

    def read(self) -> Mapping[int, Reading]:
        """All devices now, by their numbers; NotHere when nothing answers."""

    def forgive(self) -> None:
        """Forget failures that are remembered: somebody has seen to them."""


#: (node, device number of the node) -> what was read.
Readings = Mapping[tuple[str, int], Reading]

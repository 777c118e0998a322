"""What a reading means: whether a device may be handed out, and if not, why, in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from bough.core.units import format_size
from bough.hardware.readings import DeviceUser, Reading

#: Servants of the driver: those whom they serve are listed by themselves.
_SERVANTS: Final = ("nvidia-cuda-mps", "nvidia-persiste", "nv-hostengine")


class Verdict(NamedTuple):
    """How a device is to be treated."""

    state: Literal["well", "taken", "unhealthy"] = "well"
    #: Who has taken it, or what ails it.
    note: str = ""
    #: What runs on it is lost: there is nothing to wait for.
    broken: bool = False


def verdict(reading: Reading, ours: Callable[[int], bool], held: bool) -> Verdict:
    """Of one device, given whose processes are ours, and whether a job of ours holds it."""
    if reading.ailment:
        return Verdict("unhealthy", reading.ailment, reading.broken)
    foreign = [user for user in reading.users or () if _is_foreign(user, ours, held)]
    if not foreign:
        return Verdict()
    foreign.sort(key=lambda user: -(user.bytes or 0))
    others = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
    return Verdict("taken", f"taken by {_named(foreign[0])}{others}")


def _is_foreign(user: DeviceUser, ours: Callable[[int], bool], held: bool) -> bool:
    if user.known:
        return not user.name.startswith(_SERVANTS) and not ours(user.pid)
    # Not of this machine, as we see it: of another container, or ours inside one of its own.
    return not held


def _named(user: DeviceUser) -> str:
    """`ada's python (pid 4711, 20 GiB)`."""
    size = "" if user.bytes is None else format_size(user.bytes)
    if user.known:
        facts = ", ".join(text for text in (f"pid {user.pid}", size) if text)
        return f"{user.user}'s {user.name or 'process'} ({facts})"
    facts = ", ".join(text for text in (f"pid {user.pid}" if user.pid else "", size) if text)
    return "somebody outside this container" + (f" ({facts})" if facts else "")

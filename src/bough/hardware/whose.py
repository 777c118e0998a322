"""Whose a process is: the user's and its own name, and whether it belongs to a job of ours."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Collection

from bough.hardware.readings import DeviceUser

#: A chain of parents longer than this is no chain.
_DEPTH_MAX = 1000


def device_user(pid: int, size: int | None) -> DeviceUser:
    """A process that uses a device, with names where this machine knows it."""
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            name = file.read().strip()
    except OSError:
        return DeviceUser(pid, size)
    return DeviceUser(pid, size, _user_name(uid), name)


def ours_below(roots: Callable[[], Collection[int]]) -> Callable[[int], bool]:
    """Tells processes of our jobs, given the numbers of the jobs' shims and workers.

    A worker leads a session of its own, and whoever leaves that session is still a descendant of
    the worker or, once its parents are gone, of the shim.
    """

    def ours(pid: int) -> bool:
        known = roots()
        for _ in range(_DEPTH_MAX):
            parent, session = _parent_and_session(pid)
            if pid in known or session in known:
                return True
            if parent <= 1:
                return False
            pid = parent
        return False

    return ours


def _parent_and_session(pid: int) -> tuple[int, int]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            line = file.read()
        # The name, in brackets, may itself hold blanks and brackets; what follows it may not.
        fields = line[line.rindex(")") + 2 :].split(" ", 4)
        return int(fields[1]), int(fields[3])
    except (OSError, ValueError, IndexError):
        return 0, 0


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)

"""What the process that submits a job may use, as the kernel has it: its limits, and its umask.

A job shall be able to do what a program started by hand could, and no more. Nobody is asked for
their own limits: the kernel tells those of whoever holds the other end of the socket.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from bough.errors import ForbiddenError
from bough.records import Submission
from bough.server.permissions import Caller

replace = msgspec.structs.replace
#: Lines of /proc/PID/limits: their names in `ulimit` and in bough.records.Recipe.
NAMES: Final = {
    "Max cpu time": "cpu",
    "Max file size": "fsize",
    "Max data size": "data",
    "Max stack size": "stack",
    "Max core file size": "core",
    "Max resident set": "rss",
    "Max processes": "nproc",
    "Max open files": "nofile",
    "Max locked memory": "memlock",
    "Max address space": "as",
    "Max pending signals": "sigpending",
    "Max msgqueue size": "msgqueue",
    "Max nice priority": "nice",
    "Max realtime priority": "rtprio",
    "Max realtime timeout": "rttime",
}
ENDLESS: Final = -1
#: Larger numbers are as good as no limit, and JSON does not know them.
_NUMBER_MAX: Final = 1 << 53
_BYTES: Final = 16 << 10


class Bounds(NamedTuple):
    """What a process may use."""

    umask: int | None
    #: By name: the limit, and how far the process may raise it; -1 has no end.
    limits: dict[str, tuple[int, int]]


def bound(caller: Caller, given: Sequence[Submission], *, shared: bool) -> Sequence[Submission]:
    """The same jobs, held to what their submitter may use; `shared` when users do not trust us.

    Who comes over the network has no process here: then the daemon's own limits hold.
    """
    bounds = Bounds(None, {})
    if caller.uid >= 0 and caller.pid > 0:
        found = bounds_of(caller.pid, caller.uid)
        if found is None and shared:  # else one would get ours by ending quickly
            raise ForbiddenError("The process that asks for this is gone, so nobody wants it.")
        bounds = found or bounds
    return tuple(_bounded(each, bounds) for each in given)


def _bounded(given: Submission, bounds: Bounds) -> Submission:
    umask = bounds.umask if given.recipe.umask is None else given.recipe.umask
    recipe = replace(given.recipe, umask=umask, limits=bounds.limits)
    return replace(given, recipe=recipe)


def bounds_of(pid: int, uid: int) -> Bounds | None:
    """None when the process is gone, or the number is that of somebody else's by now."""
    try:
        process = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:  # through one handle, so that all that is read is of one process
        status, limits = _read(process, "status"), _read(process, "limits")
    except OSError:
        return None
    finally:
        os.close(process)
    said = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    if int(said["Uid"].split()[1]) != uid:
        return None
    umask = said.get("Umask")  # Linux 4.7
    return Bounds(None if umask is None else int(umask, 8), limits_in(limits))


def limits_in(text: str) -> dict[str, tuple[int, int]]:
    """What /proc/PID/limits says."""
    found = {}
    for line in text.splitlines()[1:]:
        title = line[:26].rstrip()
        if title in NAMES:
            soft, hard, *_ = line[26:].split()
            found[NAMES[title]] = _number(soft), _number(hard)
    return found


def _number(word: str) -> int:
    if word == "unlimited" or int(word) > _NUMBER_MAX:
        return ENDLESS
    return int(word)


def _read(process: int, name: str) -> str:
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=process)
    try:
        return os.read(file, _BYTES).decode("ascii", "replace")
    finally:
        os.close(file)

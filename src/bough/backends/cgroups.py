"""A cgroup for each attempt, where the system lends us a part of its tree: memory held to a limit.

Without one (no cgroup v2, nothing delegated) every function does nothing, and the shim looks after
the limit itself. The shim imports this, so it keeps to the standard library.
"""

from __future__ import annotations

import contextlib
import os

_MOUNTS, _MINE = "/proc/self/mountinfo", "/proc/self/cgroup"
#: How systemd marks what it has given away; the first may be seen by all, the second by root.
_MARKS = ("user.delegate", "trusted.delegate")


def parent() -> str:
    """The directory in which attempts may have theirs, held to limits of memory; else empty."""
    return limited(lent())


def lent() -> str:
    """The directory in which ours lies, if it was given to us; else empty.

    A cgroup with processes cannot have limited children, so the daemon lives in a leaf of what was
    delegated to it, and attempts get leaves next to it. What was not is the system's to change,
    whatever root could do to it.
    """
    try:
        with open(_MOUNTS, encoding="utf-8") as file:
            lines = [line.split() for line in file]
        root = next(line[4] for line in lines if "cgroup2" in line[line.index("-") :])
        with open(_MINE, encoding="utf-8") as file:
            mine = next(line[3:].strip() for line in file if line.startswith("0::"))
        beside = os.path.dirname(os.path.join(root, mine.lstrip("/")))
        return beside if _is_ours(beside) else ""
    except (OSError, StopIteration, IndexError, ValueError):
        return ""


def _is_ours(path: str) -> bool:
    if os.stat(path).st_uid == os.geteuid() != 0:
        return True
    for mark in _MARKS:
        with contextlib.suppress(OSError):  # no such mark, or no marks at all here
            if os.getxattr(path, mark) == b"1":
                return True
    return False


def prepare() -> str:
    """Have the kernel count memory in what was lent to us; where attempts may have theirs, if so.

    systemd leaves that to whom it gives a part of its tree. Called once, by the daemon.
    """
    path = lent()
    with contextlib.suppress(OSError):  # then the shims look after the limits themselves
        if path and not limited(path):
            _write(path, "cgroup.subtree_control", "+memory")
    return limited(path)


def limited(path: str) -> str:
    """That directory, if its children have limits of memory and we may make some."""
    try:
        with open(os.path.join(path, "cgroup.subtree_control"), encoding="ascii") as file:
            usable = "memory" in file.read().split() and os.access(path, os.W_OK)
            return path if path and usable else ""
    except OSError:
        return ""


def make(name: str, memory_max: int, within: str | None = None) -> str:
    """A new one with that limit; its directory, or nothing where there can be none."""
    base = parent() if within is None else limited(within)
    if not base:
        return ""
    path = os.path.join(base, name)
    try:
        os.mkdir(path)
        _write(path, "memory.max", str(memory_max))
        _write(path, "memory.oom.group", "1")
    except OSError:
        remove(path)
        return ""
    with contextlib.suppress(OSError):  # a kernel without swap has no such limit
        _write(path, "memory.swap.max", "0")
    return path


def enter(path: str) -> None:
    """This process, and what it will start, belongs to it from now on."""
    if path:
        _write(path, "cgroup.procs", "0")


def kill(path: str) -> None:
    """Everybody in it at once (Linux 5.14)."""
    with contextlib.suppress(OSError):
        if path:
            _write(path, "cgroup.kill", "1")


def was_out_of_memory(path: str) -> bool:
    """Whether the limit has cost somebody their life."""
    try:
        with open(os.path.join(path, "memory.events"), encoding="ascii") as file:
            counts = dict(line.split() for line in file)
            return bool(path) and int(counts.get("oom_kill", "0")) > 0
    except (OSError, ValueError):
        return False


def remove(path: str) -> None:
    """It is empty, and no longer needed."""
    with contextlib.suppress(OSError):
        if path:
            os.rmdir(path)


def _write(path: str, name: str, text: str) -> None:
    fd = os.open(os.path.join(path, name), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)

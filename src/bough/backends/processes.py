"""Which processes there are, told apart for certain: a number alone may be reused.

The shim imports this, so it keeps to the standard library and to modules that are small.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Process:
    """One process, as its line in /proc had it."""

    __slots__ = ("group", "parent", "pid", "session", "start_ticks", "state")

    def __init__(self, pid: int, line: str) -> None:
        # The name, in brackets, may itself hold blanks and brackets; what follows it may not.
        fields = line[line.rindex(")") + 2 :].split(" ", 20)
        self.pid = pid
        self.state = fields[0]
        self.parent, self.group, self.session = int(fields[1]), int(fields[2]), int(fields[3])
        #: Field 22: when it began, in clock ticks since the machine did.
        self.start_ticks = int(fields[19])

    @property
    def ended(self) -> bool:
        """It is dead, and only its exit code is still to be fetched."""
        return self.state in "ZX"


def boot_id() -> str:
    """Names this run of the machine; another one after each reboot."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def find(pid: int) -> Process | None:
    """The process with that number, if there is one (it may have ended, and wait to be reaped)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return Process(pid, file.read())
    except (OSError, ValueError):
        return None


def everyone() -> list[Process]:
    """All processes that we may see and that have not ended."""
    found = (find(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in found if process is not None and not process.ended]


def handle_of(process: Process) -> int:
    """A handle on that very process; ProcessLookupError if it is gone, whoever has its number."""
    handle = os.pidfd_open(process.pid)
    now = find(process.pid)  # after the handle: it and the number mean the same now
    if now is None or now.start_ticks != process.start_ticks:
        os.close(handle)
        raise ProcessLookupError
    return handle


def send(process: Process, number: int) -> None:
    """A signal to that very process: we may be root, and the number somebody else's by now."""
    handle = handle_of(process)
    try:
        signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


def user_of(pid: int) -> int:
    """Whose it is; -1 when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return int(next(line for line in file if line.startswith("Uid:")).split()[1])
    except (OSError, StopIteration, ValueError):
        return -1


def descendants(root: int) -> list[Process]:
    """Children, their children and so on, parents before children."""
    children: dict[int, list[Process]] = {}
    for process in everyone():
        children.setdefault(process.parent, []).append(process)
    found = list(children.get(root, ()))
    for process in found:  # grows while we walk it
        found.extend(children.get(process.pid, ()))
    return found


def memory_bytes(processes: Iterable[Process], at_least: int) -> int:
    """What they use together; counted exactly only when it may be `at_least` that much.

    Pages shared by several are cheap to count several times, and slow to count rightly.
    """
    listed = list(processes)
    if (rough := sum(map(_resident_bytes, listed))) < at_least:
        return rough
    return sum(map(_proportional_bytes, listed))


def _resident_bytes(process: Process) -> int:
    try:
        with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional_bytes(process: Process) -> int:
    """Pages shared by n processes count 1/n; where that is not told, they count fully."""
    try:
        with open(f"/proc/{process.pid}/smaps_rollup", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return _resident_bytes(process)

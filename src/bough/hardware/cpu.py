"""CPUs and memory that are really ours, container limits counted; and CPU slots as devices."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from bough.hardware.readings import Device, Links, Reading

#: Version 1 writes a limit near the largest number for "none".
_NO_LIMIT = 1 << 60


class Slots:
    """CPU slots: they have no meters, and do not fail by themselves."""

    maker = ""
    links = Links()
    notes: tuple[str, ...] = ()
    seconds = math.inf

    def __init__(self, count: int, why: str = "") -> None:
        self.devices = tuple(Device(number, "cpu", "CPU slot") for number in range(count))
        self.facts = (("CPU slots", f"{count} ({why})" if why else str(count)),)

    def read(self) -> Mapping[int, Reading]:
        return {device.number: Reading(model=device.model) for device in self.devices}

    def forgive(self) -> None:
        pass


def cpus(root: Path = Path("/")) -> float:
    """CPUs this process may use: those it may run on, and the quota of its cgroup."""
    found = float(len(os.sched_getaffinity(0)))
    for directory in _cgroups(root):
        found = min(found, _quota(directory))
    return found


def memory(root: Path = Path("/")) -> float:
    """Bytes of memory this process may use: the machine's, and the limit of its cgroup."""
    found = math.inf
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:") and line.split()[1].isdecimal():
            found = float(int(line.split()[1]) << 10)
    for directory in _cgroups(root):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read(directory / name).strip()
            if text.isdecimal() and 0 < int(text) < _NO_LIMIT:
                found = min(found, float(text))
    return found


def _quota(directory: Path) -> float:
    """CPUs by the quota of one cgroup, of either version."""
    words = _read(directory / "cpu.max").split() or [
        _read(directory / "cpu.cfs_quota_us").strip(),
        _read(directory / "cpu.cfs_period_us").strip(),
    ]
    if len(words) == 2 and all(word.isdecimal() and int(word) for word in words):
        return int(words[0]) / int(words[1])
    return math.inf


def _cgroups(root: Path) -> Iterator[Path]:
    """The cgroups this process is in, each with all around it: the tightest limit counts."""
    mounts = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        bases = [controllers, *controllers.split(",")] if controllers else ["", "unified"]
        inside = Path(path.strip().lstrip("/"))
        for base in dict.fromkeys(bases):
            for part in (inside, *inside.parents):
                yield mounts / base / part


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

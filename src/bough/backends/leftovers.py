"""What earlier attempts left running: what of it may go on elsewhere, and what nobody wants."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from bough.backends import attempts, processes
from bough.backends.launcher import Attempt
from bough.backends.render import maker
from bough.core.model import Node, Start


def fits(frozen: Path, start: Start, nodes: Mapping[str, Node]) -> bool:
    """CPU slots are as good as any others; on devices, it has memory on those it left."""
    launch = attempts.read_launch(frozen)
    if launch is None:
        return False
    if launch.place == start.place:
        return True
    counts = [
        sorted((maker(nodes[node]), node, len(devices)) for node, devices in place)
        for place in (launch.place, start.place)
    ]
    return counts[0] == counts[1] and not any(kind for kind, _, _ in counts[0])


def strays(home: Path, live: Collection[str]) -> Iterator[tuple[Attempt, int]]:
    """Attempts whose job is over, or never was, and handles on the shims that watch over them."""
    jobs = home / "jobs"
    for process in processes.everyone():
        words = _command(process.pid)
        if len(words) < 2 or not words[-2].endswith("shim.py"):
            continue
        directory = Path(words[-1])
        job, epoch = directory.parent.name, directory.name
        if directory.parent.parent != jobs or job in live or not epoch.isdecimal():
            continue
        if attempts.read_launch(directory) is None:  # whatever it is, it is not ours
            continue
        if not (directory / "shim.json").exists() and attempts.void(directory):
            continue  # it will find that it is not to begin
        facts = attempts.read_shim(directory)
        pidfd = attempts.pidfd_of(facts) if facts and facts.pid == process.pid else None
        if pidfd is not None:
            yield Attempt(job, int(epoch), directory, "frozen"), pidfd


def _command(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    except OSError:
        return []

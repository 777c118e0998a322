"""Whether this machine has what bough needs: Python, devices, limits, ports, a clock that runs."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import socket
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from bough.cli.finding import Finding, fail, ok, warn

PYTHON_MIN: Final = (3, 11)
#: Extra: the module that comes with it, and what it is for.
EXTRAS: Final = {
    "fast": ("numba", "quicker sharing among many jobs"),
    "nvidia": ("pynvml", "meters and failures of NVIDIA devices"),
    "tui": ("textual", "bough top"),
    "tls": ("cryptography", "a certificate for bough up --listen"),
    "postgres": ("psycopg", "a store on PostgreSQL"),
}
#: A few for each job: its shim's, its log's, and those who follow it.
FILES_MIN, FILES_ENOUGH = 256, 4096
PROCESSES_ENOUGH: Final = 1024
PORTS_TRIED: Final = 16
#: Bough was not yet written.
CLOCK_MIN: Final = 1_700_000_000
INOTIFY: Final = Path("/proc/sys/fs/inotify/max_user_instances")
EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def look() -> Iterator[Finding]:
    """All of the machine, in the order in which it is told."""
    yield python()
    yield extras()
    yield from devices()
    yield cgroups()
    yield inotify()
    yield from limits()
    yield ports()
    yield clock()


def python() -> Finding:
    text = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < PYTHON_MIN:
        return fail("Python", text, "install bough with Python 3.11 or newer")
    return ok("Python", text)


def extras() -> Finding:
    """They are optional: missing is no fault, unless something here could use one."""
    there = [name for name, (module, _) in EXTRAS.items() if find_spec(module) is not None]
    missing = [name for name in EXTRAS if name not in there]
    text = f"{', '.join(there) or 'none'}"
    text += f"; not there: {', '.join(missing)}" if missing else ""
    if "nvidia" in missing and Path("/proc/driver/nvidia/version").exists():
        todo = "pip install 'bough[nvidia]' to see how the devices fare"
        return warn("extras", text, todo)
    return ok("extras", text)


def devices() -> Iterator[Finding]:
    """What is found, and by which tool."""
    from bough.errors import InputError
    from bough.hardware.probe import probe

    try:
        machine = probe()
    except (InputError, OSError) as error:
        yield fail("devices", str(error), "bough up --devices cpu:4 would use CPU slots")
        return
    kinds = ", ".join(f"{node.devices} × {node.kind}" for node in machine.nodes)
    yield ok("devices", kinds)
    names = {node.name for node in machine.nodes}
    for name, text in machine.facts:
        if name not in names:
            yield ok(name, text)
    for note in machine.notes:
        yield warn("devices", note)


def cgroups() -> Finding:
    """Lent to us, the kernel holds memory limits; else the shim looks after them."""
    from bough.backends import cgroups as rooms

    parent = rooms.parent()
    if parent:
        return ok("cgroup v2", f"lent to us at {parent}: the kernel holds memory limits")
    text = "not lent to us: memory limits are looked after once a second, not by the kernel"
    todo = "a service has it: bough up --install"
    return warn("cgroup v2", text, todo)


def inotify() -> Finding:
    """Programs that follow logs need it; whether there is one left shows by taking it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        return warn("inotify", "this system has none: logs are looked at now and then")
    number = libc.inotify_init1(os.O_CLOEXEC)
    if number < 0:
        why = os.strerror(ctypes.get_errno())
        return warn("inotify", why, "raise fs.inotify.max_user_instances with sysctl")
    os.close(number)
    most = read(INOTIFY)
    return ok("inotify", f"up to {most} instances" if most else "works")


def limits() -> Iterator[Finding]:
    """Open files and processes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = f"{many(soft)} open files (up to {many(hard)})"
    todo = "raise it with ulimit -n, or in /etc/security/limits.conf"
    if 0 <= hard < FILES_MIN:
        yield fail("open files", text, todo)
    elif 0 <= hard < FILES_ENOUGH:
        yield warn("open files", f"{text}: too few for many jobs at once", todo)
    else:
        yield ok("open files", text)
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    text = f"{many(soft)} processes"
    if 0 <= soft < PROCESSES_ENOUGH:
        yield warn("processes", f"{text}: few for jobs with data loaders", "raise ulimit -u")
    else:
        yield ok("processes", text)


def many(limit: int) -> str:
    return "any number of" if limit == resource.RLIM_INFINITY else f"{limit:,}"


def ports() -> Finding:
    """Workers meet at ports of this machine."""
    from bough.backends.ports import HIGHEST, LOWEST, is_free

    try:
        with socket.socket() as server, socket.socket() as client:
            server.bind(("127.0.0.1", 0))
            server.listen()
            client.connect(server.getsockname())
    except OSError as error:
        todo = "bring up the loopback device: ip link set lo up"
        return fail("ports", f"nobody can be met on 127.0.0.1: {error.strerror}", todo)
    step = (HIGHEST - LOWEST) // PORTS_TRIED
    free = sum(is_free(port) for port in range(LOWEST, HIGHEST, step))
    text = f"{LOWEST} to {HIGHEST} for workers to meet"
    first = (read(EPHEMERAL) or "32768").split()[0]
    if first.isdecimal() and int(first) < HIGHEST:
        text += f", but the system gives out those from {first} too"
        return warn("ports", text, "sysctl net.ipv4.ip_local_port_range='32768 60999'")
    if not free:
        return warn("ports", f"{text}: those tried are all in use", "see who has them: ss -ltn")
    return ok("ports", text)


def clock() -> Finding:
    """Deadlines and waits are told by it."""
    now = time.time()
    text = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now))
    if now < CLOCK_MIN:
        return fail("clock", text, "set it: timedatectl set-ntp true")
    return ok("clock", text)


def read(path: Path) -> str:
    """A file of the kernel's; empty where it has none."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""

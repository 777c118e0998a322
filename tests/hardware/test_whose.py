"""Whose a process is, by real ones: a worker's, those that left its session, and strangers'."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bough.hardware.readings import DeviceUser
from bough.hardware.whose import device_user, ours_below

#: A shim that adopts (36: PR_SET_CHILD_SUBREAPER), its worker, a child of the worker in its
#: session, and one that left the session and whose parent is gone. Each says its number; all end
#: with the input. One calls itself by a name (15: PR_SET_NAME) that looks like the end of another
#: field.
FAMILY = r"""
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.prctl(36, 1, 0, 0, 0)

def stays(name):
    os.write(1, f"{name} {os.getpid()}\n".encode())
    os.read(0, 1)
    os._exit(0)

if not os.fork():
    os.setsid()
    if not os.fork():
        libc.prctl(15, b") R 1 1 (x) y", 0, 0, 0)
        stays("child")
    middle = os.fork()
    if not middle:
        os.setsid()
        if not os.fork():
            stays("runaway")
        os._exit(0)
    os.waitpid(middle, 0)
    stays("worker")
stays("shim")
"""


@pytest.fixture
def family() -> Iterator[dict[str, int]]:
    with subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as shim:
        assert shim.stdout is not None
        lines = [shim.stdout.readline().split() for _ in range(4)]
        yield {name: int(pid) for name, pid in lines}


def test_all_below_a_shim_are_ours(family: dict[str, int]) -> None:
    ours = ours_below(lambda: {family["shim"]})
    assert {name for name, pid in family.items() if ours(pid)} == set(family)


def test_the_session_of_a_worker_is_ours(family: dict[str, int]) -> None:
    ours = ours_below(lambda: {family["worker"]})
    assert ours(family["worker"])
    assert ours(family["child"])
    assert not ours(family["shim"])


def test_strangers_are_not(family: dict[str, int], foreigner: subprocess.Popen[bytes]) -> None:
    ours = ours_below(lambda: set(family.values()))
    assert not ours(foreigner.pid)
    assert not ours(os.getpid())
    assert not ours(1)
    assert not ours(4_000_000)
    assert not ours(0)


def test_who_is_a_job_is_asked_anew_each_time(foreigner: subprocess.Popen[bytes]) -> None:
    jobs: set[int] = set()
    ours = ours_below(lambda: jobs)
    assert not ours(foreigner.pid)
    jobs.add(foreigner.pid)
    assert ours(foreigner.pid)


def test_a_process_by_name(family: dict[str, int]) -> None:
    found = device_user(family["child"], 5 << 20)
    assert found == DeviceUser(family["child"], 5 << 20, getpass.getuser(), ") R 1 1 (x) y")
    assert found.known


def test_a_process_that_has_just_gone(foreigner: subprocess.Popen[bytes]) -> None:
    foreigner.send_signal(signal.SIGKILL)
    foreigner.wait()
    found = device_user(foreigner.pid, None)
    assert found == DeviceUser(foreigner.pid, None)
    assert not found.known

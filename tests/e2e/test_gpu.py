"""A real NVIDIA device through the public commands: held, counted, taken by others, given back.

Stands alone: run it anywhere with `pytest tests/e2e/test_gpu.py`.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.daemons import Daemon
from tests.hardware.test_real_gpu import HELD_BYTES, HOLDER

from bough.hardware.readings import NotHere

#: Seen with --log-cli-level=info.
log = logging.getLogger(__name__)

#: The meters are read every five seconds, and twice before a device is said to be taken.
PATIENCE_SECONDS = 40.0
#: Keeps the device busy by the driver alone: its memory is filled again and again.
BUSY = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def check(code):
    if code:
        sys.exit(f"CUDA error {code}")
count, device, context, memory = (ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p(),
                                  ctypes.c_uint64())
check(cuda.cuInit(0))
check(cuda.cuDeviceGetCount(ctypes.byref(count)))
print("devices", count.value, flush=True)
check(cuda.cuDeviceGet(ctypes.byref(device), 0))
check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
size = 2 << 30
check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size)))
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    for _ in range(100):
        check(cuda.cuMemsetD32_v2(memory, 7, ctypes.c_size_t(size // 4)))
    check(cuda.cuCtxSynchronize())
"""


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    from bough.hardware import nvidia

    try:
        nvidia.find()
    except NotHere as error:
        pytest.skip(f"no NVIDIA device here: {str(error) or 'no driver'}")
    daemon = Daemon(tmp_path_factory.mktemp("gpus") / "home")
    daemon.env.pop("CUDA_VISIBLE_DEVICES", None)
    done = daemon.bough("up", "--devices", "nvidia")
    assert done.returncode == 0, done.stderr
    yield daemon
    daemon.clear()


def devices(daemon: Daemon) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(daemon.bough("devices", "--json").stdout)
    return found


def first_is(daemon: Daemon, *states: str) -> dict[str, Any]:
    """The first device, once it is so; the meters are read now and then."""
    until = time.monotonic() + PATIENCE_SECONDS
    for happening in daemon.client().events(0):
        (first, *_) = devices(daemon)
        if first["state"] in states:
            return first
        assert time.monotonic() < until, (first, happening)
    raise AssertionError("the daemon ended")


def test_what_is_known_of_it(gpus: Daemon) -> None:
    (first, *_) = devices(gpus)
    assert first["kind"] != "cpu"
    assert first["memory_bytes"] > 1 << 30
    assert first["watts"] > 0
    assert first["state"] == "free", first
    doctor = gpus.bough("doctor")
    assert doctor.returncode == 0, doctor.stdout


def test_a_job_has_its_device_and_a_receipt_for_its_power(gpus: Daemon) -> None:
    done = gpus.bough("run", "--name", "busy", "-g", "1", "--", sys.executable, "-c", BUSY, "12")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "devices 1" in done.stdout, "it sees its own device and no other"
    first_is(gpus, "free")
    receipt = gpus.client().receipt("busy")
    assert receipt.energy_kwh is not None
    watts = receipt.energy_kwh * 3.6e6 / receipt.ran_seconds
    assert 50 < watts < 1500, receipt


def test_what_somebody_else_uses_is_left_alone_until_they_go(gpus: Daemon) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**gpus.env, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holds\n"
        assert gpus.bough("devices", "check").returncode == 0
        first = first_is(gpus, "taken")
        assert first["memory_used_bytes"] >= HELD_BYTES
        assert "taken by" in first["note"]
        many = len(devices(gpus))
        sent = gpus.bough("run", "--detach", "-g", str(many), "--", "nvidia-smi", "-L")
        why = gpus.bough("why", sent.stdout.strip())
        assert "taken" in why.stdout, why.stdout
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait(PATIENCE_SECONDS)
        over = gpus.client().wait(sent.stdout.strip(), PATIENCE_SECONDS)
        assert over.state == "done", over


def test_the_demo_runs_on_it(gpus: Daemon) -> None:
    done = gpus.bough("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("kept, ") == 3


def test_a_daemon_that_watches_devices_sleeps_most_of_the_time(gpus: Daemon) -> None:
    """Over four looks at the meters."""

    def cpu_seconds() -> float:
        fields = Path(f"/proc/{gpus.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before, began = cpu_seconds(), time.monotonic()
    gpus.bough("run", "--", "sleep", "20")
    share = (cpu_seconds() - before) / (time.monotonic() - began)
    log.info("%.2f %% of a CPU", share * 100)
    assert share < 0.01

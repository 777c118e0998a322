"""A real NVIDIA device, where there is one: probed, read, taken by a foreign process and freed.

Stands alone: run it anywhere with `pytest tests/hardware/test_real_gpu.py`.
"""

from __future__ import annotations

import logging
import os
import queue
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from bough.core.model import DeviceHealth
from bough.hardware.monitor import Monitor
from bough.hardware.probe import Machine, probe
from bough.hardware.readings import NotHere, Reading
from bough.hardware.whose import ours_below

#: Seen with --log-cli-level=info.
log = logging.getLogger(__name__)

MIB = 1 << 20
HELD_BYTES = 768 * MIB
#: Long enough for a slow driver to make a context; nothing waits for it to pass.
PATIENCE_SECONDS = 20.0

#: Takes memory of the first device by the driver alone, says so, and holds it until told to go.
HOLDER = f"""
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def check(code):
    if code:
        sys.exit(f"CUDA error {{code}}")
check(cuda.cuInit(0))
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
check(cuda.cuDeviceGet(ctypes.byref(device), 0))
check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t({HELD_BYTES})))
print("holds", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def machine() -> Machine:
    from bough.hardware import nvidia

    try:
        nvidia.find()
    except NotHere as error:
        pytest.skip(f"no NVIDIA device here: {str(error) or 'no driver'}")
    return probe("nvidia")


@pytest.fixture
def first(machine: Machine) -> Reading:
    """The first device, idle but for what the tests do."""
    reading = next(iter(machine.reader.read().values()))
    if reading.users:
        pytest.skip(f"the device is in use: {reading.users}")
    return reading


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    hidden = "CUDA_VISIBLE_DEVICES"
    env = {name: value for name, value in os.environ.items() if name != hidden}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**env, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        yield process


def test_what_it_is(machine: Machine) -> None:
    node = machine.nodes[0]
    facts = dict(machine.facts)
    log.info("%s %s %s %s", machine.nodes, machine.facts, machine.inner, machine.bandwidth)
    assert node.devices >= 1
    assert node.kind == node.kind.lower() != ""
    assert node.labels["maker"] == "nvidia"
    assert node.cpus > 0
    assert node.memory > MIB
    assert facts["NVIDIA driver"] not in ("", "unknown")


def test_what_its_meters_say(machine: Machine, first: Reading) -> None:
    log.info("%s", first)
    assert first.ailment == ""
    assert first.uuid
    assert first.memory_bytes is not None
    assert first.memory_bytes > 1024 * MIB
    assert first.memory_used_bytes is not None
    assert 0 <= first.memory_used_bytes < first.memory_bytes
    assert first.temperature is None or 0 < first.temperature < 120
    assert first.watts is None or 0 < first.watts < 3000
    assert first.utilisation is None or 0 <= first.utilisation <= 1
    if first.joules is not None:
        later = next(iter(machine.reader.read().values())).joules
        assert later is not None
        assert later >= first.joules


def test_a_foreign_process_takes_it_and_frees_it(
    machine: Machine, first: Reading, holder: subprocess.Popen[str]
) -> None:
    told: queue.Queue[DeviceHealth] = queue.Queue()
    monitor = Monitor(machine, lambda pid: False, told.put, seconds=0.1)
    monitor.start()
    try:
        changes = [told.get(timeout=PATIENCE_SECONDS) for _ in monitor.readings]
        taken = next(change for change in changes if change.device == 0)
        log.info("%s %s", taken, monitor.readings)
        assert not taken.healthy
        assert str(holder.pid) in taken.note or "outside this container" in taken.note
        reading = next(iter(monitor.readings.values()))
        assert reading.memory_used_bytes is not None
        assert reading.memory_used_bytes >= HELD_BYTES
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait(PATIENCE_SECONDS)
        free = told.get(timeout=PATIENCE_SECONDS)
        assert (free.device, free.healthy) == (0, True)
    finally:
        monitor.stop()


def test_a_process_of_ours_does_not(
    machine: Machine, first: Reading, holder: subprocess.Popen[str]
) -> None:
    told: list[DeviceHealth] = []
    ours = ours_below(lambda: {holder.pid})
    monitor = Monitor(machine, ours, told.append, held=lambda node, device: True)
    monitor.check()
    assert all(change.healthy for change in told)
    assert all(found.state == "well" for found in monitor.verdicts.values())


def test_a_look_is_cheap(machine: Machine) -> None:
    """The daemon may use 0.2 % of a CPU when idle."""
    looks = 50  # so that seconds × 20 are milliseconds of one
    machine.reader.read()
    began, began_cpu = time.perf_counter(), time.process_time()
    for _ in range(looks):
        machine.reader.read()
    wall, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    devices = sum(node.devices for node in machine.nodes)
    share = cpu / looks / machine.reader.seconds
    log.info("a look: %.2f ms, %.2f ms of CPU, %.3f %%", wall * 20, cpu * 20, share * 100)
    assert share < 0.002 * max(devices, 8) / 8

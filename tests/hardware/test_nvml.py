"""NVIDIA devices by the driver's library: what they are, what their meters say, what ails them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hardware.conftest import DEVICES, Driver

from bough.hardware import probe as probing
from bough.hardware.nvidia import Nvml
from bough.hardware.probe import Machine, probe
from bough.hardware.readings import DeviceUser, NotHere

GIB = 1 << 30
LOST, RESET_REQUIRED, UNKNOWN, NO_PERMISSION = 15, 16, 999, 4


@pytest.fixture
def pci(tmp_path: Path) -> Path:
    """The kernel's word on where the devices hang: four on each socket."""
    for number in range(DEVICES):
        device = tmp_path / "pci" / f"0000:{number + 1}a:00.0"
        device.mkdir(parents=True)
        (device / "numa_node").write_text(f"{number // 4}\n")
    return tmp_path / "pci"


@pytest.fixture
def source(driver: Driver, pci: Path) -> Nvml:
    return Nvml(driver.bindings, pci)


Probe = Callable[[str], Machine]


@pytest.fixture
def asked(driver: Driver, pci: Path, monkeypatch: pytest.MonkeyPatch) -> Probe:
    """The machine, as `--devices` says, with this driver."""
    finders = {**probing.MAKERS, "nvidia": lambda: Nvml(driver.bindings, pci)}
    monkeypatch.setattr(probing, "MAKERS", finders)
    return probe


# ------------------------------------------------------------------------------------ what they are


def test_kinds_and_facts(source: Nvml) -> None:
    assert [(d.number, d.kind, d.model, d.socket) for d in source.devices] == [
        (number, "h100", "NVIDIA H100 80GB HBM3", number // 4) for number in range(DEVICES)
    ]
    assert len({device.uuid for device in source.devices}) == DEVICES
    assert dict(source.facts) == {"tool": "NVML", "NVIDIA driver": "550.54.15", "CUDA": "12.4"}
    assert source.notes == ()


def test_pairs_with_nvlink_are_islands_in_the_sockets(driver: Driver, asked: Probe) -> None:
    for number in range(DEVICES):
        driver.island[number] = 1 + number // 2
    found = asked("nvidia")
    assert found.levels == ("node", "socket", "island")
    assert found.inner == {"socket": 4, "island": 2}
    # 18 links of 26.6 GB/s, and 16 lanes of the fifth generation, both directions together.
    assert found.bandwidth == pytest.approx(
        {"island": 2 * 18 * 26562e6, "socket": 126.08e9, "node": 126.08e9}
    )
    cluster = found.cluster()
    assert cluster.devices == DEVICES
    assert cluster.levels == ("node", "socket", "island")


def test_all_with_nvlink_are_no_islands(driver: Driver, asked: Probe) -> None:
    """Then the whole node is as quick as its links."""
    for number in range(DEVICES):
        driver.island[number] = 1
    found = asked("nvidia")
    assert found.inner == {"socket": 4}
    assert found.bandwidth["node"] == pytest.approx(2 * 18 * 26562e6)


def test_a_mesh_with_a_gap_is_no_island(driver: Driver, asked: Probe) -> None:
    for number in range(DEVICES):
        driver.island[number] = 1
    driver.apart[2] = 1
    found = asked("nvidia")
    assert "island" not in found.inner


def test_without_links_only_the_sockets_and_the_bus_are_known(driver: Driver, asked: Probe) -> None:
    found = asked("nvidia")
    assert found.inner == {"socket": 4}
    assert found.bandwidth == pytest.approx({"socket": 126.08e9, "node": 126.08e9})


def test_links_of_unknown_speed(driver: Driver, pci: Path) -> None:
    driver.number("links_are_unknown").value = 1
    driver.island[0] = driver.island[1] = 1
    source = Nvml(driver.bindings, pci)
    assert source.links.direct == {(0, 1)}
    assert source.links.direct_bandwidth is None


def test_some_of_them(driver: Driver, asked: Probe) -> None:
    for number in range(DEVICES):
        driver.island[number] = 1 + number // 2
    found = asked("nvidia:0-1,6-7")
    node = found.nodes[0]
    assert node.devices == 4
    assert node.labels == {"maker": "nvidia", "numbers": "0,1,6,7"}
    assert found.inner == {"island": 2}  # the sockets are the same pairs


def test_no_sockets_in_the_kernel(driver: Driver, tmp_path: Path) -> None:
    assert {device.socket for device in Nvml(driver.bindings, tmp_path).devices} == {-1}


def test_devices_that_cannot_be_used_are_left_out(driver: Driver, pci: Path) -> None:
    """One has no handle any more, another has but is lost: the others keep their numbers."""
    driver.has_no_handle[2] = UNKNOWN
    driver.fails[5] = LOST
    source = Nvml(driver.bindings, pci)
    assert [device.number for device in source.devices] == [0, 1, 3, 4, 6, 7]
    assert source.notes == (
        "NVIDIA device 2 cannot be used: Unknown Error",
        "NVIDIA device 5 cannot be used: GPU is lost",
    )
    assert sorted(source.read()) == [0, 1, 3, 4, 6, 7]


def test_none_is_left(driver: Driver, pci: Path) -> None:
    driver.number("count").value = 1
    driver.fails[0] = LOST
    with pytest.raises(NotHere, match="NVIDIA device 0 cannot be used: GPU is lost"):
        Nvml(driver.bindings, pci)


def test_a_driver_that_does_not_begin(driver: Driver, pci: Path) -> None:
    driver.number("init_fails").value = UNKNOWN
    with pytest.raises(NotHere):
        Nvml(driver.bindings, pci)


def test_the_library_is_found_as_programs_find_it(driver: Driver) -> None:
    """By its name, in a process of its own."""
    code = "from bough.hardware.probe import probe; m = probe(); print(m.nodes[0].kind, m.facts[0])"
    env = {**os.environ, "LD_LIBRARY_PATH": str(driver.path.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "h100 ('tool', 'NVML')\n"


# ------------------------------------------------------------------------------ what the meters say


def test_meters(driver: Driver, source: Nvml) -> None:
    driver.used[3], driver.busy[3], driver.millijoules[3] = 30 * GIB, 97, 1_234_567
    driver.puts(3, (os.getpid(), 29 * GIB))
    found = source.read()[3]
    assert (found.memory_used_bytes, found.memory_bytes) == (30 * GIB, 85520809984)
    assert (found.temperature, found.watts, found.utilisation) == (33, 70.003, 0.97)
    assert found.joules == 1234.567
    assert (found.ailment, found.broken) == ("", False)
    assert found.uuid == source.devices[3].uuid


def test_the_costly_counter_is_read_only_where_somebody_computes(
    driver: Driver, source: Nvml
) -> None:
    driver.puts(6, (os.getpid(), GIB))
    assert [n for n, reading in source.read().items() if reading.joules is not None] == [6]
    assert driver.number("energy_asked").value == 1


def test_an_old_driver_counts_its_own_memory_as_used(driver: Driver, source: Nvml) -> None:
    assert source.read()[0].memory_used_bytes == 0
    driver.number("memory_is_old").value = 1
    assert source.read()[0].memory_used_bytes == 600 << 20


def test_processes_by_number_and_name(driver: Driver, source: Nvml) -> None:
    not_known = 2**64 - 1  # as the driver writes it where it cannot tell
    driver.puts(0, (os.getpid(), 2 * GIB), (4_000_000, not_known))
    driver.puts(0, (os.getpid(), 2 * GIB), (4_000_001, 5), kind="sharing")
    first, second, third = source.read()[0].users or ()
    assert (first.pid, first.bytes, first.known) == (os.getpid(), 2 * GIB, True)
    assert first.name
    assert (second, third) == (DeviceUser(4_000_000, None), DeviceUser(4_000_001, 5))


def test_who_only_draws_does_not_compute(driver: Driver, source: Nvml) -> None:
    driver.used[0] = 20 * GIB
    driver.puts(0, (os.getpid(), 20 * GIB), kind="drawing")
    assert source.read()[0].users == ()


def test_much_memory_that_nobody_explains_is_somebodys(driver: Driver, source: Nvml) -> None:
    """In a container, the processes of others are not listed."""
    driver.used[0], driver.used[1] = 20 * GIB, 2 * GIB
    found = source.read()
    assert found[0].users == (DeviceUser(0, 20 * GIB),)
    assert found[1].users == ()


# ----------------------------------------------------------------------------------- what ails them


def test_memory_errors(driver: Driver, source: Nvml) -> None:
    driver.errors[1], driver.pending[2], driver.unmappable[3], driver.retiring[4] = 3, 1, 1, 1
    driver.divided[5] = 1
    source.forgive()  # devices are seldom divided: it is looked up when somebody has seen to them
    found = source.read()
    assert [found[number].ailment for number in range(6)] == [
        "",
        "had 3 memory errors that could not be corrected, and needs a reset",
        "has replaced a bad part of its memory and needs a reset for it (nvidia-smi -r)",
        "has no spare memory left for what failed; have it replaced",
        "has replaced a bad part of its memory and needs a reset for it (nvidia-smi -r)",
        "is divided into MIG instances, which bough cannot hand out yet",
    ]
    assert not any(reading.broken for reading in found.values())


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (LOST, "fell off the bus; restart the machine"),
        (RESET_REQUIRED, "needs a reset (nvidia-smi --gpu-reset)"),
        (UNKNOWN, "does not answer (Unknown Error)"),
    ],
)
def test_lost(driver: Driver, source: Nvml, error: int, sentence: str) -> None:
    driver.fails[4] = error
    found = source.read()
    assert (found[4].ailment, found[4].broken) == (sentence, True)
    assert found[4].model == "NVIDIA H100 80GB HBM3"
    assert [number for number, reading in found.items() if reading.ailment] == [4]
    source.forgive()  # somebody asks to look again while it is still lost
    driver.fails[4] = 0
    assert source.read()[4].ailment == ""


def test_what_it_may_not_tell_is_no_ailment(driver: Driver, source: Nvml) -> None:
    driver.fails[4] = NO_PERMISSION
    found = source.read()[4]
    assert (found.ailment, found.watts, found.users) == ("", None, None)


def test_failures_are_reported_and_remembered_until_forgiven(driver: Driver, source: Nvml) -> None:
    assert driver.number("registered").value == DEVICES
    driver.reports(2, 31)  # a program's own fault
    driver.reports(3, 79)
    driver.reports(5, 48)
    found = source.read()
    assert [n for n, reading in found.items() if reading.ailment] == [3, 5]
    assert found[3].broken
    assert found[3].ailment == (
        "reported Xid 79: it fell off the bus; reset it, then `bough devices check`"
    )
    assert source.read()[5].broken
    source.forgive()
    assert all(reading.ailment == "" for reading in source.read().values())


def test_a_report_of_a_lost_device_does_not_hide_those_after_it(
    driver: Driver, source: Nvml
) -> None:
    driver.fails[3] = LOST
    driver.reports(3, 79)
    driver.reports(5, 48)
    found = source.read()
    assert found[3].ailment == "fell off the bus; restart the machine"
    assert found[5].ailment.startswith("reported Xid 48")

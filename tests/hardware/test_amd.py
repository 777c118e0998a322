"""AMD devices by amd-smi and rocm-smi: outputs of several versions, read from real programs."""

from __future__ import annotations

import os

import pytest
from tests.hardware.faketools import Tools, recorded

from bough.hardware import amd
from bough.hardware.readings import DeviceUser, NotHere, Source
from bough.hardware.rocm_smi import RocmSmi

MIB, GIB = 1 << 20, 1 << 30


def amd_smi(tools: Tools, version: str, pid: int) -> amd.AmdSmi:
    answers = [
        (f"{command} --json", recorded(f"amd-smi-{version}-{command}.json", pid))
        for command in ("list", "static", "metric", "process")
    ]
    if version == "7.1":
        answers.insert(0, ("list -e --json", recorded("amd-smi-7.1-list-e.json")))
    tools.prints("amd-smi", *answers)
    return amd.AmdSmi()


def test_rocm_6(tools: Tools) -> None:
    source = amd_smi(tools, "6.2", os.getpid())
    assert [(d.number, d.kind, d.socket) for d in source.devices] == [
        (0, "mi300x", 0), (1, "mi300x", 1),
    ]  # fmt: skip
    found = source.read()
    busy, broken = found[0], found[1]
    assert busy.uuid == source.devices[0].uuid != ""
    assert (busy.memory_bytes, busy.memory_used_bytes) == (196592 * MIB, 40286 * MIB)
    assert (busy.temperature, busy.watts, busy.utilisation) == (68.0, 701.0, 0.97)
    assert busy.joules == 20909145.914
    assert busy.ailment == ""
    (user,) = busy.users or ()
    assert (user.pid, user.bytes, user.known) == (os.getpid(), int(39.1 * GIB), True)
    assert broken.ailment == "had 2 memory errors that could not be corrected, and needs a reset"
    assert not broken.broken
    assert broken.users == ()


def test_rocm_7_numbers_devices_as_hip_does(tools: Tools) -> None:
    """CPUs come first in its answers, and each process is listed at each device."""
    source = amd_smi(tools, "7.1", os.getpid())
    assert [(d.number, d.kind, d.socket) for d in source.devices] == [
        (0, "mi300a", 1), (1, "mi300a", 2), (2, "mi300a", 0),
    ]  # fmt: skip
    found = source.read()
    assert {number: reading.watts for number, reading in found.items()} == {0: 120, 1: 121, 2: 402}
    assert {number: reading.joules for number, reading in found.items()} == {
        0: 1001.25, 1: 1002.25, 2: 1000.25,
    }  # fmt: skip
    assert found[2].memory_used_bytes == 2531 * MIB
    assert found[2].utilisation == 0.55
    (user,) = found[2].users or ()
    assert (user.pid, user.bytes) == (os.getpid(), 2353860608)
    # The others' memory is as empty as without any process: it cannot be there.
    assert (found[0].users, found[1].users) == ((), ())


def test_a_process_listed_everywhere_is_wherever_there_is_memory_in_use(tools: Tools) -> None:
    source = amd_smi(tools, "7.1", os.getpid())
    text = recorded("amd-smi-7.1-metric.json").replace('"value": 287', '"value": 9000')
    tools.prints(
        "amd-smi",
        ("metric*", text),
        ("process*", recorded("amd-smi-7.1-process.json", os.getpid())),
    )
    found = source.read()
    assert [len(found[number].users or ()) for number in range(3)] == [0, 1, 1]


def test_messages_around_the_json(tools: Tools) -> None:
    text = recorded("amd-smi-6.2-list.json")
    noise = "WARNING: User is missing the following required groups: render [amdgpu], {video}\n"
    assert len(list(amd.entries(noise + text + noise))) == 2
    assert len(list(amd.entries("[WARN] one of two drivers answers\n" + text))) == 2


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
def test_half_an_answer_is_no_proof_that_devices_are_gone(tools: Tools, part: float) -> None:
    source = amd_smi(tools, "6.2", os.getpid())
    text = recorded("amd-smi-6.2-metric.json")
    processes = recorded("amd-smi-6.2-process.json", 1)
    tools.prints("amd-smi", ("metric*", text[: int(len(text) * part)]), ("process*", processes))
    with pytest.raises(NotHere, match="amd-smi printed nothing that can be read"):
        source.read()


def test_amd_smi_before_rocm_smi(tools: Tools) -> None:
    tools.prints("rocm-smi", ("*", recorded("rocm-smi-6.4.json", 1, 2)))
    assert isinstance(amd.find(), RocmSmi)
    amd_smi(tools, "6.2", 1)
    assert isinstance(amd.find(), amd.AmdSmi)
    tools.script("amd-smi", "echo 'amdgpu driver not loaded' >&2; exit 1")
    assert isinstance(amd.find(), RocmSmi)


def test_why_there_is_none(tools: Tools) -> None:
    def why() -> str:
        with pytest.raises(NotHere) as raised:
            amd.find()
        return str(raised.value)

    assert why() == ""
    tools.script("amd-smi", "echo 'amdgpu driver not loaded' >&2; exit 1")
    assert why() == "amd-smi failed: amdgpu driver not loaded"
    tools.prints("rocm-smi", ("*", "{}\n"))
    assert why() == "amd-smi failed: amdgpu driver not loaded; rocm-smi lists no device"
    tools.prints("amd-smi", ("*", "[]\n"))
    assert why() == "amd-smi lists no device; rocm-smi lists no device"


def rocm_smi(tools: Tools, version: str, *pids: int) -> Source:
    tools.prints("rocm-smi", ("*--json*", recorded(f"rocm-smi-{version}.json", *pids)))
    return RocmSmi()


def test_two_halves_of_an_mi250x(tools: Tools) -> None:
    """It tells who computes, but not where: with two devices nobody can say who is on which."""
    source = rocm_smi(tools, "5.7", os.getpid())
    assert [(d.number, d.kind) for d in source.devices] == [(0, "mi200"), (1, "mi200")]
    assert dict(source.facts)["AMD driver"] == "6.2.4"
    found = source.read()
    assert (found[0].watts, found[0].temperature, found[0].utilisation) == (128.0, 46.0, 1.0)
    assert (found[1].watts, found[1].temperature, found[1].utilisation) == (None, 47.0, 0.0)
    assert found[0].memory_used_bytes == 30063001600
    assert found[0].users is None


def test_one_mi300x_and_who_is_on_it(tools: Tools) -> None:
    """The tool itself is listed, too, with no memory; a name may hold commas."""
    source = rocm_smi(tools, "6.4", os.getpid(), 4_000_000)
    found = source.read()[0]
    assert source.devices[0].kind == "mi300x"
    assert found.uuid == "0x9d1f3c5b7a806e42"
    assert (found.watts, found.temperature) == (158.0, 43.0)
    assert (found.memory_bytes, found.memory_used_bytes) == (205822885888, 2654650368)
    assert [(user.pid, user.bytes) for user in found.users or ()] == [(os.getpid(), 2353860608)]


def test_graphics_in_a_processor(tools: Tools) -> None:
    source = rocm_smi(tools, "apu")
    assert (source.devices[0].kind, source.devices[0].model) == ("phoenix3", "Phoenix3")
    found = source.read()[0]
    assert (found.watts, found.temperature, found.users) == (7.222, 31.0, ())


def test_a_stranger_by_number_alone(tools: Tools) -> None:
    source = rocm_smi(tools, "6.4", 4_000_000, 4_000_001)
    assert source.read()[0].users == (DeviceUser(4_000_000, 2353860608),)


def test_half_of_rocm_smi(tools: Tools) -> None:
    source = rocm_smi(tools, "5.7", 1)
    tools.prints("rocm-smi", ("*", recorded("rocm-smi-5.7.json", 1)[:700]))
    with pytest.raises(NotHere, match="rocm-smi printed nothing that can be read"):
        source.read()

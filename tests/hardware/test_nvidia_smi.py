"""NVIDIA devices by nvidia-smi: outputs of several drivers, read from a real program."""

from __future__ import annotations

import getpass
import os

import pytest
from tests.hardware.faketools import Tools, recorded

from bough.hardware.nvidia_smi import MIB, Smi
from bough.hardware.readings import DeviceUser, NotHere

GPUS, APPS = "--query-gpu=*", "--query-compute-apps=*"


def smi(tools: Tools, gpus: str, apps: str = "") -> Smi:
    tools.prints("nvidia-smi", (GPUS, gpus), (APPS, apps))
    return Smi()


def test_four_h100s_of_which_one_works(tools: Tools) -> None:
    apps = recorded("nvidia-smi-h100-apps.csv", os.getpid(), 4_000_000)
    source = smi(tools, recorded("nvidia-smi-h100.csv"), apps)
    assert [(d.number, d.kind, d.socket) for d in source.devices] == [
        (number, "h100", -1) for number in range(4)
    ]
    assert dict(source.facts) == {"tool": "nvidia-smi", "NVIDIA driver": "550.54.15"}

    found = source.read()
    assert sorted(found) == [0, 1, 2, 3]
    assert all(reading.ailment == "" for reading in found.values())
    assert found[0].users == ()
    busy = found[1]
    assert busy.uuid == source.devices[1].uuid
    assert (busy.memory_bytes, busy.memory_used_bytes) == (81559 * MIB, 41236 * MIB)
    assert (busy.temperature, busy.watts, busy.utilisation) == (64.0, 612.3, 0.98)
    assert busy.joules is None
    ours, stranger = busy.users or ()
    assert (ours.pid, ours.bytes, ours.known) == (os.getpid(), 41216 * MIB, True)
    assert ours.user == getpass.getuser()
    assert ours.name
    assert stranger == DeviceUser(4_000_000, None)
    assert not stranger.known


def test_troubles(tools: Tools) -> None:
    """The lost ones are lost while we look: at the start they are well."""
    text = recorded("nvidia-smi-troubles.csv")
    source = smi(tools, text.replace("[GPU is lost]", "0").replace("[GPU requires reset]", "0"))
    assert len(source.devices) == 5
    tools.prints("nvidia-smi", (GPUS, text), (APPS, ""))
    found = source.read()
    assert [(reading.ailment, reading.broken) for _, reading in sorted(found.items())] == [
        ("had 3 memory errors that could not be corrected, and needs a reset", False),
        ("is divided into MIG instances, which bough cannot hand out yet", False),
        ("fell off the bus; restart the machine", True),
        ("needs a reset (nvidia-smi --gpu-reset)", True),
        ("", False),
    ]
    unsure = found[4]
    assert (unsure.memory_used_bytes, unsure.temperature, unsure.watts) == (None, None, None)


def test_lost_from_the_start_it_is_no_device_of_ours(tools: Tools) -> None:
    source = smi(tools, recorded("nvidia-smi-troubles.csv"))
    assert [device.number for device in source.devices] == [0, 1, 4]
    assert source.notes == (
        "NVIDIA device 2 cannot be used: it fell off the bus; restart the machine",
        "NVIDIA device 3 cannot be used: it needs a reset (nvidia-smi --gpu-reset)",
    )


def test_an_old_driver_is_asked_for_what_it_knows(tools: Tools) -> None:
    tools.prints(
        "nvidia-smi",
        ("*mig.mode.current*", 'Field "mig.mode.current" is not a valid field to query.\n\n'),
        (GPUS, recorded("nvidia-smi-k80.csv")),
        (APPS, ""),
    )
    script = (tools.directory / "nvidia-smi").read_text()
    first, rest = script.split(";;", 1)
    tools.script("nvidia-smi", f"{first.replace('exec ', '')}; exit 2;;{rest}")
    source = Smi()
    assert [device.kind for device in source.devices] == ["k80", "k80"]
    assert dict(source.facts)["NVIDIA driver"] == "418.226.00"
    found = source.read()
    assert (found[1].temperature, found[1].utilisation, found[1].ailment) == (39.0, None, "")


def test_messages_among_the_rows_are_no_devices(tools: Tools) -> None:
    text = recorded("nvidia-smi-h100.csv")
    noise = "WARNING: infoROM is corrupted at gpu 0000:5E:00.0\n"
    assert len(smi(tools, noise + text + "\n" + noise).devices) == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "nvidia-smi lists no device"),
        ("No devices were found\n", "nvidia-smi lists no device"),
        ("0, NVIDIA H100 80GB HBM3, GPU-1, 81559, 4, 3", "nvidia-smi stopped in the middle of a"),
    ],
)
def test_nothing_that_can_be_used(tools: Tools, text: str, sentence: str) -> None:
    with pytest.raises(NotHere, match=sentence):
        smi(tools, text)


def test_half_a_table_is_no_proof_that_devices_are_gone(tools: Tools) -> None:
    text = recorded("nvidia-smi-h100.csv")
    source = smi(tools, text)
    tools.prints("nvidia-smi", (GPUS, text[:200]), (APPS, ""))
    with pytest.raises(NotHere, match="in the middle"):
        source.read()

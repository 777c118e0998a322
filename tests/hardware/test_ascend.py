"""Ascend devices by npu-smi: tables of several products, read from a real program."""

from __future__ import annotations

import os

import pytest
from tests.hardware.faketools import Tools, recorded

from bough.hardware import ascend
from bough.hardware.ascend import MIB, NpuSmi
from bough.hardware.readings import NotHere


def npu_smi(tools: Tools, product: str, pid: int, *, numbers: bool = True) -> NpuSmi:
    answers = [("info", recorded(f"npu-smi-{product}.txt", pid))]
    if numbers:
        answers.append(("info -m", recorded(f"npu-smi-{product}-m.txt")))
    tools.prints("npu-smi", *answers)
    return NpuSmi()


def test_one_chip_on_each_card(tools: Tools) -> None:
    """The cards are 0, 1, 5 and 7; programs count the chips 0 to 3."""
    source = npu_smi(tools, "910b3", os.getpid())
    assert [(d.number, d.kind, d.uuid) for d in source.devices] == [
        (0, "ascend910b", "0000:C1:00.0"),
        (1, "ascend910b", "0000:C2:00.0"),
        (2, "ascend910b", "0000:41:00.0"),
        (3, "ascend910b", "0000:42:00.0"),
    ]
    assert dict(source.facts) == {"tool": "npu-smi", "Ascend driver": "23.0.rc3"}
    found = source.read()
    assert (found[0].watts, found[0].temperature, found[0].utilisation) == (97.1, 36.0, 0.0)
    assert (found[1].watts, found[1].temperature, found[1].utilisation) == (243.6, 58.0, 0.87)
    assert found[1].memory_bytes == 65536 * MIB
    assert found[1].memory_used_bytes == 41110 * MIB
    (user,) = found[1].users or ()
    assert (user.pid, user.bytes, user.known) == (os.getpid(), 37709 * MIB, True)
    assert [found[number].users for number in (0, 2, 3)] == [(), (), ()]


def test_health(tools: Tools) -> None:
    """A warning is a note for who looks after the machine; an alarm takes the device away."""
    found = npu_smi(tools, "910b3", 1).read()
    assert [(found[number].ailment, found[number].broken) for number in range(4)] == [
        ("", False),
        ("", False),
        ("its health is Alarm (npu-smi info)", False),
        ("its health is Critical (npu-smi info)", True),
    ]
    assert (found[3].watts, found[3].temperature) == (None, None)


def test_two_chips_on_each_card(tools: Tools) -> None:
    source = npu_smi(tools, "910c", os.getpid())
    assert [(d.number, d.kind) for d in source.devices] == [
        (number, "ascend910") for number in range(4)
    ]
    found = source.read()
    assert [found[number].watts for number in range(4)] == [178.5, None, 186.3, None]
    assert [found[number].memory_used_bytes for number in range(4)] == [
        3416 * MIB, 3195 * MIB, 53534 * MIB, 3188 * MIB,
    ]  # fmt: skip
    assert [len(found[number].users or ()) for number in range(4)] == [0, 0, 1, 0]


def test_memory_of_one_kind_and_no_list_of_numbers(tools: Tools) -> None:
    """Then they count as they are listed."""
    source = npu_smi(tools, "310p3", os.getpid(), numbers=False)
    assert [(d.number, d.kind) for d in source.devices] == [(0, "ascend310p"), (1, "ascend310p")]
    found = source.read()
    assert (found[1].memory_bytes, found[1].memory_used_bytes) == (21527 * MIB, 9021 * MIB)
    assert (found[1].utilisation, found[1].watts, found[1].temperature) == (0.07, None, 49.0)
    assert [user.pid for user in found[1].users or ()] == [os.getpid()]
    assert found[0].users == ()


def test_a_list_of_numbers_that_contradicts_itself_is_not_believed(tools: Tools) -> None:
    numbers = recorded("npu-smi-910b3-m.txt")
    assert ascend.logic_numbers(numbers) == {(0, 0): 0, (1, 0): 1, (5, 0): 2, (7, 0): 3}
    gap = " " * 30
    twice = numbers.replace(f"5{gap}0{gap}2", f"5{gap}0{gap}1")
    assert twice != numbers
    assert ascend.logic_numbers(twice) == {}


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.6, 0.8])
def test_half_a_table_is_no_proof_that_chips_are_gone(tools: Tools, part: float) -> None:
    source = npu_smi(tools, "910b3", 1)
    text = recorded("npu-smi-910b3.txt", 1)
    cut = text[: int(len(text) * part)].rstrip("+\n") + "\n"
    tools.prints("npu-smi", ("info", cut))
    with pytest.raises(NotHere, match="npu-smi printed only a part of its table"):
        source.read()


def test_why_there_is_none(tools: Tools) -> None:
    def why() -> str:
        with pytest.raises(NotHere) as raised:
            ascend.find()
        return str(raised.value)

    assert why() == ""
    tools.prints("npu-smi", ("*", "dcmi module initialize failed. ret is -8005\n"))
    assert why() == "npu-smi lists no chip"
    tools.script("npu-smi", "echo 'dcmi module initialize failed. ret is -8005'; exit 1")
    assert why() == "npu-smi failed: dcmi module initialize failed. ret is -8005"

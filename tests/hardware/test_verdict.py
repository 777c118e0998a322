"""What a reading means: who has a device, in words, and who does not count."""

from __future__ import annotations

import pytest

from bough.hardware.readings import DeviceUser, Reading
from bough.hardware.verdict import Verdict, verdict
from bough.hardware.xids import xid_sentence

GIB = 1 << 30
ADA = DeviceUser(4711, 2 * GIB, "ada", "python")
BOB = DeviceUser(4712, 30 * GIB, "bob", "train")


def judged(*users: DeviceUser, held: bool = False) -> Verdict:
    return verdict(Reading(users=users), lambda pid: pid == 1, held)


@pytest.mark.parametrize(
    ("users", "note"),
    [
        ((ADA,), "taken by ada's python (pid 4711, 2GiB)"),
        ((ADA, BOB), "taken by bob's train (pid 4712, 30GiB) and 1 more"),
        ((DeviceUser(5, None, "eve", ""),), "taken by eve's process (pid 5)"),
        ((DeviceUser(5, GIB),), "taken by somebody outside this container (pid 5, 1GiB)"),
        ((DeviceUser(0, GIB),), "taken by somebody outside this container (1GiB)"),
        ((DeviceUser(0),), "taken by somebody outside this container"),
    ],
)
def test_who_has_taken_it(users: tuple[DeviceUser, ...], note: str) -> None:
    assert judged(*users) == Verdict("taken", note)


def test_nobody_and_nobody_can_tell() -> None:
    assert judged() == Verdict()
    assert verdict(Reading(users=None), lambda pid: False, False) == Verdict()


def test_ours_and_servants_of_the_driver_do_not_count() -> None:
    servant = DeviceUser(6, 30 << 20, "root", "nvidia-cuda-mps-server")
    assert judged(DeviceUser(1, GIB, "ada", "python"), servant) == Verdict()


def test_on_a_held_device_strangers_without_a_name_may_be_ours() -> None:
    assert judged(DeviceUser(5, GIB), held=True) == Verdict()
    assert judged(ADA, held=True).state == "taken"


def test_an_ailment_is_worse_than_being_taken() -> None:
    found = verdict(Reading(ailment="is hot", users=(ADA,)), lambda pid: False, False)
    assert found == Verdict("unhealthy", "is hot")


def test_reports_of_programs_are_no_ailment() -> None:
    assert [xid_sentence(xid) for xid in (13, 31, 43, 45, 94, 154, 0)] == [""] * 7
    assert all(xid_sentence(xid).startswith(f"reported Xid {xid}: ") for xid in (48, 79, 119))

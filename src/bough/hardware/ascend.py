"""Devices of Ascend, through the tables that npu-smi prints for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from bough.hardware import tools
from bough.hardware.kinds import ascend_kind
from bough.hardware.readings import Device, Links, NotHere, Reading, Source
from bough.hardware.whose import device_user

MIB = 1 << 20
#: Health of chips that are to be left alone; a Warning is no reason to.
_ALARMS = ("alarm", "critical")

#: A chip is known by its card (NPU) and its number there.
Chip = tuple[int, int]


class Row(NamedTuple):
    """One chip: two lines of the table."""

    name: str
    health: str
    bus: str
    watts: float | None
    temperature: float | None
    utilisation: float | None
    memory_used_bytes: int | None
    memory_bytes: int | None


class Table(NamedTuple):
    """What `npu-smi info` tells."""

    version: str
    chips: dict[Chip, Row]
    users: dict[Chip, tuple[tuple[int, int | None], ...]]


def find() -> Source:
    """npu-smi where there is one; NotHere, with a sentence if it does not work."""
    try:
        return NpuSmi()
    except NotHere as error:
        raise NotHere("" if str(error) == "npu-smi is not installed" else str(error)) from None


class NpuSmi:
    """npu-smi, run anew for each reading."""

    maker = "ascend"
    links = Links()
    notes: tuple[str, ...] = ()
    seconds = 120.0

    def __init__(self) -> None:
        text = tools.run("npu-smi", "info")
        seen = table(text)
        #: How the whole of it ends; one that ends otherwise is not whole.
        self._end = text.rstrip()[-1:]
        if not seen.chips:
            raise NotHere("npu-smi lists no chip")
        told: dict[Chip, int] = {}
        with suppress(NotHere):  # then they count as they are listed
            told = logic_numbers(tools.run("npu-smi", "info", "-m"))
        self._numbers = numbered(seen, told)
        self.devices = tuple(
            sorted(
                Device(self._numbers[chip], ascend_kind(row.name), row.name, row.bus)
                for chip, row in seen.chips.items()
            )
        )
        self.facts = (("tool", "npu-smi"), ("Ascend driver", seen.version or "unknown"))

    def read(self) -> Mapping[int, Reading]:
        text = tools.run("npu-smi", "info")
        if text.rstrip()[-1:] != self._end:
            raise NotHere("npu-smi printed only a part of its table")
        return readings(table(text), self._numbers)

    def forgive(self) -> None:
        pass


def numbered(seen: Table, told: Mapping[Chip, int]) -> dict[Chip, int]:
    """As ASCEND_RT_VISIBLE_DEVICES counts."""
    if all(chip in told for chip in seen.chips):
        return {chip: told[chip] for chip in seen.chips}
    return {chip: number for number, chip in enumerate(seen.chips)}


def readings(seen: Table, numbers: Mapping[Chip, int]) -> dict[int, Reading]:
    """What the meters say, by the number of the device."""
    return {
        numbers[chip]: Reading(
            model=row.name,
            uuid=row.bus,
            memory_bytes=row.memory_bytes,
            memory_used_bytes=row.memory_used_bytes,
            temperature=row.temperature,
            watts=row.watts,
            utilisation=row.utilisation,
            ailment=_ailment(row.health),
            broken=row.health.lower() == "critical",
            users=tuple(device_user(*user) for user in seen.users.get(chip, ())),
        )
        for chip, row in seen.chips.items()
        if chip in numbers
    }


def table(text: str) -> Table:
    """Read `npu-smi info`: two lines for each chip, then a list of processes."""
    version = re.search(r"Version:\s*(\S+)", text)
    chips: dict[Chip, Row] = {}
    users: dict[Chip, tuple[tuple[int, int | None], ...]] = {}
    first: tuple[int, list[str]] | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        numbers = [int(word) for word in cells[0].split() if _is_number(word)]
        if len(cells) == 4 and len(numbers) == 2 and _is_number(cells[1]):
            chip = (numbers[0], numbers[1])
            users[chip] = (*users.get(chip, ()), (int(cells[1]), tools.whole(cells[3], MIB)))
        elif len(cells) != 3 or not numbers:
            first = first if len(cells) == 3 else None
        elif first is None:
            first = (numbers[0], cells)
        else:
            chips[first[0], numbers[0]] = _row(first[1], cells)
            first = None
    return Table(version[1] if version else "", chips, users)


def logic_numbers(text: str) -> dict[Chip, int]:
    """Read `npu-smi info -m`: columns with a head; a controller of the card has no number."""
    found: dict[Chip, int] = {}
    head: list[str] = []
    for line in text.splitlines():
        words = re.split(r"\s{2,}|\t", line.strip())
        if "NPU ID" in words:
            head = words
        elif head and len(words) == len(head):
            row = dict(zip(head, words, strict=True))
            told = [row.get(name, "") for name in ("NPU ID", "Chip ID", "Chip Logic ID")]
            if all(_is_number(word) for word in told):
                card, chip, number = map(int, told)
                found[card, chip] = number
    return found if len(set(found.values())) == len(found) else {}


def _row(first: list[str], second: list[str]) -> Row:
    """`power temperature pages / pages` above `busy used / total [used / total of HBM]`."""
    above, below = _numbers(first[2]), _numbers(second[2])
    pairs = [(below[i], below[i + 1]) for i in range(1, len(below) - 1, 2)]
    # Chips with memory of two kinds work in the last; where that is not fitted, it reads 0 / 0.
    used, total = next((pair for pair in reversed(pairs) if pair[1]), (None, None))
    busy = below[0] if below else None
    return Row(
        name=" ".join(first[0].split()[1:]) or "Ascend",
        health=first[1],
        bus=second[1],
        watts=above[0] if above else None,
        temperature=above[1] if len(above) > 1 else None,
        utilisation=None if busy is None else min(max(busy / 100, 0.0), 1.0),
        memory_used_bytes=None if used is None else int(used * MIB),
        memory_bytes=None if total is None else int(total * MIB),
    )


def _numbers(cell: str) -> list[float | None]:
    """Words between blanks and slashes; None for NA and a dash."""
    return [tools.number(word) for word in cell.replace("/", " ").split()]


def _is_number(word: str) -> bool:
    return re.fullmatch(r"\d{1,9}", word, re.ASCII) is not None


def _ailment(health: str) -> str:
    return f"its health is {health} (npu-smi info)" if health.lower() in _ALARMS else ""

"""Devices of NVIDIA by the program nvidia-smi, for where its library's bindings are missing."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Final

from bough.hardware import tools
from bough.hardware.kinds import nvidia_kind
from bough.hardware.readings import Device, DeviceUser, Links, NotHere, Reading
from bough.hardware.whose import device_user
from bough.hardware.xids import ECC, MIG

MIB = 1 << 20
DEVICE_FIELDS: Final = (
    "index", "name", "uuid", "memory.total", "memory.used", "temperature.gpu", "power.draw",
    "utilization.gpu", "ecc.errors.uncorrected.volatile.total", "mig.mode.current",
    "driver_version",
)  # fmt: skip
USER_FIELDS: Final = ("gpu_uuid", "pid", "used_memory")


class Smi:
    """nvidia-smi, run anew for each reading."""

    maker = "nvidia"
    links = Links()
    seconds = 60.0

    def __init__(self) -> None:
        self.notes: tuple[str, ...] = ()
        rows = _ask("gpu", DEVICE_FIELDS)
        self.devices = tuple(
            Device(number, nvidia_kind(row["name"]), row["name"], row["uuid"])
            for number, row in sorted(_numbered(rows).items())
        )
        if not self.devices:
            raise NotHere("nvidia-smi lists no device")
        self.facts = (("tool", "nvidia-smi"), ("NVIDIA driver", rows[0]["driver_version"]))

    def read(self) -> Mapping[int, Reading]:
        return readings(_ask("gpu", DEVICE_FIELDS), _ask("compute-apps", USER_FIELDS))

    def forgive(self) -> None:
        pass


def readings(devices: list[dict[str, str]], users: list[dict[str, str]]) -> dict[int, Reading]:
    """The two tables together."""
    using: dict[str, list[DeviceUser]] = {}
    for row in users:
        if row["pid"].isdecimal():
            user = device_user(int(row["pid"]), tools.whole(row["used_memory"], MIB))
            using.setdefault(row["gpu_uuid"], []).append(user)
    return {
        number: Reading(
            model=row["name"],
            uuid=row["uuid"],
            memory_bytes=tools.whole(row["memory.total"], MIB),
            memory_used_bytes=tools.whole(row["memory.used"], MIB),
            temperature=tools.number(row["temperature.gpu"]),
            watts=tools.number(row["power.draw"]),
            utilisation=tools.share(row["utilization.gpu"]),
            ailment=_ailment(row),
            users=tuple(using.get(row["uuid"], ())),
        )
        for number, row in _numbered(devices).items()
    }


def table(text: str, fields: tuple[str, ...]) -> list[dict[str, str]]:
    """Rows of `--format=csv,noheader,nounits`; lines of another shape are messages, not rows."""
    rows = csv.reader(text.replace("\0", "").splitlines(), skipinitialspace=True)
    return [
        dict(zip(fields, (word.strip() for word in row), strict=True))
        for row in rows
        if len(row) == len(fields)
    ]


def _ask(what: str, fields: tuple[str, ...]) -> list[dict[str, str]]:
    query = f"--query-{what}={','.join(fields)}"
    return table(tools.run("nvidia-smi", query, "--format=csv,noheader,nounits"), fields)


def _numbered(rows: list[dict[str, str]]) -> dict[int, dict[str, str]]:
    return {int(row["index"]): row for row in rows if row["index"].isdecimal()}


def _ailment(row: dict[str, str]) -> str:
    errors = tools.whole(row["ecc.errors.uncorrected.volatile.total"])
    if errors:
        return ECC.format(count=errors)
    return MIG if row["mig.mode.current"].lower() == "enabled" else ""

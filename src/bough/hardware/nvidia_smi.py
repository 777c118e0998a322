"""Devices of NVIDIA by the program nvidia-smi, for where its library's bindings are missing."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import Final

from bough.hardware import tools
from bough.hardware.kinds import nvidia_kind
from bough.hardware.readings import Device, DeviceUser, Links, NotHere, Reading
from bough.hardware.whose import device_user
from bough.hardware.xids import ECC, GONE, MIG, RESET

MIB = 1 << 20
DEVICE_FIELDS: Final = (
    "index", "name", "uuid", "memory.total", "memory.used", "temperature.gpu", "power.draw",
    "utilization.gpu", "ecc.errors.uncorrected.volatile.total", "mig.mode.current",
    "driver_version",
)  # fmt: skip
USER_FIELDS: Final = ("gpu_uuid", "pid", "used_memory")
#: What stands in place of the values of a device that is lost.
_LOSSES: Final = {"[gpu is lost]": GONE, "[gpu requires reset]": RESET}


class Smi:
    """nvidia-smi, run anew for each reading."""

    maker = "nvidia"
    links = Links()
    seconds = 60.0

    def __init__(self) -> None:
        self._fields, rows = _ask_what_it_knows(DEVICE_FIELDS)
        self.devices = tuple(
            Device(number, nvidia_kind(row["name"]), row["name"], row["uuid"])
            for number, row in sorted(_numbered(rows).items())
            if not _loss(row)
        )
        self.notes: tuple[str, ...] = tuple(
            f"NVIDIA device {number} cannot be used: it {loss}"
            for number, row in sorted(_numbered(rows).items())
            if (loss := _loss(row))
        )
        if not self.devices:
            raise NotHere("nvidia-smi lists no device")
        versions = {row["driver_version"] for row in rows if row["driver_version"][:1].isdecimal()}
        version = next(iter(versions), "unknown")
        self.facts = (("tool", "nvidia-smi"), ("NVIDIA driver", version))

    def read(self) -> Mapping[int, Reading]:
        return readings(_ask("gpu", self._fields), _ask("compute-apps", USER_FIELDS))

    def forgive(self) -> None:
        pass


def readings(devices: list[dict[str, str]], users: list[dict[str, str]]) -> dict[int, Reading]:
    """The two tables together."""
    using: dict[str, list[DeviceUser]] = {}
    for row in users:
        if re.fullmatch(r"\d{1,9}", row["pid"], re.ASCII):
            user = device_user(int(row["pid"]), tools.whole(row["used_memory"], MIB))
            using.setdefault(row["gpu_uuid"], []).append(user)
    return {
        number: Reading(
            model=row["name"],
            uuid=row["uuid"],
            memory_bytes=tools.whole(row["memory.total"], MIB),
            memory_used_bytes=tools.whole(row["memory.used"], MIB),
            temperature=tools.number(row.get("temperature.gpu")),
            watts=tools.number(row.get("power.draw")),
            utilisation=tools.share(row.get("utilization.gpu")),
            ailment=_loss(row) or _ailment(row),
            broken=bool(_loss(row)),
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
    text = tools.run("nvidia-smi", query, "--format=csv,noheader,nounits")
    if text and not text.endswith("\n"):
        raise NotHere("nvidia-smi stopped in the middle of a line")
    return table(text, fields)


def _ask_what_it_knows(fields: tuple[str, ...]) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """All devices by those of the fields that this driver, maybe an old one, knows."""
    while True:
        try:
            return fields, _ask("gpu", fields)
        except NotHere as error:
            unknown = re.search(r'"([a-z._]+)" is not a valid field', str(error))
            if unknown is None or unknown[1] not in fields:
                raise
            fields = tuple(field for field in fields if field != unknown[1])


def _numbered(rows: list[dict[str, str]]) -> dict[int, dict[str, str]]:
    plain = re.compile(r"\d{1,4}", re.ASCII)
    return {int(row["index"]): row for row in rows if plain.fullmatch(row["index"])}


def _loss(row: dict[str, str]) -> str:
    return next((_LOSSES[word.lower()] for word in row.values() if word.lower() in _LOSSES), "")


def _ailment(row: dict[str, str]) -> str:
    errors = tools.whole(row.get("ecc.errors.uncorrected.volatile.total"))
    if errors:
        return ECC.format(count=errors)
    return MIG if row.get("mig.mode.current", "").lower() == "enabled" else ""

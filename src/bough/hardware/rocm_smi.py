"""Devices of AMD by rocm-smi, which older installations of ROCm have instead of amd-smi."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress

from bough.hardware import tools
from bough.hardware.kinds import amd_kind
from bough.hardware.readings import Device, DeviceUser, Links, NotHere, Reading
from bough.hardware.whose import device_user

_SHOW = (
    "--showproductname", "--showuniqueid", "--showmeminfo", "vram", "--showuse", "--showtemp",
    "--showpower", "--showpids", "--showdriverversion", "--json",
)  # fmt: skip
#: What the same thing is called, through the versions.
_NAMES = ("card series", "device name", "card model", "gfx version")
_HEAT = ("temperature (sensor junction) (c)", "temperature (sensor edge) (c)")
_POWER = (
    "current socket graphics package power (w)", "average graphics package power (w)",
    "average package power (w)",
)  # fmt: skip


class RocmSmi:
    """rocm-smi, run anew for each reading."""

    maker = "amd"
    links = Links()
    notes: tuple[str, ...] = ()
    seconds = 120.0

    def __init__(self) -> None:
        cards = tables(tools.run("rocm-smi", *_SHOW))
        self.devices = tuple(
            Device(number, amd_kind(model := _model(card)), model, card.get("unique id", ""))
            for number, card in sorted(_numbered(cards).items())
        )
        if not self.devices:
            raise NotHere("rocm-smi lists no device")
        driver = cards.get("system", {}).get("driver version", "unknown")
        self.facts = (("tool", "rocm-smi"), ("AMD driver", driver))

    def read(self) -> Mapping[int, Reading]:
        return readings(tables(tools.run("rocm-smi", *_SHOW)))

    def forgive(self) -> None:
        pass


def readings(cards: Mapping[str, Mapping[str, str]]) -> dict[int, Reading]:
    """What the meters say. Processes are told apart by device only where there is one device."""
    numbered = _numbered(cards)
    users = _users(cards.get("system", {})) if len(numbered) == 1 else None
    return {
        number: Reading(
            model=_model(card),
            uuid=card.get("unique id", ""),
            memory_bytes=tools.whole(card.get("vram total memory (b)")),
            memory_used_bytes=tools.whole(card.get("vram total used memory (b)")),
            temperature=_first(card, _HEAT),
            watts=_first(card, _POWER),
            utilisation=tools.share(card.get("gpu use (%)")),
            users=users,
        )
        for number, card in numbered.items()
    }


def tables(text: str) -> dict[str, dict[str, str]]:
    """Names and values of each card, in lower case; what is no table is left out."""
    data: object = None
    for start in re.finditer(r"^\{", text, re.MULTILINE):
        with suppress(ValueError, RecursionError):
            data = json.JSONDecoder().raw_decode(text, start.start())[0]
            break
    if not isinstance(data, dict):
        raise NotHere("rocm-smi printed nothing that can be read")
    return {
        str(card): {str(name).lower(): str(value) for name, value in table.items()}
        for card, table in data.items()
        if isinstance(table, dict)
    }


def _numbered(cards: Mapping[str, Mapping[str, str]]) -> dict[int, Mapping[str, str]]:
    return {
        int(found[1]): card
        for name, card in cards.items()
        if (found := re.fullmatch(r"card(\d{1,4})", name, re.ASCII))
    }


def _users(system: Mapping[str, str]) -> tuple[DeviceUser, ...]:
    """`"PID28389": "llama-server, 1, 2353860608, 11011, 0"`: name, devices, bytes, …"""
    found = []
    for name, text in system.items():
        pid = re.fullmatch(r"pid(\d{1,9})", name, re.ASCII)
        words = text.split(",")  # the name, the first, may hold commas
        size = tools.whole(words[-3].strip()) if len(words) >= 5 else None
        if pid and size != 0:
            found.append(device_user(int(pid[1]), size))
    return tuple(found)


def _model(card: Mapping[str, str]) -> str:
    told = (card.get(name, "") for name in _NAMES)
    return next((text for text in told if text and text != "N/A"), "AMD device")


def _first(card: Mapping[str, str], names: tuple[str, ...]) -> float | None:
    told = (tools.number(card.get(name)) for name in names)
    return next((value for value in told if value is not None), None)

"""Devices of AMD, through the programs that come with ROCm: amd-smi, or else rocm-smi."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from bough.hardware import rocm_smi, tools
from bough.hardware.kinds import amd_kind
from bough.hardware.readings import Device, DeviceUser, Links, NotHere, Reading, Source
from bough.hardware.whose import device_user

_UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_POWER = ("socket_power", "current_socket_power", "average_socket_power")
#: Memory in use that needs no process to explain it.
_IDLE_BYTES = 512 << 20
_FATAL = "had {count} memory errors that could not be corrected, and needs a reset"


def find() -> Source:
    """amd-smi where there is one, else rocm-smi; NotHere, with a sentence if one is there."""
    sentences = []
    for name, make in (("amd-smi", AmdSmi), ("rocm-smi", rocm_smi.RocmSmi)):
        try:
            return make()
        except NotHere as error:
            if str(error) != f"{name} is not installed":
                sentences.append(str(error))
    raise NotHere("; ".join(sentences))


class AmdSmi:
    """amd-smi, run anew for each reading."""

    maker = "amd"
    links = Links()
    notes: tuple[str, ...] = ()
    #: A reading takes a second of a CPU.
    seconds = 120.0

    def __init__(self) -> None:
        names = list(entries(tools.run("amd-smi", "list", "--json")))
        with suppress(NotHere):  # older ones do not tell how HIP counts
            names = list(entries(tools.run("amd-smi", "list", "-e", "--json"))) or names
        known = devices(names, list(entries(tools.run("amd-smi", "static", "--json"))))
        if not known:
            raise NotHere("amd-smi lists no device")
        self._known = known
        self.devices = tuple(sorted(known.values()))
        self.facts = (("tool", "amd-smi"),)

    def read(self) -> Mapping[int, Reading]:
        users = list(entries(tools.run("amd-smi", "process", "--json")))
        metrics = list(entries(tools.run("amd-smi", "metric", "--json")))
        return readings(self._known, metrics, users)

    def forgive(self) -> None:
        pass


def devices(names: list[dict[str, Any]], static: list[dict[str, Any]]) -> dict[int, Device]:
    """The tool's own number -> the device, numbered as HIP counts where that is told of all."""
    listed = _numbered(names)
    hip = {number: _whole(entry.get("hip_id")) for number, entry in listed.items()}
    found = {}
    for number, entry in _numbered(static).items():
        told = (_at(entry, "asic", name) for name in ("market_name", "target_graphics_version"))
        model = next((str(text) for text in told if text and text != "N/A"), "AMD device")
        socket = _whole(_at(entry, "numa", "node"))
        found[number] = Device(
            number=number,
            kind=amd_kind(model),
            model=model,
            uuid=str(listed.get(number, {}).get("uuid", "")),
            socket=-1 if socket is None else socket,
        )
    counts = {number: count for number in found if (count := hip.get(number)) is not None}
    if len(set(counts.values())) < len(found):
        return found
    return {number: device._replace(number=counts[number]) for number, device in found.items()}


def readings(
    known: Mapping[int, Device], metrics: list[dict[str, Any]], users: list[dict[str, Any]]
) -> dict[int, Reading]:
    """What the meters say, by the number of the device."""
    using = {number: tuple(_users(entry)) for number, entry in _numbered(users).items()}
    everywhere = _everywhere(using)
    found = {}
    for number, entry in _numbered(metrics).items():
        if number not in known:
            continue
        errors = _whole(_at(entry, "ecc", "total_uncorrectable_count"))
        used = _size(_at(entry, "mem_usage", "used_vram"))
        here = using.get(number)
        if here and used is not None and used < _IDLE_BYTES:
            here = tuple(user for user in here if user not in everywhere)
        found[known[number].number] = Reading(
            model=known[number].model,
            uuid=known[number].uuid,
            memory_bytes=_size(_at(entry, "mem_usage", "total_vram")),
            memory_used_bytes=used,
            temperature=_first(entry, "temperature", ("hotspot", "edge")),
            watts=_first(entry, "power", _POWER),
            joules=tools.number(_value(_at(entry, "energy", "total_energy_consumption"))),
            utilisation=tools.share(_value(_at(entry, "usage", "gfx_activity"))),
            ailment=_FATAL.format(count=errors) if errors else "",
            users=here,
        )
    return found


def _everywhere(using: Mapping[int, tuple[DeviceUser, ...]]) -> set[DeviceUser]:
    """Processes that are listed at each of several devices, with the same memory: the tool does not
    know where they are.
    """
    return set.intersection(*map(set, using.values())) if len(using) > 1 else set()


def entries(text: str) -> Iterator[dict[str, Any]]:
    """The entries of one device each; what stands around the JSON is messages."""
    data = parsed(text)
    if isinstance(data, dict):  # newer ones, which tell of CPUs, too, before they tell of devices
        lists = [value for value in data.values() if isinstance(value, list)]
        data = data.get("gpu_data", lists[0] if lists else [data])
    for entry in data if isinstance(data, list) else ():
        if isinstance(entry, dict):
            yield entry


def parsed(text: str) -> Any:
    """The JSON in a program's output; NotHere when there is none, or only part of it.

    It begins at the start of a line: what lies inside of it is indented, or is not all of it.
    """
    for start in re.finditer(r"^[\[{]", text, re.MULTILINE):
        with suppress(ValueError, RecursionError):
            return json.JSONDecoder().raw_decode(text, start.start())[0]
    raise NotHere("amd-smi printed nothing that can be read")


def _numbered(entries: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {n: entry for entry in entries if (n := _whole(entry.get("gpu"))) is not None}


def _users(entry: dict[str, Any]) -> Iterator[DeviceUser]:
    """Some versions list each process at every device: those without memory there are not there."""
    listed = entry.get("process_list")
    for item in listed if isinstance(listed, list) else ():
        info = item.get("process_info") if isinstance(item, dict) else None
        if not isinstance(info, dict):  # "No running processes detected"
            continue
        pid = _whole(info.get("pid"))
        sizes = [_at(info, "memory_usage", "vram_mem"), info.get("vram_mem"), info.get("mem_usage")]
        size = next((found for item in sizes if (found := _size(item)) is not None), None)
        if pid and size != 0:
            yield device_user(pid, size)


def _first(entry: dict[str, Any], group: str, names: tuple[str, ...]) -> float | None:
    told = (tools.number(_value(_at(entry, group, name))) for name in names)
    return next((value for value in told if value is not None), None)


def _at(data: Any, *names: str) -> Any:
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _value(data: Any) -> Any:
    """Newer versions write {"value": 36, "unit": "C"}, older ones "36 C" or 36."""
    return data.get("value") if isinstance(data, dict) else data


def _whole(data: Any) -> int | None:
    return tools.whole(_value(data))


def _size(data: Any) -> int | None:
    """Bytes; a unit that is not named means what it says: bytes."""
    words = str(_value(data)).split()
    unit = str(data.get("unit", "b")) if isinstance(data, dict) else (*words, "b", "b")[1]
    return tools.whole(_value(data), _UNITS.get(unit.lower(), 1))

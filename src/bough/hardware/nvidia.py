"""Devices of NVIDIA, through the driver's own library (extra `nvidia`) or else nvidia-smi."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from bough.hardware import nvidia_smi
from bough.hardware.kinds import nvidia_kind
from bough.hardware.readings import Device, DeviceUser, Links, NotHere, Reading, Source
from bough.hardware.whose import device_user
from bough.hardware.xids import ECC, GONE, MIG, PENDING, REMAP_FAILED, RESET, xid_sentence

#: Two NVIDIA parts of the machine's file system that need no library to be seen.
_DRIVER = Path("/proc/driver/nvidia/version")
_PCI = Path("/sys/bus/pci/devices")
#: Memory in use that no process explains, as a part of all, before somebody must be there.
_HIDDEN_SHARE = 0.15
#: Bytes per second of one PCIe lane in one direction, by generation.
_LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.97e9, 5: 3.94e9, 6: 7.56e9}


def find() -> Source:
    """The way that works here; NotHere, with a sentence if there is something amiss."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return _without_library()
    return Nvml(nvml)


def _without_library() -> Source:
    hint = "install bough[nvidia] to ask the driver directly"
    try:
        source = nvidia_smi.Smi()
    except NotHere as error:
        if _DRIVER.exists():
            raise NotHere(f"NVIDIA's driver is loaded, but {error}; {hint}") from None
        raise NotHere("") from None
    source.notes += (f"NVIDIA devices are read through nvidia-smi, which is slow: {hint}",)
    return source


class Nvml:
    """NVML: quick, and it tells of failures as they happen."""

    maker = "nvidia"
    seconds = 5.0

    def __init__(self, nvml: Any, pci: Path = _PCI) -> None:
        self._nvml = nvml
        self._pci = pci
        self.notes: tuple[str, ...] = ()
        #: Number -> the last failure that the driver reported of it.
        self._reported: dict[int, str] = {}
        try:
            nvml.nvmlInit()
            count = nvml.nvmlDeviceGetCount()
        except nvml.NVMLError as error:
            loaded = _DRIVER.exists()
            raise NotHere(f"NVIDIA's driver does not work: {error}" if loaded else "") from None
        self._handles = self._find_handles(count)
        if not self._handles:
            raise NotHere(". ".join(self.notes))
        self.devices = tuple(self._device(number) for number in self._handles)
        #: Numbers of devices in MIG mode: asking costs too much to do it at each reading.
        self._divided = self._find_divided()
        self._events = self._listen()
        self.links = self._find_links()
        self.facts = tuple(self._facts())

    def _find_handles(self, count: int) -> dict[int, Any]:
        """NVML counts in the order of the PCI bus, as CUDA does when it is told to."""
        found = {}
        for number in range(count):
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(number)
                self._ask("nvmlDeviceGetName", handle)  # lost ones may still have a handle
                found[number] = handle
            except self._nvml.NVMLError as error:
                self.notes += (f"NVIDIA device {number} cannot be used: {error}",)
        return found

    # -------------------------------------------------------------------------------- what it is

    def _device(self, number: int) -> Device:
        handle = self._handles[number]
        model = _text(self._try("nvmlDeviceGetName", handle)) or "NVIDIA device"
        uuid = _text(self._try("nvmlDeviceGetUUID", handle))
        bus = self._try("nvmlDeviceGetPciInfo", handle)
        return Device(number, nvidia_kind(model), model, uuid, self._socket(bus))

    def _socket(self, bus: Any) -> int:
        name = _text(getattr(bus, "busId", "")).lower()
        # NVML writes the domain with eight digits, the kernel with four.
        domain, _, rest = name.partition(":")
        try:
            return int((self._pci / f"{domain[-4:]}:{rest}" / "numa_node").read_text())
        except (OSError, ValueError):
            return -1

    def _find_links(self) -> Links:
        nvml = self._nvml
        caps = getattr(nvml, "NVML_P2P_CAPS_INDEX_NVLINK", None)
        fine = getattr(nvml, "NVML_P2P_STATUS_OK", 0)
        pairs = frozenset(
            (a, b)
            for a, b in combinations(self._handles, 2)
            if self._try("nvmlDeviceGetP2PStatus", self._handles[a], self._handles[b], caps) == fine
        )
        first = next(iter(self._handles.values()))
        lane = _LANE.get(self._try("nvmlDeviceGetMaxPcieLinkGeneration", first) or 0)
        width = self._try("nvmlDeviceGetMaxPcieLinkWidth", first)
        bus = 2 * lane * width if lane and width else None
        return Links(pairs, self._link_bandwidth(first) if pairs else None, bus)

    def _link_bandwidth(self, handle: Any) -> float | None:
        """All links of a device together, both directions, as makers count it."""
        nvml = self._nvml
        fields = [
            getattr(nvml, name, None)
            for name in ("NVML_FI_DEV_NVLINK_LINK_COUNT", "NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON")
        ]
        found = self._try("nvmlDeviceGetFieldValues", handle, fields) if all(fields) else None
        if not found or any(value.nvmlReturn for value in found):
            return None
        count, megabytes = (int(value.value.uiVal) for value in found)
        return 2e6 * count * megabytes or None

    def _find_divided(self) -> set[int]:
        modes = {n: self._try("nvmlDeviceGetMigMode", h) for n, h in self._handles.items()}
        return {number for number, mode in modes.items() if mode and mode[0]}

    def _facts(self) -> Iterable[tuple[str, str]]:
        yield "tool", "NVML"
        yield "NVIDIA driver", _text(self._try("nvmlSystemGetDriverVersion")) or "unknown"
        if cuda := self._try("nvmlSystemGetCudaDriverVersion"):
            yield "CUDA", f"{cuda // 1000}.{cuda % 1000 // 10}"

    # ------------------------------------------------------------------------------- what it says

    def read(self) -> Mapping[int, Reading]:
        self._hear()
        return {device.number: self._read(device) for device in self.devices}

    def forgive(self) -> None:
        self._reported.clear()
        self._divided = self._find_divided()

    def _read(self, device: Device) -> Reading:
        known = Reading(model=device.model, uuid=device.uuid)
        nvml, handle = self._nvml, self._handles[device.number]
        try:
            used, total = self._memory(handle)
            ailment, broken = self._ailment(device.number, handle)
            milliwatts = self._ask("nvmlDeviceGetPowerUsage", handle)
            users = self._users(handle, used, total)
            # The counter costs 4 ms of CPU (the rest together 0.3, on an H200): read it only where
            # somebody computes, and an idle machine stays idle.
            millijoules = (
                self._ask("nvmlDeviceGetTotalEnergyConsumption", handle) if users else None
            )
            rates = self._ask("nvmlDeviceGetUtilizationRates", handle)
            return known._replace(
                memory_bytes=total,
                memory_used_bytes=used,
                temperature=self._ask("nvmlDeviceGetTemperature", handle, 0),
                watts=None if milliwatts is None else milliwatts / 1000,
                joules=None if millijoules is None else millijoules / 1000,
                utilisation=None if rates is None else rates.gpu / 100,
                ailment=ailment,
                broken=broken,
                users=users,
            )
        except nvml.NVMLError as error:
            return known._replace(ailment=self._loss(error), broken=True)

    def _memory(self, handle: Any) -> tuple[int | None, int | None]:
        """Used and total. What the driver keeps for itself is nobody's use."""
        version = getattr(self._nvml, "nvmlMemory_v2", None)
        found = self._ask("nvmlDeviceGetMemoryInfo", handle, version) if version else None
        found = found or self._ask("nvmlDeviceGetMemoryInfo", handle)
        return (None, None) if found is None else (int(found.used), int(found.total))

    def _users(
        self, handle: Any, used: int | None, total: int | None
    ) -> tuple[DeviceUser, ...] | None:
        """Who computes here; desktops and the like, who only draw, do not count."""
        found: dict[int, int | None] = {}
        told = False
        for name in ("ComputeRunningProcesses", "MPSComputeRunningProcesses"):
            listed = self._ask(f"nvmlDeviceGet{name}", handle)
            told = told or listed is not None
            for process in listed or ():
                found.setdefault(process.pid, process.usedGpuMemory)
        if used and total and not found and used > _HIDDEN_SHARE * total:
            if not self._ask("nvmlDeviceGetGraphicsRunningProcesses", handle):
                return (DeviceUser(0, used),)  # in a container, others' processes are not listed
        return tuple(device_user(pid, size) for pid, size in found.items()) if told else None

    def _ailment(self, number: int, handle: Any) -> tuple[str, bool]:
        """What is wrong with it, and whether what runs there is lost."""
        nvml = self._nvml
        if number in self._reported:
            return self._reported[number], True
        errors = self._ask(
            "nvmlDeviceGetTotalEccErrors",
            handle,
            getattr(nvml, "NVML_MEMORY_ERROR_TYPE_UNCORRECTED", 1),
            getattr(nvml, "NVML_VOLATILE_ECC", 0),
        )
        rows = self._ask("nvmlDeviceGetRemappedRows", handle) or (0, 0, 0, 0)
        if rows[3]:
            return REMAP_FAILED, False
        if rows[2] or self._ask("nvmlDeviceGetRetiredPagesPendingStatus", handle):
            return PENDING, False
        if errors:
            return ECC.format(count=errors), False
        return (MIG, False) if number in self._divided else ("", False)

    # ---------------------------------------------------------------------------- what it reports

    def _listen(self) -> Any:
        """Have failures reported to us from now on; None where the driver does not."""
        nvml = self._nvml
        wanted = getattr(nvml, "nvmlEventTypeXidCriticalError", None)
        events = self._try("nvmlEventSetCreate") if wanted else None
        for handle in self._handles.values() if events is not None else ():
            self._try("nvmlDeviceRegisterEvents", handle, wanted, events)
        return events

    def _hear(self) -> None:
        """Take in all that was reported since."""
        while self._events is not None:
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._events, 0)
            except self._nvml.NVMLError:  # a timeout, mostly: there is nothing more
                return
            number = self._try("nvmlDeviceGetIndex", event.device)  # one that is lost has none
            sentence = xid_sentence(int(event.eventData))
            if sentence and number is not None:
                self._reported[number] = sentence

    def _try(self, name: str, *args: Any) -> Any:
        """What NVML says, where a device that is just being lost may stay silent, too."""
        try:
            return self._ask(name, *args)
        except self._nvml.NVMLError:
            return None

    def _ask(self, name: str, *args: Any) -> Any:
        """What NVML says; None where this device or this driver cannot tell."""
        nvml = self._nvml
        try:
            return getattr(nvml, name)(*args)
        except AttributeError:
            return None
        except nvml.NVMLError as error:
            if error.value in self._losses():
                raise
            return None

    def _losses(self) -> dict[int, str]:
        nvml = self._nvml
        return {
            nvml.NVML_ERROR_GPU_IS_LOST: GONE,
            nvml.NVML_ERROR_RESET_REQUIRED: RESET,
            nvml.NVML_ERROR_UNKNOWN: "",
        }

    def _loss(self, error: Any) -> str:
        return self._losses().get(error.value) or f"does not answer ({error})"


def _text(value: Any) -> str:
    """Older versions of the library give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")

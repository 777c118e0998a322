"""What the tests of hardware share: tools of the makers, a driver's library, foreign processes."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.hardware.faketools import Tools

#: Of each device, in the words of the C file.
_INTEGERS = (
    "fails", "has_no_handle", "island", "apart", "divided", "pending", "unmappable", "retiring",
    "milliwatts", "celsius", "busy",
)  # fmt: skip
_LARGE = ("errors", "used", "millijoules")
DEVICES, PROCESSES = 8, 4


class Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class Driver:
    """A library in the place of NVIDIA's, the state of its devices, and the bindings to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.library = ctypes.CDLL(str(path))
        self.bindings = _bindings()
        self.bindings.nvmlLib = self.library

    def __getattr__(self, name: str) -> Any:
        """A value that is there for each device (`driver.errors[3] = 1`)."""
        kind = ctypes.c_int if name in _INTEGERS else ctypes.c_ulonglong
        if name not in _INTEGERS + _LARGE:
            raise AttributeError(name)
        return (kind * DEVICES).in_dll(self.library, name)

    def number(self, name: str) -> Any:
        """One number for all of them, to be read or written as its `value`."""
        return ctypes.c_int.in_dll(self.library, name)

    def puts(self, device: int, *users: tuple[int, int], kind: str = "computing") -> None:
        """These processes, and no others, are on the device: their numbers and bytes."""
        table = (Process * PROCESSES * DEVICES).in_dll(self.library, kind)
        for place in range(PROCESSES):
            pid, size = users[place] if place < len(users) else (0, 0)
            table[device][place] = Process(pid, size, 0xFFFFFFFF, 0xFFFFFFFF)

    def reports(self, device: int, xid: int) -> None:
        """The driver has a report of a device to be heard."""
        count = self.number("reports")
        (ctypes.c_int * 16).in_dll(self.library, "reported_of")[count.value] = device
        (ctypes.c_ulonglong * 16).in_dll(self.library, "reported")[count.value] = xid
        count.value += 1


def _bindings() -> ModuleType:
    """pynvml anew, so that no other test finds a driver where there is none."""
    spec = importlib.util.find_spec("pynvml")
    if spec is None or spec.loader is None:
        pytest.skip("nvidia-ml-py is not installed")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(spec.name)
    sys.modules[spec.name] = module  # it looks itself up while it is loaded
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
        if before is not None:
            sys.modules[spec.name] = before
    return module


@pytest.fixture(scope="session")
def compiled_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is here to make a driver's library with")
    source = Path(__file__).with_name("fake_nvml.c")
    library = tmp_path_factory.mktemp("driver") / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.fixture
def driver(compiled_driver: Path, tmp_path: Path) -> Driver:
    """Eight healthy devices that nobody uses; a copy, so that each test has its own state."""
    found = Driver(Path(shutil.copy(compiled_driver, tmp_path / "libnvidia-ml.so.1")))
    for number in range(DEVICES):
        found.milliwatts[number], found.celsius[number] = 70_000 + number, 30 + number
    return found


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    """The only programs that are found, to begin with none."""
    found = Tools(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(found.directory))
    return found


@pytest.fixture
def foreigner() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is nobody's job; it ends when its input does."""
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        yield process

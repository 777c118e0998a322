"""Damaged outputs of the makers' tools: read as what is left of them or refused, never a crash."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.hardware.faketools import RECORDED, Tools, recorded

from bough.hardware import amd, ascend, nvidia_smi, rocm_smi
from bough.hardware.probe import probe
from bough.hardware.readings import NotHere

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXTS = {file.name: recorded(file.name, 4_000_000, 4_000_001) for file in RECORDED.glob("*-smi-*")}
#: What takes the place of a part.
SCRAPS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["", "-", "N/A", "null", "{}", "[]", "9" * 5000, "-1", "1e999", "nan", "٣", "\0", "|", ","]
    ),
)


def read_nvidia(text: str) -> None:
    rows = nvidia_smi.table(text, nvidia_smi.DEVICE_FIELDS)
    nvidia_smi.readings(rows, nvidia_smi.table(text, nvidia_smi.USER_FIELDS))


def read_amd(text: str) -> None:
    found = list(amd.entries(text))
    known = amd.devices(found, found)
    amd.readings(known, found, found)


def read_rocm(text: str) -> None:
    rocm_smi.readings(rocm_smi.tables(text))


def read_ascend(text: str) -> None:
    seen = ascend.table(text)
    ascend.readings(seen, ascend.numbered(seen, ascend.logic_numbers(text)))


READERS = {
    "nvidia-smi": read_nvidia, "amd-smi": read_amd, "rocm-smi": read_rocm, "npu-smi": read_ascend,
}  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, tool: str) -> str:
    """A text of the tool with a part cut out, doubled, or replaced by something else."""
    text = TEXTS[draw(st.sampled_from(sorted(name for name in TEXTS if name.startswith(tool))))]
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 40)))
        text = text[:start] + draw(st.one_of(SCRAPS, st.just(text[start:end] * 2))) + text[end:]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


@pytest.mark.parametrize("tool", sorted(READERS))
@given(data=st.data())
@few
def test_damaged_outputs(tool: str, data: st.DataObject) -> None:
    text = data.draw(damaged(tool))
    with suppress(NotHere):
        READERS[tool](text)


@pytest.mark.parametrize("tool", sorted(READERS))
@given(text=st.text(max_size=200))
@few
def test_anything(tool: str, text: str) -> None:
    with suppress(NotHere):
        READERS[tool](text)


GARBAGE: dict[str, Callable[[], str]] = {
    "nothing": lambda: "",
    "an error page": lambda: "<html><body>502 Bad Gateway</body></html>\n",
    "a table of somebody else's": lambda: recorded("npu-smi-310p3.txt", 1),
    "deep": lambda: "[" * 100_000 + "\n",
    "numbers": lambda: "[1, 2, 3]\n",
    "flat": lambda: '{"card0": "none", "gpu_data": "none"}\n',
    "null": lambda: '{"gpu_data": null, "process_list": [null]}\n',
}


@pytest.mark.parametrize("garbage", sorted(GARBAGE))
def test_tools_that_print_garbage_leave_cpu_slots(tools: Tools, garbage: str) -> None:
    for name in ("nvidia-smi", "amd-smi", "rocm-smi"):
        tools.prints(name, ("*", GARBAGE[garbage]()))
    machine = probe()
    assert [node.kind for node in machine.nodes] == ["cpu"]
    assert any("amd-smi" in note for note in machine.notes)


def test_a_device_whose_tool_begins_to_print_garbage_does_not_answer(tools: Tools) -> None:
    tools.prints("rocm-smi", ("*", recorded("rocm-smi-5.7.json", 1)))
    machine = probe("amd")
    tools.prints("rocm-smi", ("*", "Segmentation fault\n"))
    found = machine.reader.read()
    assert [(reading.ailment, reading.broken) for reading in found.values()] == [
        ("does not answer: rocm-smi printed nothing that can be read", False)
    ] * 2
    assert all(reading.model and reading.uuid for reading in found.values())

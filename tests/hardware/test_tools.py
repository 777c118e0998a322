"""Programs of the makers, whatever becomes of them: what was printed, or a sentence on why not."""

from __future__ import annotations

import os
import select
import shutil
from pathlib import Path

import pytest
from tests.hardware.faketools import Tools

from bough.hardware import tools as running
from bough.hardware.readings import NotHere

PATIENCE_SECONDS = 20.0


def why(*argv: str, seconds: float = running.SECONDS_MAX) -> str:
    with pytest.raises(NotHere) as raised:
        running.run(*argv, seconds=seconds)
    return str(raised.value)


def test_what_is_printed(tools: Tools) -> None:
    tools.prints("rocm-smi", ("--json", '{"card0": {}}\n'))
    assert running.run("rocm-smi", "--json") == '{"card0": {}}\n'


def test_missing(tools: Tools) -> None:
    assert why("npu-smi", "info") == "npu-smi is not installed"


def test_no_right_to_run_it_is_as_good_as_missing(tools: Tools) -> None:
    (tools.directory / "npu-smi").write_text("#!/bin/sh\n")
    assert why("npu-smi") == "npu-smi is not installed"


def test_not_a_program_at_all(tools: Tools) -> None:
    broken = tools.directory / "npu-smi"
    broken.write_bytes(b"\x7fELF, but no more of it")
    broken.chmod(0o755)
    assert why("npu-smi") == "npu-smi cannot be run: Exec format error"


def test_interpreter_gone(tools: Tools) -> None:
    """amd-smi and rocm-smi are scripts of a Python that may have been taken away."""
    broken = tools.directory / "amd-smi"
    broken.write_text("#!/nowhere/python3\n")
    broken.chmod(0o755)
    assert why("amd-smi") == "amd-smi cannot be run: No such file or directory"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("echo first >&2; echo 'driver not loaded' >&2; exit 9", "driver not loaded"),
        ("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18",
         "Failed to initialize NVML: Driver/library version mismatch"),
        ("exit 3", "exit code 3"),
        ("kill -SEGV $$", "exit code -11"),
        ("echo half; echo '  ' >&2; exit 1", "half"),
    ],
)  # fmt: skip
def test_a_failure_says_what_the_tool_said_last(tools: Tools, body: str, sentence: str) -> None:
    tools.script("nvidia-smi", body)
    assert why("nvidia-smi") == f"nvidia-smi failed: {sentence}"


def test_a_long_complaint_is_cut(tools: Tools) -> None:
    tools.script("nvidia-smi", f"echo {'x' * 5000} >&2; exit 1")
    assert len(why("nvidia-smi")) < 250


def test_one_that_hangs_goes_with_all_that_it_started(tools: Tools, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    reader = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    sleep = shutil.which("sleep", path=os.defpath)
    tools.script("rocm-smi", f"exec 9>{alive}; {sleep} 600 & {sleep} 600; echo never")
    try:
        assert why("rocm-smi", seconds=0.3) == "rocm-smi did not answer within 0.3 s"
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        assert [event for _, event in poll.poll(PATIENCE_SECONDS * 1000)] == [select.POLLHUP]
    finally:
        os.close(reader)


def test_one_that_waits_for_input_gets_its_end(tools: Tools) -> None:
    tools.script("nvidia-smi", "read answer || echo no input")
    assert running.run("nvidia-smi") == "no input\n"


def test_numbers_are_written_as_everywhere(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the user's language writes 1,5 the tools are asked in plain C all the same."""
    for name in ("LANG", "LC_NUMERIC", "LC_ALL", "LANGUAGE"):
        monkeypatch.setenv(name, "de_DE.UTF-8")
    tools.script("nvidia-smi", '[ "$LC_ALL" = C ] && echo 61.20 || echo 61,20')
    assert running.number(running.run("nvidia-smi")) == 61.2


def test_bytes_that_are_no_text(tools: Tools) -> None:
    tools.script("nvidia-smi", r"printf '\377\376 31 \000 x\n'")
    assert "31" in running.run("nvidia-smi")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("61.20", 61.2), ("61.20 W", 61.2), (" 98 %", 98.0), ("97%", 97.0), (7, 7.0), ("-", None),
        ("N/A", None), ("NA", None), ("[Not Supported]", None), ("", None), (None, None),
        ("nan", None), ("inf", None), ("1e400", None), ("61,20", None), ("9" * 5000, None),
    ],
)  # fmt: skip
def test_a_number_whatever_stands_behind_it(text: object, number: float | None) -> None:
    assert running.number(text) == number


def test_units() -> None:
    assert running.whole("81559", 1 << 20) == 81559 << 20
    assert running.whole("[N/A]", 1 << 20) is None
    assert running.share("97 %") == 0.97
    assert running.share("-3") == 0.0
    assert running.share("250") == 1.0

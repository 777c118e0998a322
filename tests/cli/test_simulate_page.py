"""docs/simulate.md shows what its commands print, to the last digit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "simulate.md"
SCREEN = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
#: What differs from run to run: the time that deciding took, and what stands above it.
TIMES = (
    (re.compile(r" +(decision p99|\d+(µs|ms|s))$"), ""),
    (re.compile(r"─+$"), ""),
    (re.compile(r'("(?:cpu|decision_p\d\d)_seconds": ).*'), r"\1"),
)
#: Takes many seconds, and the means of its runs are those of the simulations above.
LONG = "bough sweep"


def screens() -> Iterator[tuple[str, list[str]]]:
    """Each command, and the lines below it."""
    for block in SCREEN.findall(PAGE.read_text(encoding="utf-8")):
        for part in block.split("$ ")[1:]:
            command, *lines = part.rstrip("\n").split("\n")
            yield command, lines


def lasting(line: str) -> str:
    """The part of a line that is the same in every run."""
    for pattern, instead in TIMES:
        line = pattern.sub(instead, line)
    return line.rstrip()


def test_what_is_shown_is_what_is_printed(tmp_path: Path) -> None:
    bin = Path(sys.executable).parent
    env = os.environ | {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "160"}
    checked = 0
    for command, shown in screens():
        if command.startswith(LONG):
            continue
        done = subprocess.run(
            ["bash", "-c", f"{{ {command} ; }} 2>&1"], check=False, cwd=tmp_path, env=env,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        printed = iter([lasting(line) for line in done.stdout.splitlines()])
        skipped = False
        for line in map(lasting, shown):
            if line.strip() == "…":
                skipped = True
                continue
            found = next((one for one in printed if not skipped or one == line), None)
            assert found == line, command
            skipped = False
        checked += 1
    assert checked >= 6


def test_it_would_notice() -> None:
    assert lasting("las   17h   12.8%   402µs") == lasting("las   17h   12.8%   1ms")
    assert lasting("las   17h   12.8%   402µs") != lasting("las   18h   12.8%   402µs")
    assert lasting('  "cpu_seconds": 1.5,') == lasting('  "cpu_seconds": 2.5,')

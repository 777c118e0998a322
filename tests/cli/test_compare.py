"""`bough compare` needs nothing and leaves a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from bough.cli import compare, main
from bough.policies import find


def test_a_small_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compare, "JOBS", 30)
    monkeypatch.setattr(compare, "POLICIES", ("fifo", "max_min"))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    file = tmp_path / "report.html"
    assert main(["compare", "--out", str(file)]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines() if "30 " in line[:20]] == [
        "fifo",
        "max_min",
    ]
    assert f"Open {file}" in shown
    assert '"policy":"max_min"' in file.read_text()


def test_its_policies_exist() -> None:
    assert len(compare.POLICIES) == 5
    for name in compare.POLICIES:
        find(name)

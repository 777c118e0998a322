"""`bough policies new` writes a policy that works and passes the test written with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bough.cli import main
from bough.policies import find


def test_what_is_written_passes_its_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["policies", "new", str(tmp_path / "my_idea.py")]) == 0
    assert "pytest" in capsys.readouterr().out
    assert type(find(str(tmp_path / "my_idea.py"))).__name__ == "MyIdea"
    # As its author would: nothing of our own settings is in force there.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_idea.py"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_mine.py").write_text("mine\n")
    assert main(["policies", "new", str(tmp_path / "mine.py")]) == 2
    assert "test_mine.py: is there already" in capsys.readouterr().err
    assert not (tmp_path / "mine.py").exists()


@pytest.mark.parametrize("name", ["mine.txt", "my-idea.py"])
def test_names_that_cannot_be(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["policies", "new", str(tmp_path / name)]) == 2
    assert "is no name for a policy's file" in capsys.readouterr().err

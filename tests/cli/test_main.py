"""Every foreseen failure of a command is one line on stderr and an exit code, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import click
import pytest

from bough import __version__
from bough.cli import COMMANDS, LazyGroup, main
from bough.errors import InputError

Run = Callable[[BaseException], int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `bough demo` with a command that raises the given error."""

    def run_raising(error: BaseException) -> int:
        @click.command()
        def command() -> None:
            raise error

        monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)
        return main(["demo"])

    return run_raising


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in shown] == []


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"bough, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["simulat"], "bough: no command 'simulat' (did you mean 'simulate'?)\n"),
        (["--nothing"], "bough: No such option '--nothing'.\n"),
    ],
)
def test_mistyped(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == line


def test_bad_input_is_one_line(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(InputError("is empty", file="t.csv")) == 2
    assert capsys.readouterr().err == "bough: t.csv: is empty\n"


def test_missing_file_is_one_line(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FileNotFoundError(2, "No such file or directory", "t.csv")) == 2
    assert capsys.readouterr().err == "bough: t.csv: No such file or directory\n"


def test_interrupt(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err.strip() == ""


def test_a_bug_keeps_its_traceback(run: Run) -> None:
    with pytest.raises(ZeroDivisionError):
        run(ZeroDivisionError())


def test_a_reader_that_leaves_early_is_no_error() -> None:
    """`bough --help | true`: the pipe is closed before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    code = "import sys; from bough.cli import main; sys.exit(main(['--help']))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 1

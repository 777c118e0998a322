"""A daemon for all tests of a file, and `bough …` run against it in this process or a terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.cli.jobs import clear
from tests.cli.terminal import Terminal
from tests.daemons import Daemon

from bough.cli import main


class Done(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


#: Runs `bough WORDS…` to its end.
Bough = Callable[..., Done]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with four CPU slots that the tests of a file share."""
    daemon = Daemon(tmp_path_factory.mktemp("machine") / "home")
    daemon.start()
    yield daemon
    daemon.clear()


@pytest.fixture
def vacant(machine: Daemon) -> Iterator[None]:
    """The test has all devices for itself, and leaves none of its jobs behind."""
    yield
    clear(machine)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty directory to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def bough(
    machine: Daemon,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Bough:
    """Run a command in this process: its exit code, and what it printed."""
    for name in [name for name in os.environ if name.startswith("BOUGH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("BOUGH_HOME", str(machine.home))

    def run(*words: str) -> Done:
        capsys.readouterr()
        code = main(words)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Done(code, out, err)

    return run


@pytest.fixture
def terminal(machine: Daemon, here: Path) -> Iterator[Callable[..., Terminal]]:
    """Begin a command in a terminal of 80 columns."""
    begun: list[Terminal] = []

    def begin(*words: str, **more: Any) -> Terminal:
        begun.append(Terminal(machine.command(*words), machine.env, cwd=here, **more))
        return begun[-1]

    yield begin
    for each in begun:
        each.close()

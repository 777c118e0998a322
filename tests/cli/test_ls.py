"""`bough ls`: whose jobs, which of them, in what order."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Bough
from tests.cli.jobs import over, running, submit
from tests.cli.terminal import Terminal
from tests.daemons import Daemon

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture(scope="module")
def jobs(machine: Daemon) -> dict[str, str]:
    """Some of all sorts: name -> number."""
    return {
        "early": over(machine, "--name", "early", "true"),
        "bad": over(machine, "--name", "bad", "sh", "-c", "exit 3"),
        "runs": running(machine, "--name", "runs", "-g", "2"),
        "waits": submit(machine, "--name", "waits", "-q", "vision", "-g", "8", "true"),
    }


def names(bough: Bough, *words: str) -> list[str]:
    return [job["name"] for job in bough("ls", *words, "--json").json]


@pytest.mark.usefixtures("jobs")
class TestWhich:
    def test_live_ones_first_then_those_that_ended(self, bough: Bough) -> None:
        assert names(bough) == ["waits", "runs", "bad", "early"]

    def test_of_a_state(self, bough: Bough) -> None:
        assert names(bough, "--state", "failed") == ["bad"]
        assert names(bough, "--state", "failed,done") == ["bad", "early"]
        assert names(bough, "--state", "failed", "--state", "done") == ["bad", "early"]
        assert names(bough, "--state", "live") == ["waits", "runs"]
        assert names(bough, "--state", "ended") == ["bad", "early"]

    def test_of_a_queue(self, bough: Bough) -> None:
        assert names(bough, "--queue", "vision") == ["waits"]

    def test_of_a_name(self, bough: Bough) -> None:
        assert names(bough, "--name", "early") == ["early"]

    def test_of_a_user(self, bough: Bough) -> None:
        assert names(bough, "--user", ME) == names(bough)
        assert names(bough, "--user", "nobody-of-that-name") == []

    def test_everybodys_say_whose_they_are(self, bough: Bough) -> None:
        assert ME not in bough("ls").out
        done = bough("ls", "--all")
        assert "User" in done.lines[0]
        assert all(ME in line for line in done.lines[1:])

    def test_at_most_so_many(self, bough: Bough) -> None:
        assert names(bough, "-n", "1") == ["waits"]
        assert names(bough, "-n", "3") == ["waits", "runs", "bad"]

    def test_nothing_is_nothing(self, bough: Bough) -> None:
        done = bough("ls", "--queue", "nowhere")
        assert (done.code, done.out, done.err) == (0, "", "")


def test_a_row_says_what_is_most_worth_knowing(bough: Bough, jobs: dict[str, str]) -> None:
    rows = {line.split()[1]: line for line in bough("ls").lines[1:]}
    assert ":0–1" in rows["runs"]
    assert "needs 8 cpu devices" in rows["waits"]
    assert "exit code 3" in rows["bad"]
    assert rows["early"].endswith("ago") or rows["early"].endswith("now")


def test_there_are_more(terminal: Callable[..., Terminal], jobs: dict[str, str]) -> None:
    screen = terminal("ls", "-n", "1")
    assert screen.ended() == 0
    assert "There are more; -n 2 shows them." in screen.text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--state", "asleep"), "'asleep' is no state"),
        (("--state", "runing"), "did you mean 'running'?"),
        (("-n", "0"), "-n"),
        (("-n", "few"), "-n"),
        (("12",), "12"),
        (("--watch",), "--watch needs a terminal"),
    ],
)
def test_a_mistake_is_one_line(bough: Bough, words: tuple[str, ...], said: str) -> None:
    done = bough("ls", *words)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert said in done.err


def test_no_daemon_is_one_line(
    bough: Bough, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none is started by looking."""
    monkeypatch.setenv("BOUGH_HOME", str(tmp_path / "empty"))
    done = bough("ls")
    assert (done.code, done.err) == (2, "bough: No bough runs here; `bough up` starts it.\n")
    assert bough("ls").code == 2

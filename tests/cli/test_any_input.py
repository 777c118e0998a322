"""Whatever is typed: an answer, or one sentence for each thing that is wrong; no traceback.

Words are drawn for the options that each command has, good ones, bad ones and bytes that are no
text. First they are only understood, by all commands; then they are sent to a daemon, by those that
neither end it nor take their time.

`make soak REQUESTS=1000` draws so many lines of words for each command.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.cli.jobs import over, running
from tests.daemons import Daemon

from bough.cli import COMMANDS, cli, main
from bough.errors import BoughError

LINES = int(os.environ.get("SOAK_REQUESTS", "60"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
Leaf = tuple[tuple[str, ...], click.Command]
#: What is likely to be taken for something.
WORDS = [
    "", " ", "-", "--", "-1", "0", "1", "2", "2..8", "8..2", "1,2", "1.5", "nan", "inf", "-inf",
    "1e999", "9" * 40, "1h", "-1h", "2h30m", "fri 18:00", "2001-01-01", "+1d", "now", "4G", "%",
    "*", "default", "runs", "over", "nobody", "1.0", "12.", "0-3", "3-0", "0-99999999999", "K=V",
    "=V", "K", "K=", "../../etc/passwd", "/", "/nowhere", "a/b", "a\nb", "a\tb", "\udcff\udcfe",
    "\u202e", "\x1b[31m", "é", "x" * 5000, "[]", "{}", "null", "policy=fifo", "max_min", "fifo:x=1",
    "--json", "--help", "-h", "--no-such", "-gg", "-e", "cpu:4", "node", "job.yaml", "nowhere.yaml",
]  # fmt: skip
#: No program can be given a NUL.
WORD = st.sampled_from(WORDS) | st.text(st.characters(exclude_characters="\0"), max_size=20)
SETTINGS = settings(
    max_examples=LINES, deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def leaves(path: tuple[str, ...], command: click.Command) -> Iterator[Leaf]:
    """Commands that do something."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from leaves((*path, name), below)
        if not command.invoke_without_command:
            return
    yield path, command


def all_leaves() -> list[Leaf]:
    context = click.Context(cli)
    every = ((name, cli.get_command(context, name)) for name in COMMANDS)
    return [leaf for name, found in every if found for leaf in leaves((name,), found)]


LEAVES = all_leaves()
#: Options by which a command goes on and on.
ENDLESS = {"--watch", "--follow", "-f"}
#: They end the daemon or the jobs, begin one, take a whole screen, or simulate for a while.
NOT_SENT = {
    "up", "down", "stop", "top", "demo", "compare", "simulate", "sweep", "trace", "reproduce",
    "doctor", "journal",
}  # fmt: skip
#: So that each line is quick, and nothing is started that was drawn.
ALWAYS = {"run": ("--dry-run",), "wait": ("--timeout", "0")}


@st.composite
def lines(draw: st.DrawFn, command: click.Command) -> list[str]:
    """Some options with a word each, arguments among them."""
    found: list[str] = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            if draw(st.integers(0, 9)):
                found.append(draw(WORD))
        elif not ENDLESS & set(parameter.opts) and not draw(st.integers(0, 3)):
            found.append(draw(st.sampled_from(parameter.opts)))
            if not getattr(parameter, "is_flag", False):
                found.append(draw(WORD))
    if not draw(st.integers(0, 3)):
        found.append(draw(WORD))
    return [word for word in found if word not in ENDLESS]


def named(leaf: Leaf) -> str:
    return " ".join(leaf[0])


@pytest.mark.parametrize("leaf", LEAVES, ids=named)
def test_any_words_are_understood_or_refused(leaf: Leaf) -> None:
    path, command = leaf

    @seed(SEED)
    @SETTINGS
    @given(words=lines(command))
    def typed(words: list[str]) -> None:
        with suppress(click.ClickException, click.exceptions.Exit, BoughError):
            command.make_context(path[-1], [*words])

    typed()


@pytest.fixture(scope="module")
def busy(machine: Daemon) -> Daemon:
    """With a job that runs and one that is over."""
    running(machine, "--name", "runs")
    over(machine, "--name", "over", "--", "true")
    return machine


@pytest.mark.parametrize("leaf", [x for x in LEAVES if x[0][0] not in NOT_SENT], ids=named)
def test_any_words_are_answered_in_sentences(
    leaf: Leaf,
    busy: Daemon,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, command = leaf
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOUGH_HOME", str(busy.home))

    @seed(SEED)
    @SETTINGS
    @given(words=lines(command))
    def typed(words: list[str]) -> None:
        capsys.readouterr()
        code = main([*path, *ALWAYS.get(path[0], ()), *words])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert code in (0, 1, 2) or (path[0], code) == ("wait", 124), (code, err)
        if code == 2:
            assert err
            assert all(line.startswith("bough: ") for line in err.splitlines()), err

    typed()
    assert busy.runs

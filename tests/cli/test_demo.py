"""`bough demo`: real jobs train on this machine, and give way to each other while they do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.daemons import Daemon


class Shown(NamedTuple):
    """A demo that is over."""

    daemon: Daemon
    text: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """Where no daemon ran before, on four devices."""
    daemon = Daemon(tmp_path_factory.mktemp("demo") / "home")
    daemon.start()
    assert daemon.bough("down").returncode == 0  # the next one is as this one was
    done = daemon.bough("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    yield Shown(daemon, done.stdout)
    daemon.clear()


def test_it_starts_a_daemon_that_stays(demo: Shown) -> None:
    assert "The daemon started" in demo.text
    assert "4 devices" in demo.text
    assert demo.daemon.runs


def test_three_jobs_share_the_machine_and_keep_their_deadlines(demo: Shown) -> None:
    assert re.search(r"long +running, 4 of 4", demo.text), "alone, it has everything"
    assert re.search(r"long +running, [12] of 4", demo.text), "it gave way to others"
    assert len([line for line in demo.text.splitlines() if "kept, " in line]) == 3
    assert "bough top" in demo.text, "it says what to type next"


def test_no_step_is_lost_or_repeated_when_jobs_change_size(demo: Shown) -> None:
    daemon = demo.daemon
    detail = json.loads(daemon.bough("show", "long", "--json").stdout)["detail"]
    assert len(detail["attempts"]) >= 2, "it was resized"
    printed = daemon.bough("logs", "long").stdout
    saved = [int(number) for number in re.findall(r"saved at step (\d+)", printed)]
    lines = re.findall(r"step (\d+) of 2000 on \d+ workers?$", printed, re.MULTILINE)
    begun = [int(number) for number in lines]
    assert begun == [0, *saved], "each attempt goes on where the one before it left off"


def test_what_is_learned_does_not_depend_on_the_number_of_workers(demo: Shown) -> None:
    daemon = demo.daemon
    program = [sys.executable, "-m", "bough.examples.training", "--steps", "60"]
    alone = subprocess.run(program, capture_output=True, text=True, check=True, cwd=daemon.home)
    shared = daemon.bough("run", "-g", "3", "--", *program)
    assert shared.returncode == 0, shared.stderr
    losses = [re.findall(r"loss ([\d.]+)", text)[-1] for text in (alone.stdout, shared.stdout)]
    assert float(losses[0]) == pytest.approx(float(losses[1]), abs=1e-3)

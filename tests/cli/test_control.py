"""stop, park, unpark, scale, retry, move, wait: what they do, what they say, how it is undone."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import Bough, Done
from tests.cli.jobs import over, running, submit, until
from tests.daemons import Daemon

pytestmark = pytest.mark.usefixtures("vacant")


def undo(done: Done) -> list[str]:
    """The command that takes it back, as it was told."""
    assert done.code == 0, done.err
    (command,) = re.findall(r"`bough ([^`]*)`", done.out)
    return shlex.split(command)


# ------------------------------------------------------------------------------------------ stop


def test_stop_ends_it_for_good(bough: Bough, machine: Daemon) -> None:
    id = running(machine, "--name", "endless")
    done = bough("stop", id)
    assert done.out == (
        f"Job {id} (endless) is being stopped; `bough retry {id}` runs it once more.\n"
    )
    assert bough("wait", id).code == 143
    assert until(machine, id, lambda job: True).state == "cancelled"


def test_stop_lets_it_say_goodbye(bough: Bough, machine: Daemon, here: Path) -> None:
    script = f"trap 'echo saved > {here}/saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    id = running(machine, "--", "sh", "-c", script)
    bough("stop", id)
    bough("wait", id)
    assert (here / "saved").read_text() == "saved\n"


def test_stop_what_has_not_begun(bough: Bough, machine: Daemon) -> None:
    running(machine, "-g", "4")
    id = submit(machine, "--", "touch", "never")
    assert bough("stop", id).out.startswith(f"Job {id} (touch) is cancelled;")


def test_stop_all_of_an_array(bough: Bough, machine: Daemon) -> None:
    first = running(machine, "-g", "4")
    array = submit(machine, "--array", "0-2", "--name", "sweep", "--", "true").partition(".")[0]
    assert len(bough("stop", array).lines) == 3
    assert bough("wait", array).code == 143
    assert bough("wait", first, "--timeout", "0s").code == 124


def test_stop_one_of_an_array(bough: Bough, machine: Daemon) -> None:
    running(machine, "-g", "4")
    array = submit(machine, "--array", "0-2", "--", "true").partition(".")[0]
    bough("stop", f"{array}.1")
    states = {job["id"]: job["state"] for job in bough("ls", "--json").json}
    assert [states[f"{array}.{n}"] for n in range(3)] == ["waiting", "cancelled", "waiting"]


def test_stop_what_is_over_changes_nothing(bough: Bough, machine: Daemon) -> None:
    id = over(machine, "--", "true")
    assert f"Job {id} (true) is done;" in bough("stop", id).out
    assert bough("wait", id).code == 0


def test_one_that_is_unknown_keeps_nobody_from_the_others(bough: Bough, machine: Daemon) -> None:
    first, last = running(machine), running(machine)
    done = bough("stop", first, "nobody", last)
    assert done.code == 2
    assert [line.split()[1] for line in done.lines] == [first, last]
    assert done.err.startswith("bough: No job is called 'nobody'")
    assert bough("wait", first, last).code == 143


def test_stop_as_json(bough: Bough, machine: Daemon) -> None:
    id = running(machine)
    (job,) = bough("stop", id, "--json").json
    assert (job["id"], job["state"]) == (id, "stopping")


# -------------------------------------------------------------------------------- park and unpark


def test_park_leaves_the_devices_and_unpark_takes_them_again(bough: Bough, machine: Daemon) -> None:
    id = running(machine, "-g", "4")
    done = bough("park", id)
    until(machine, id, lambda job: not job.devices)
    assert "parked" in bough("ls").lines[1]
    assert undo(done) == ["unpark", id]
    assert undo(bough("unpark", id)) == ["park", id]
    until(machine, id, lambda job: job.devices == 4)


def test_others_run_meanwhile(bough: Bough, machine: Daemon) -> None:
    first = running(machine, "-g", "4")
    bough("park", first)
    assert bough("run", "-g", "4", "--", "true").code == 0


def test_frozen_where_that_was_asked_for(bough: Bough, machine: Daemon) -> None:
    """It goes on in the same attempt."""
    id = running(machine, "--park", "signal")
    bough("park", id)
    until(machine, id, lambda job: not job.devices)
    bough("unpark", id)
    assert until(machine, id, lambda job: job.state == "running").epoch >= 1
    attempts = bough("show", id, "--json").json["detail"]["attempts"]
    assert len({each["began"] for each in attempts}) >= 1


def test_park_what_waits(bough: Bough, machine: Daemon) -> None:
    first = running(machine, "-g", "4")
    id = submit(machine, "--", "true")
    bough("park", id)
    bough("stop", first)
    bough("wait", first)
    assert bough("why", id, "--json").json["code"] == "held"


@pytest.mark.parametrize("command", ["park", "unpark"])
def test_what_is_over_is_not_parked(bough: Bough, machine: Daemon, command: str) -> None:
    id = over(machine, "--", "true")
    done = bough(command, id)
    assert (done.code, done.err) == (2, f"bough: Job {id} is over.\n")


# ----------------------------------------------------------------------------------------- scale


def test_scale_what_runs(bough: Bough, machine: Daemon) -> None:
    id = running(machine, "-g", "1", "--name", "elastic")
    done = bough("scale", id, "2..4")
    assert done.lines == [
        f"Job {id} (elastic) may have 2..4 devices; `bough scale {id} 1` undoes it."
    ]
    until(machine, id, lambda job: job.devices == 4)
    assert "asked      1 device; by now 2–4\n" in bough("show", id).out
    back = bough(*undo(done))
    assert back.out.startswith(f"Job {id} (elastic) may have 1 device; ")
    until(machine, id, lambda job: job.devices == 1)


@pytest.mark.parametrize(
    ("written", "sizes"),
    [
        ("3", [3]),
        ("1..4", [1, 2, 4]),
        ("2..6 step 2", [2, 4, 6]),
        ("1,3,4", [1, 3, 4]),
    ],
)
def test_scale_is_written_as_for_run(
    bough: Bough, machine: Daemon, written: str, sizes: list[int]
) -> None:
    running(machine, "-g", "4")
    id = submit(machine, "-g", "5", "--", "true")
    done = bough("scale", id, written)
    assert until(machine, id, lambda job: True).sizes == tuple(sizes)
    assert undo(done) == ["scale", id, "5"]
    again = bough("scale", id, written, "--json").json
    assert again[0]["sizes"] == sizes


def test_the_way_back_is_the_same_sizes(bough: Bough, machine: Daemon) -> None:
    id = submit(machine, "-g", "1,3,4", "--after", running(machine), "--", "true")
    bough(*undo(bough("scale", id, "2")))
    assert until(machine, id, lambda job: True).sizes == (1, 3, 4)


@pytest.mark.parametrize("written", ["0", "many", "4..2", "", "1.5", "1e3", "1..", "2,,1"])
def test_scale_to_nonsense(bough: Bough, machine: Daemon, written: str) -> None:
    id = submit(machine, "--after", running(machine), "--", "true")
    done = bough("scale", id, "--", written)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)


# ----------------------------------------------------------------------------------------- retry


def test_retry_runs_it_once_more(bough: Bough, machine: Daemon, here: Path) -> None:
    """Where it ran, with the environment it had."""
    script = "pwd; echo $FLAVOUR; exit 3"
    words = ("--cwd", str(here), "-e", "FLAVOUR=vanilla", "-g", "1", "--name", "again")
    id = over(machine, *words, "--", "sh", "-c", script)
    done = bough("retry", id)
    new = done.out.split()[1]
    assert done.out == f"Job {new} (again) repeats job {id}; `bough logs -f {new}` watches.\n"
    assert bough("wait", new).code == 3
    assert bough("logs", new).lines == [str(here), "vanilla"]


def test_retry_only_what_went_wrong_of_an_array(bough: Bough, machine: Daemon) -> None:
    words = ("--array", "0-2", "--name", "sweep", "--", "sh", "-c", "exit {index}")
    array = submit(machine, *words).partition(".")[0]
    bough("wait", array)
    again = bough("retry", array, "--json").json
    assert sorted(job["retry_of"] for job in again) == [f"{array}.1", f"{array}.2"]


def test_retry_what_is_not_over(bough: Bough, machine: Daemon) -> None:
    id = running(machine)
    done = bough("retry", id)
    assert (done.code, done.err) == (2, f"bough: Job {id} is not over yet.\n")


# ------------------------------------------------------------------------------------------ move


@pytest.fixture
def waiting(machine: Daemon) -> str:
    """A job that waits, with a deadline."""
    return submit(machine, "--after", running(machine), "--deadline", "+5h", "--", "true")


def test_move_to_another_queue_and_back(bough: Bough, machine: Daemon, waiting: str) -> None:
    bough("queue", "set", "vision")
    done = bough("move", waiting, "--queue", "vision")
    assert done.out.startswith(f"Job {waiting} (true) is in queue vision;")
    assert until(machine, waiting, lambda job: True).queue == "vision"
    bough(*undo(done))
    assert until(machine, waiting, lambda job: True).queue == "default"


def test_move_ahead_and_back(bough: Bough, machine: Daemon, waiting: str) -> None:
    done = bough("move", waiting, "--priority", "7")
    assert until(machine, waiting, lambda job: True).priority == 7
    assert undo(done) == ["move", waiting, "--priority", "0"]


def test_move_its_deadline_and_back(bough: Bough, machine: Daemon, waiting: str) -> None:
    before = until(machine, waiting, lambda job: True).deadline
    done = bough("move", waiting, "--deadline", "+9h", "--time", "2h")
    after = until(machine, waiting, lambda job: True).deadline
    assert before is not None
    assert after is not None
    assert after - before == pytest.approx(4 * 3600, abs=60)
    assert "should be done " in done.out
    assert "(in 9h)" in done.out or "(in 8h59m)" in done.out
    assert "may run 2h" in done.out
    bough(*undo(done))
    assert until(machine, waiting, lambda job: True).deadline == pytest.approx(before, abs=60)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "What is to change?"),
        (("--deadline", "someday"), "--deadline: "),
        (("--deadline", "2001-01-01"), "--deadline: '2001-01-01' needs a time of day"),
        (("--deadline", "2001-01-01 18:00"), "--deadline: "),
        (("--time", "long"), "--time"),
        (("--priority", "high"), "--priority"),
        (("--queue", "a/b"), "queue: may not contain slashes"),
        (("vision",), "vision"),
    ],
)
def test_move_to_nonsense(bough: Bough, waiting: str, words: tuple[str, ...], said: str) -> None:
    done = bough("move", waiting, *words)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert said in done.err


# ------------------------------------------------------------------------------------------ wait


def test_wait_says_how_each_ended(bough: Bough, machine: Daemon) -> None:
    good = submit(machine, "--name", "good", "--", "sleep", "0.2")
    bad = submit(machine, "--name", "bad", "--", "sh", "-c", "exit 5")
    done = bough("wait", good, bad)
    assert done.lines == [
        f"Job {good} (good) finished its work.",
        f"Job {bad} (bad) failed: exit code 5.",
    ]
    assert done.code == 5


def test_wait_no_longer_than_asked(bough: Bough, machine: Daemon) -> None:
    id = running(machine)
    done = bough("wait", id, "--timeout", "0.1s")
    assert done.code == 124
    assert done.out.startswith(f"Job {id} (")


def test_wait_for_an_array(bough: Bough, machine: Daemon) -> None:
    array = submit(machine, "--array", "0-1", "--", "true").partition(".")[0]
    assert len(bough("wait", array).lines) == 2


def test_wait_as_json(bough: Bough, machine: Daemon) -> None:
    id = submit(machine, "--", "true")
    (job,) = bough("wait", id, "--json").json
    assert (job["id"], job["state"], job["code"]) == (id, "done", 0)


# ----------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize(
    "words",
    [
        ("stop",), ("park",), ("unpark",), ("retry",), ("wait",), ("scale",), ("scale", "1"),
        ("move",), ("stop", "999"), ("park", "999"), ("unpark", "999"), ("retry", "999"),
        ("wait", "999"), ("scale", "999", "2"), ("move", "999", "--priority", "1"),
        ("wait", "1", "--timeout", "-1"), ("wait", "1", "--timeout", "soon"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_nobody_or_nothing_is_one_line(bough: Bough, words: tuple[str, ...]) -> None:
    done = bough(*words)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)

"""`bough show`: all of one job, in the words of whoever submitted it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.conftest import Bough
from tests.cli.jobs import over, running, submit, until
from tests.daemons import Daemon

from bough.records import JobDetail, Receipt

pytestmark = pytest.mark.usefixtures("vacant")


@pytest.fixture(scope="module")
def failed(machine: Daemon) -> str:
    """One with two attempts."""
    machine.bough("config", "set", "backoff_seconds", "0.05")
    words = ("--name", "flaky", "-g", "2", "--retry", "1", "--mem", "64MiB", "--priority", "3")
    return over(machine, *words, "--", "sh", "-c", "echo out; exit 7")


def facts(bough: Bough, id: str) -> dict[str, str]:
    """Label -> text."""
    lines = bough("show", id).lines
    found = (re.match(r"(\w+) {2,}(\S.*)", line) for line in lines[1 : lines.index("")])
    return {match[1]: match[2] for match in found if match}


def test_what_was_asked_for(bough: Bough, failed: str, machine: Daemon) -> None:
    known = facts(bough, failed)
    assert known["asked"] == "2 devices with 64MiB each"
    assert known["command"] == "sh -c 'echo out; exit 7'"
    assert known["folder"] == str(machine.home)
    assert known["whose"].endswith("in queue default, priority 3")


def test_what_became_of_it(bough: Bough, failed: str) -> None:
    done = bough("show", failed)
    assert done.lines[0] == f"Job {failed}  flaky  failed with exit code 7"
    assert facts(bough, failed)["failures"].startswith("2 so far")
    tries = [line for line in done.lines if re.match(r" +\d  ", line)]
    assert len(tries) == 2
    assert all("exit code 7" in line for line in tries)
    assert re.search(r"Receipt: waited .*; ran .* device-hours.*2 starts, 2 failures\.", done.out)


def test_while_it_runs(bough: Bough, machine: Daemon) -> None:
    id = running(machine, "--name", "going", "-g", "1..2", "--deadline", "+3h", "--time", "2h")
    done, known = bough("show", id), facts(bough, id)
    assert done.lines[0].split()[-1] in ("starting", "running")
    assert known["asked"] == "1–2 devices, at most 2h"
    assert re.fullmatch(r"\S+:\d–\d", known["where"])
    assert "in 3h" in known["deadline"] or "in 2h59m" in known["deadline"]
    assert "goes on" in done.out
    assert "Receipt so far: " in done.out


def test_devices_over_time(bough: Bough, machine: Daemon) -> None:
    """Where they changed."""
    id = running(machine, "-g", "1", "--name", "grew")
    bough("scale", id, "2")
    until(machine, id, lambda job: job.devices == 2)
    assert "1 to 2 devices, " in bough("show", id).out


def test_after_and_array(bough: Bough, machine: Daemon) -> None:
    first = running(machine, "-g", "1")
    last = submit(machine, "--after", first, "--array", "3-4", "--name", "sweep", "--", "true")
    known = facts(bough, last)
    assert known["after"] == first
    assert known["array"] == "sweep, number 3"


def test_an_array_is_listed(bough: Bough, machine: Daemon) -> None:
    words = (
        "--array",
        "0-2",
        "--name",
        "swept",
        "--",
        "sh",
        "-c",
        "echo seed {index}; exit {index}",
    )
    array = submit(machine, *words).partition(".")[0]
    bough("wait", array)
    for command, ref in (("show", array), ("why", array), ("show", "swept")):
        head, _, *rows = bough(command, ref).lines
        assert head == f"Array {array}  swept  3 jobs: 1 done, 2 failed"
        assert [row.split()[:2] for row in rows] == [
            [f"{array}.{n}", f"swept-{n}"] for n in range(3)
        ]
    assert [job["id"] for job in bough("show", array, "--json").json] == [
        f"{array}.{n}" for n in range(3)
    ]
    assert bough("show", "swept-1").lines[0] == f"Job {array}.1  swept-1  failed with exit code 1"
    printed = "".join(f"[swept-{n}] seed {n}\n" for n in range(3))
    assert bough("logs", "swept").out == printed
    assert sorted(bough("logs", "-f", array).lines) == printed.splitlines()
    assert bough("logs", f"{array}.1").out == "seed 1\n"
    said = bough("logs", array, "--json")
    assert (said.code, said.out) == (2, "")
    assert f"say which: {array}.0" in said.err


def test_what_it_repeats(bough: Bough, machine: Daemon, failed: str) -> None:
    (again,) = bough("retry", failed, "--json").json
    assert facts(bough, again["id"])["repeats"] == f"job {failed}"


def test_the_latest_of_a_name(bough: Bough, machine: Daemon) -> None:
    over(machine, "--name", "twice", "true")
    second = over(machine, "--name", "twice", "true")
    assert bough("show", "twice", "--json").json["detail"]["job"]["id"] == second


def test_json_is_the_answers_of_the_api(bough: Bough, failed: str) -> None:
    found = bough("show", failed, "--json").json
    assert set(found) == {"detail", "receipt"}
    assert set(found["detail"]) == set(JobDetail.__struct_fields__)
    assert set(found["receipt"]) == set(Receipt.__struct_fields__)
    assert [each["code"] for each in found["detail"]["attempts"]] == [7, 7]


@pytest.mark.parametrize("ref", ["999", "0", "-1", "12.", "1e3", "nobody", "../..", "", "a/b", "%"])
def test_nobody_of_that_name(bough: Bough, ref: str, here: Path) -> None:
    done = bough("show", "--", ref)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)


def test_a_name_that_was_mistyped(bough: Bough, machine: Daemon) -> None:
    over(machine, "--name", "pretraining", "true")
    assert "did you mean 'pretraining'" in bough("show", "pretrainin").err


def test_whether_its_deadline_is_promised(bough: Bough, machine: Daemon) -> None:
    """A policy may take a job on without the promise it asks for: nobody is told otherwise."""
    machine.bough("config", "set", "policy", "chronus")
    words = ("--guaranteed", "--deadline", "+30m", "--estimate")
    kept, broken = running(machine, *words, "10m"), running(machine, *words, "10h")
    machine.bough("config", "set", "policy", "fair")
    assert facts(bough, kept)["deadline"].endswith(", promised")
    assert facts(bough, broken)["deadline"].endswith(", not promised")

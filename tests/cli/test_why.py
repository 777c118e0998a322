"""`bough why`: the reason, its numbers, and what would help, as a command that does help."""

from __future__ import annotations

import re
import shlex

import pytest
from tests.cli.conftest import Bough, Done
from tests.cli.jobs import over, running, submit, until
from tests.daemons import Daemon

pytestmark = pytest.mark.usefixtures("vacant")


def typed(done: Done) -> list[str]:
    """The command that the answer ends with."""
    assert done.code == 0, done.err
    (line,) = re.findall(r"^  bough (.*)$", done.out, re.M)
    return shlex.split(line)


def numbers(done: Done) -> dict[str, str]:
    return dict(re.findall(r"^  (\S.*?) {2,}(\S.*)$", done.out, re.M))


def test_it_runs(bough: Bough, machine: Daemon) -> None:
    id = running(machine, "-g", "2..8", "--name", "lucky")
    until(machine, id, lambda job: job.state == "running")
    done = bough("why", id)
    assert done.lines[0] == f"Job {id}  lucky  running"
    assert done.lines[1].startswith("It runs on 4 devices of ")
    assert numbers(done)["devices"] == "4"


def test_it_waits_and_fewer_devices_would_do(bough: Bough, machine: Daemon) -> None:
    running(machine, "-g", "2")
    id = submit(machine, "-g", "4", "--name", "big", "--", "sleep", "600")
    done = bough("why", id)
    assert done.lines[1] == "It needs 4 cpu devices and 2 of 4 are free."
    assert numbers(done)["devices it needs"] == "4"
    assert numbers(done)["free now"] == "2"
    assert "Accept 2 devices, and it starts now." in done.lines
    assert typed(done) == ["scale", id, "2..4"]
    bough(*typed(done))
    assert until(machine, id, lambda job: job.devices > 0).devices == 2


def test_it_is_larger_than_the_cluster(bough: Bough, machine: Daemon) -> None:
    """Also where all of it is in use."""
    running(machine, "-g", "4")
    id = submit(machine, "-g", "64", "--", "true")
    done = bough("why", id)
    assert done.lines[1] == "It needs 64 cpu devices; the cluster has 4 in working order."
    assert "Waiting does not help" in done.out
    assert typed(done) == ["scale", id, "4"]
    assert bough(*typed(done)).code == 0
    assert bough("why", id, "--json").json["code"] == "busy"


def test_its_queue_may_not_have_more_and_another_may(bough: Bough, machine: Daemon) -> None:
    bough("queue", "set", "narrow", "--limit", "1")
    id = submit(machine, "-q", "narrow", "-g", "2", "--", "sleep", "600")
    done = bough("why", id)
    assert "queue narrow may use 1" in done.out
    assert typed(done)[:3] == ["move", id, "--queue"]
    assert bough(*typed(done)).code == 0
    until(machine, id, lambda job: job.devices == 2)


def test_its_queue_is_paused(bough: Bough, machine: Daemon) -> None:
    bough("queue", "set", "closed", "--pause")
    id = submit(machine, "-q", "closed", "--", "sleep", "600")
    done = bough("why", id)
    assert "Queue closed is paused." in done.lines
    bough(*typed(done))
    until(machine, id, lambda job: job.devices == 1)


def test_somebody_parked_it(bough: Bough, machine: Daemon) -> None:
    id = running(machine)
    bough("park", id)
    done = bough("why", id)
    assert done.lines[0].endswith("  parked")
    assert typed(done) == ["unpark", id]
    bough(*typed(done))
    until(machine, id, lambda job: job.devices == 1)


def test_it_waits_for_another(bough: Bough, machine: Daemon) -> None:
    first = running(machine)
    id = submit(machine, "--after", first, "--", "true")
    done = bough("why", id)
    assert f"It waits for {first} to end." in done.lines


def test_it_failed(bough: Bough, machine: Daemon) -> None:
    id = over(machine, "--", "sh", "-c", "exit 3")
    done = bough("why", id)
    assert "exit code 3" in done.out
    assert typed(done) == ["retry", id]
    assert bough(*typed(done)).code == 0


def test_it_was_stopped(bough: Bough, machine: Daemon) -> None:
    id = running(machine)
    bough("stop", id)
    bough("wait", id)
    assert typed(bough("why", id)) == ["retry", id]


def test_it_is_done_and_nothing_is_left_to_do(bough: Bough, machine: Daemon) -> None:
    id = over(machine, "--name", "brief", "--", "true")
    assert bough("why", id).lines == [f"Job {id}  brief  done", "It finished its work."]


def test_others_are_first(bough: Bough, machine: Daemon) -> None:
    running(machine, "-g", "4")
    submit(machine, "--", "true")
    id = submit(machine, "--", "true")
    assert numbers(bough("why", id))["jobs ahead of it"] == "1"


def test_json_is_the_reason(bough: Bough, machine: Daemon) -> None:
    running(machine, "-g", "2")
    id = submit(machine, "-g", "4", "--", "true")
    found = bough("why", id, "--json").json
    assert found["code"] == "busy"
    assert found["facts"]["free"] == 2
    assert found["remedy"] == "Accept 2 devices, and it starts now"


def test_nobody_of_that_name(bough: Bough) -> None:
    done = bough("why", "nobody")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("bough: No job is called 'nobody'")

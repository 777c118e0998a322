"""Jobs that are parked by freezing them: they give way at once and go on where they were."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.backends.conftest import GPUS
from tests.faults.witness import Bell, is_alive, state_of, wait_for_end

from bough.backends import attempts
from bough.core.model import Exited
from bough.home import attempt_dir, job_dir
from bough.testing.backends import Stage

TELLS = 'echo $$ > "$BELL"; exec sleep 1000'


def park(stage: Stage, bell: Bell, devices: int = 1) -> list[int]:
    """A job that runs and is frozen; its processes."""
    stage.run("1", TELLS, devices, park="signal")
    workers = [bell.pid() for _ in range(devices)]
    stage.stop("1", park=True)
    assert stage.exit_of("1") == ("stopped", 0)
    assert {state_of(worker) for worker in workers} == {"T"}
    return workers


def go_on(stage: Stage, devices: int = 1, epoch: int = 2) -> None:
    stage.run("1", TELLS, devices, epoch=epoch, park="signal")


def shim_of(home: Path, epoch: int = 1) -> int:
    facts = attempts.read_shim(attempt_dir(home, "1", epoch))
    assert facts is not None
    return facts.pid


def test_a_parked_job_goes_on_as_another_epoch(stage: Stage, bell: Bell) -> None:
    (worker,) = park(stage, bell)
    go_on(stage)
    assert state_of(worker) != "T"
    assert bell.silent  # nobody new
    assert [log.size for log in stage.body.logs("1", 2)] == [0]
    os.kill(worker, signal.SIGKILL)
    assert stage.exit_of("1", epoch=2) == ("failed", 137)


def test_it_may_be_parked_again_and_again(stage: Stage, bell: Bell) -> None:
    (worker,) = park(stage, bell)
    for epoch in (2, 3, 4):
        go_on(stage, epoch=epoch)
        stage.stop("1", epoch=epoch, park=True)
        assert stage.exit_of("1", epoch) == ("stopped", 0)
        assert state_of(worker) == "T"
    assert bell.silent


def test_at_another_size_it_is_launched_anew(stage: Stage, bell: Bell) -> None:
    (worker,) = park(stage, bell)
    go_on(stage, devices=2)
    assert not is_alive(worker)
    assert worker not in (bell.pid(), bell.pid())


def test_cpu_slots_are_as_good_as_any_others(stage: Stage, bell: Bell) -> None:
    (worker,) = park(stage, bell)
    place = stage.place(1, first=5)
    stage.run("1", TELLS, epoch=2, park="signal", place=place)
    assert state_of(worker) != "T"


def test_on_other_gpus_it_is_launched_anew(stage: Stage, bell: Bell) -> None:
    there = ((GPUS.name, (1,)),)
    stage.run("1", TELLS, park="signal", place=there)
    first = bell.pid()
    stage.stop("1", park=True)
    stage.exit_of("1")
    stage.run("1", TELLS, epoch=2, park="signal", place=there)
    assert is_alive(first)
    stage.stop("1", epoch=2, park=True)
    stage.exit_of("1", 2)
    stage.run("1", TELLS, epoch=3, park="signal", place=((GPUS.name, (2,)),))
    assert not is_alive(first)
    assert bell.pid() != first


def test_a_frozen_job_that_is_not_wanted_any_more_ends(stage: Stage, bell: Bell) -> None:
    (worker,) = park(stage, bell)
    stage.stop("1", park=False)
    assert stage.exit_of("1")[0] == "stopped"
    assert not is_alive(worker)


def test_a_stop_that_overtakes_a_freeze_ends_it(stage: Stage, bell: Bell) -> None:
    stage.run("1", TELLS, park="signal")
    worker = bell.pid()
    stage.stop("1", park=True)
    stage.stop("1", park=False)
    assert stage.exit_of("1")[0] == "stopped"
    wait_for_end(worker)


def test_a_job_that_is_parked_while_it_starts_is_frozen(stage: Stage, bell: Bell) -> None:
    stage.start("1", TELLS, park="signal")
    stage.stop("1", park=True)
    assert stage.exit_of("1")[0] == "stopped"
    go_on(stage)
    assert is_alive(bell.pid())


def test_one_that_is_stopped_before_it_is_launched_anew_stays_stopped(
    stage: Stage, bell: Bell
) -> None:
    park(stage, bell)
    stage.start("1", TELLS, devices=2, epoch=2, park="signal")
    stage.stop("1", epoch=2)
    assert stage.exit_of("1", epoch=2)[0] == "stopped"
    assert bell.silent


def test_a_late_stop_of_an_older_epoch_does_no_harm(stage: Stage, bell: Bell) -> None:
    (worker,) = park(stage, bell)
    go_on(stage)
    stage.stop("1", epoch=1)
    assert stage.exit_of("1", epoch=1)[0] == "stopped"
    assert state_of(worker) != "T"
    stage.stop("1", epoch=2)
    assert stage.exit_of("1", epoch=2)[0] == "stopped"


def test_what_could_not_be_found_again_is_ended_instead_of_frozen(
    stage: Stage, home: Path, bell: Bell
) -> None:
    stage.run("1", TELLS, park="signal")
    worker = bell.pid()
    (job_dir(home, "1") / "parked.json").mkdir()  # so that no such file can be made
    stage.stop("1", park=True)
    assert stage.exit_of("1")[0] == "stopped"
    assert not is_alive(worker)


# ---------------------------------------------------------------------------------- restarts


def test_it_is_still_frozen_after_a_restart_and_goes_on(stage: Stage, bell: Bell) -> None:
    (worker,) = park(stage, bell)
    stage.forget()
    assert stage.return_with({}) == []
    assert state_of(worker) == "T"
    go_on(stage)
    assert state_of(worker) != "T"
    assert bell.silent


def test_it_ends_after_a_restart_when_it_is_not_wanted_any_more(stage: Stage, bell: Bell) -> None:
    (worker,) = park(stage, bell)
    stage.forget()
    stage.return_with({})
    stage.stop("1", park=False)
    assert stage.exit_of("1")[0] == "stopped"
    assert not is_alive(worker)


def test_a_freeze_that_was_not_heard_of_is_told_again(stage: Stage, bell: Bell) -> None:
    (worker,) = park(stage, bell)
    stage.forget()
    (end,) = stage.return_with({"1": stage.believed("stopping")})
    assert isinstance(end, Exited)
    assert end.why == "stopped"
    assert state_of(worker) == "T"


def test_a_freeze_that_was_only_intended_is_carried_out(
    stage: Stage, home: Path, bell: Bell
) -> None:
    stage.run("1", TELLS, park="signal")
    worker = bell.pid()
    stage.forget()
    attempts.park(home, "1", attempt_dir(home, "1", 1))
    assert stage.return_with({"1": stage.believed("stopping")}) == []
    assert stage.exit_of("1")[0] == "stopped"
    assert state_of(worker) == "T"


@pytest.mark.parametrize("unparked", [False, True])
def test_a_thaw_that_was_only_intended_is_carried_out(
    stage: Stage, home: Path, bell: Bell, unparked: bool
) -> None:
    (worker,) = park(stage, bell)
    stage.forget()
    attempts.go_on(home, "1", 2, attempt_dir(home, "1", 1))
    if unparked:
        attempts.unpark(home, "1")
    assert stage.return_with({"1": stage.believed("starting", epoch=2)}) == []
    go_on(stage)
    assert state_of(worker) != "T"
    assert bell.silent


def test_one_that_died_while_frozen_is_launched_anew(stage: Stage, home: Path, bell: Bell) -> None:
    (worker,) = park(stage, bell)
    stage.forget()
    os.kill(shim_of(home), signal.SIGKILL)
    wait_for_end(shim_of(home))
    stage.return_with({})
    go_on(stage)
    assert not is_alive(worker)
    assert bell.pid() != worker

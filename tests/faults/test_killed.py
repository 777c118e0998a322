"""`kill -9` of a shim and of workers, under a real daemon: who is told, and what comes after."""

from __future__ import annotations

import os
import signal

import pytest
from tests.faults.victims import TELLS, Victims
from tests.faults.witness import is_alive, wait_for_end

from bough.core.retries import STORM_TRIES

#: Leaves its group and its session, and keeps only its environment.
RUNAWAY = '(setsid sh -c \'echo "$$ 0" > "$BELL"; exec sleep 1000\' &)'


def test_a_killed_shim_takes_its_job_along_which_begins_anew(victims: Victims) -> None:
    job = victims.submit(f"{RUNAWAY}; {TELLS}")
    everybody = [victims.told()[0], victims.told()[0]]
    os.kill(victims.shim(job), signal.SIGKILL)
    again = {victims.told()[1], victims.told()[1]}
    assert again == {0, 2}
    assert not any(map(is_alive, everybody))
    lost, running = victims.attempts(job)
    assert (lost.how, running.how) == ("lost", "")
    assert lost.note == "bough's watcher over the job was killed"
    over = victims.stop(job)
    assert (over.state, over.failures) == ("cancelled", 0)
    assert victims.sound().over == {job.id}


def test_a_shim_killed_while_no_daemon_ran_is_the_same(victims: Victims) -> None:
    job, worker = victims.run()
    victims.mortal.kill()
    os.kill(shim := victims.shim(job), signal.SIGKILL)
    wait_for_end(shim)
    victims.mortal.start()
    assert victims.told()[1] == 2
    assert not is_alive(worker)
    assert victims.attempts(job)[0].how == "lost"


def test_a_job_whose_shim_is_always_killed_is_slowed_down_and_says_why(victims: Victims) -> None:
    """As by a program that kills its parent, or by a memory that is too small for the watcher."""
    job = victims.submit("kill -9 $PPID; exec sleep 1000")
    waiting = victims.until(job.id, "waiting")
    while waiting.job.epoch <= STORM_TRIES:
        waiting = victims.until(job.id, "waiting")
    assert waiting.job.reason.code == "retry"
    assert "watcher over the job was killed" in waiting.job.reason.text
    assert victims.stop(job).state == "cancelled"


@pytest.mark.parametrize("devices", [1, 3])
def test_a_killed_worker_is_tried_again_with_all_of_its_gang(
    victims: Victims, devices: int
) -> None:
    job = victims.submit(TELLS, devices, launch="each")
    workers = [victims.told()[0] for _ in range(devices)]
    os.kill(workers[-1], signal.SIGKILL)
    again = [victims.told() for _ in range(devices)]
    assert {epoch for _, epoch in again} == {2}
    assert not any(map(is_alive, workers))
    first = victims.attempts(job)[0]
    assert (first.how, first.code) == ("failed", 137)
    assert "was killed by signal 9" in first.note


def test_a_storm_of_retries_is_broken_and_explained(victims: Victims) -> None:
    job = victims.submit("echo begins; kill -9 $$", retries=100)
    over = victims.end_of(job)
    assert (over.state, over.code) == ("failed", 137)
    assert over.reason.text == (
        "It failed: somebody else killed it (SIGKILL), "
        f"as did {STORM_TRIES + 1} tries in a row that ran less than a minute."
    )
    assert len(victims.attempts(job)) == STORM_TRIES + 1
    assert victims.log(job) == "begins\n" * (STORM_TRIES + 1)


def test_what_never_passes_is_not_tried_again(victims: Victims) -> None:
    over = victims.end_of(victims.submit("exec no-such-command", retries=5))
    assert (over.state, over.code, over.epoch) == ("failed", 127, 1)


def test_what_nobody_knows_is_tried_as_often_as_was_asked(victims: Victims) -> None:
    over = victims.end_of(victims.submit("exit 3", retries=2))
    assert (over.state, over.code, over.epoch, over.failures) == ("failed", 3, 3, 3)
    assert over.reason.text == "It failed: exit code 3, on the last of 3 tries."


def test_what_needs_more_memory_than_it_asked_for_is_not_tried_again(victims: Victims) -> None:
    hog = "exec python3 -I -S -c 'data = b\"x\" * (200 << 20); import time; time.sleep(1000)'"
    over = victims.end_of(victims.submit(hog, memory=100 << 20, retries=5))
    assert (over.state, over.code, over.epoch) == ("failed", 137, 1)
    assert "more memory than it asked for" in over.reason.text

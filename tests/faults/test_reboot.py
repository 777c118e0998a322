"""The machine goes off with all that runs, and comes on again: what was lost is told and made up.

A restart of the machine is known by its boot id, which is a file of the kernel; here another file
lies over it, in a mount namespace of the daemon and all that it starts.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.mortals import Nursery
from tests.faults.victims import Victims
from tests.faults.witness import wait_for_end

BOOT_ID = "/proc/sys/kernel/random/boot_id"
#: Runs a command where a file lies over the boot id.
ELSEWHERE = ("unshare", "--mount", "sh", "-c", f'mount --bind "$0" {BOOT_ID} && exec "$@"')
DAY = 86400.0


@pytest.fixture(scope="module")
def boot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the daemon takes for the machine's boot id."""
    file = tmp_path_factory.mktemp("boot") / "boot_id"
    file.write_text("first\n")
    try:
        subprocess.run([*ELSEWHERE, str(file), "true"], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("no file may be laid over another here: it takes root")
    return file


@pytest.fixture(scope="module")
def nursery(boot: Path) -> Iterator[Nursery]:
    nursery = Nursery(*ELSEWHERE, str(boot))
    yield nursery
    nursery.close()


def restart(victims: Victims, boot: Path, after_seconds: float = 60.0) -> None:
    """All is gone at once; the machine is off for a while, then there is another daemon."""
    victims.cut_power()
    boot.write_text(f"after {boot.read_text()}"[:100])
    victims.mortal.switch_on(after_seconds)
    victims.mortal.start()


def test_what_ran_is_lost_and_begins_anew_and_what_waited_waits(
    victims: Victims, boot: Path
) -> None:
    wide, _ = victims.run(devices=3)
    alone, _ = victims.run()
    waits = victims.submit("true", devices=4)
    restart(victims, boot)
    assert {victims.told()[1], victims.told()[1]} == {2}
    for job in (wide, alone):
        lost, again = victims.attempts(job)
        assert (lost.how, again.how) == ("lost", "")
        assert lost.note == "the machine was restarted"
        assert victims.detail(job).job.failures == 0, "it is not its fault"
    assert victims.detail(waits).job.state == "waiting"
    for job in (wide, alone):
        assert victims.stop(job).state == "cancelled"
    assert victims.end_of(waits).state == "done"
    assert victims.sound().over == {wide.id, alone.id, waits.id}


def test_a_job_without_any_retry_is_begun_anew_as_well(victims: Victims, boot: Path) -> None:
    """Retries are for failures."""
    job, _ = victims.run(retries=0)
    for epoch in (2, 3):
        restart(victims, boot)
        assert victims.told()[1] == epoch
    assert [each.how for each in victims.attempts(job)] == ["lost", "lost", ""]
    assert victims.stop(job).failures == 0
    victims.sound()


@pytest.mark.parametrize("heard", [True, False], ids=["heard-of", "just-begun"])
def test_the_night_that_it_was_off_is_nobodys_time(
    victims: Victims, boot: Path, heard: bool
) -> None:
    job, _ = victims.run(max_run_seconds=3600.0)
    if heard:
        victims.until(job.id, "running")
    restart(victims, boot, DAY)
    assert victims.told()[1] == 2
    running = victims.until(job.id, "running").job
    assert running.device_seconds < 600
    lost, again = victims.attempts(job)
    assert lost.ended is not None
    assert lost.ended - running.submitted < 600
    assert again.began is not None
    assert again.began - running.submitted > DAY - 600
    victims.stop(job)
    victims.sound()


def test_an_end_that_nobody_heard_of_counts(victims: Victims, boot: Path) -> None:
    """The daemon died first; the job ended well; then the power went."""
    job = victims.submit('echo "$$ 1" > "$BELL"; read line < "$GATE"; exit 3', env=gate(victims))
    victims.told()
    shim = victims.shim(job)
    victims.mortal.kill()
    (victims.mortal.home / "gate").write_text("go\n")
    wait_for_end(shim)
    restart(victims, boot)
    over = victims.end_of(job)
    assert (over.state, over.code, over.epoch) == ("failed", 3, 1)
    victims.sound()


def gate(victims: Victims) -> dict[str, str]:
    """A pipe that holds a worker back."""
    path = victims.mortal.home / "gate"
    subprocess.run(["mkfifo", str(path)], check=True)
    return {"GATE": str(path)}


def test_what_was_frozen_begins_anew(victims: Victims, boot: Path) -> None:
    job, _ = victims.run(park="signal")
    victims.ask(lambda client: client.park(job.id))
    victims.until(job.id, "waiting")
    restart(victims, boot)
    assert victims.detail(job).job.held
    assert victims.bell.silent
    victims.ask(lambda client: client.unpark(job.id))
    assert victims.told()[1] == 2
    victims.stop(job)
    victims.sound()


def test_a_stop_that_the_power_cut_short_is_a_stop(victims: Victims, boot: Path) -> None:
    job, _ = victims.run('trap "" TERM; echo "$$ 1" > "$BELL"; while :; do sleep 1; done')
    victims.ask(lambda client: client.stop(job.id))
    restart(victims, boot)
    assert victims.end_of(job).state == "cancelled"
    assert victims.bell.silent
    victims.sound()


def test_a_process_that_has_the_number_of_a_lost_one_is_left_alone(
    victims: Victims, boot: Path
) -> None:
    """After a restart, numbers are given out again from the beginning."""
    job, _ = victims.run()
    bystander = subprocess.Popen(
        [sys.executable, "-c", "import time; print('x', flush=True); time.sleep(1000)"],
        stdout=subprocess.PIPE,
        env={"BOUGH_ATTEMPT_DIR": str(victims.mortal.home / "jobs" / job.id / "1" / "scratch")},
        start_new_session=True,
    )
    try:
        assert bystander.stdout is not None
        bystander.stdout.readline()
        restart(victims, boot)
        assert victims.told()[1] == 2
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.communicate()
    victims.stop(job)

"""Workers that misbehave under a real daemon: they hurt themselves, and what was done is told."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.journals import assert_sound
from tests.faults.mortals import Nursery
from tests.faults.victims import Victims
from tests.faults.watched import KIB, MIB
from tests.faults.witness import is_alive

from bough.errors import BoughError
from bough.server.daemon import read_notice

LINE = "0123456789012345678901234567890123456789"
FLOODS = f'echo "$$ 1" > "$BELL"; exec yes {LINE}'


def test_a_flood_is_bounded_and_said_and_hurts_nobody_else(victims: Victims) -> None:
    """Another job's lines are whole, and the daemon answers."""
    flood, _ = victims.run(FLOODS, log_bytes_max=64 * KIB)
    directory = victims.mortal.home / "jobs" / flood.id / "1"
    other = victims.end_of(
        victims.submit(
            f"seq 1 500; until test -e {directory}/worker-0.log.2; do sleep 0.01; done; seq 501 999"
        )
    )
    assert other.state == "done"
    assert victims.log(other) == "".join(f"{n}\n" for n in range(1, 1000))
    assert victims.stop(flood).state == "cancelled"
    kept = sum(path.stat().st_size for path in directory.glob("worker-0.log*"))
    assert kept <= 200 * KIB
    (attempt,) = victims.attempts(flood)
    assert "bytes of output were dropped" in attempt.note
    first, *printed = victims.log(flood).splitlines()
    assert "bytes of earlier output were dropped" in first
    of_the_job = {line for line in printed if not line.startswith("bough: ")}
    assert of_the_job <= {LINE, LINE[: len(printed[-1])]}


def test_a_flood_without_a_line_is_bounded_too(victims: Victims) -> None:
    job = victims.submit("exec head -c 3000000 /dev/zero", log_bytes_max=64 * KIB)
    assert victims.end_of(job).state == "done"
    directory = victims.mortal.home / "jobs" / job.id / "1"
    assert sum(path.stat().st_size for path in directory.glob("worker-0.log*")) <= 400 * KIB
    assert len(victims.log(job)) > 64 * KIB


def test_who_does_not_listen_is_killed_after_its_grace(victims: Victims) -> None:
    deaf = 'trap "" TERM INT HUP; echo "$$ 1" > "$BELL"; while :; do sleep 0.1; done'
    job, worker = victims.run(deaf, grace_seconds=0.5)
    over = victims.stop(job)
    assert over.state == "cancelled"
    assert not is_alive(worker)
    (attempt,) = victims.attempts(job)
    assert attempt.workers[0].signal == 9
    assert attempt.workers[0].ended_at - over.submitted > 0.5


def test_nobody_runs_away_from_the_end_of_a_job(victims: Victims) -> None:
    """Twice forked, in a session of its own, deaf, and with nothing open."""
    runaway = (
        '(setsid sh -c \'(trap "" TERM; exec > /dev/null 2>&1 < /dev/null;'
        ' echo "$(exec sh -c "echo \\$PPID") 1" > "$BELL"; while :; do sleep 0.1; done) &\' &)'
    )
    job = victims.submit(f"{runaway}; exec sleep 1000", grace_seconds=0.5)
    ran = victims.told()[0]
    assert is_alive(ran)
    assert victims.stop(job).state == "cancelled"
    assert not is_alive(ran)
    with victims.mortal.client() as client:
        assert client.status().free == 4


def test_who_closes_its_output_is_waited_for_and_its_code_counts(victims: Victims) -> None:
    job = victims.submit('exec >&- 2>&-; echo "$$ 1" > "$BELL"; sleep 0.2; exit 9')
    victims.told()
    over = victims.end_of(job)
    assert (over.state, over.code) == ("failed", 9)
    assert victims.log(job) == ""


def test_what_is_no_text_is_shown_and_harms_nothing(victims: Victims) -> None:
    job = victims.submit("head -c 5000 /dev/urandom; echo; printf '\\033[2J\\377\\n'; echo end")
    assert victims.end_of(job).state == "done"
    assert victims.log(job).splitlines()[-1] == "end"


# ---------------------------------------------------------------------------------- a full disk


@pytest.fixture
def small(nursery: Nursery, tmp_path: Path) -> Iterator[Victims]:
    """A daemon whose home is on a disk of a few megabytes."""
    room = tmp_path / "room"
    room.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(room)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        victims = Victims(nursery, room)
        yield victims
        (room / "ballast").unlink(missing_ok=True)
        victims.clear()
    finally:
        subprocess.run(["umount", "--lazy", str(room)], check=True)


def fill(path: Path) -> None:
    """Until nothing more fits."""
    with open(path, "wb", buffering=0) as file:
        for size in (MIB, 4 * KIB, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def test_a_disk_that_a_worker_fills_loses_nothing_that_was_acknowledged(small: Victims) -> None:
    """New jobs are refused in a sentence; those that are there end as they do, and are told."""
    filling, _ = small.run('echo "$$ 1" > "$BELL"; read line < "$GATE"; exit 5', env=gated(small))
    kept, _ = small.run()
    for job in (filling, kept):
        small.until(job.id, "running")
    ballast = small.mortal.home.parent / "ballast"
    fill(ballast)
    refused = ""
    with small.mortal.client() as client:
        for _ in range(1000):  # what was taken on may have had room in the journal's file
            try:
                small.submit("true", devices=4)
            except BoughError as error:
                refused = str(error)
                break
        assert "disk" in refused.lower() or "full" in refused.lower(), refused
        assert client.job(kept.id).job.state == "running"
        assert any("written down" in note for note in client.status().notes)
        taken = {job.id for job in client.jobs(limit=1000).jobs}
    (small.mortal.home / "gate").write_text("go\n")  # its end cannot be written down now
    ballast.unlink()
    over = small.end_of(filling)
    assert (over.state, over.code) == ("failed", 5)
    small.stop(kept)
    with small.mortal.client() as client:
        assert {job.id for job in client.jobs(limit=1000).jobs} == taken
        for id in taken:
            client.stop(id)
        assert client.status().notes == ()
    small.mortal.end()
    assert_sound(small.mortal.home)
    small.mortal.start()


def test_a_daemon_killed_on_a_full_disk_begins_again(small: Victims) -> None:
    job, worker = small.run()
    small.until(job.id, "running")
    ballast = small.mortal.home.parent / "ballast"
    fill(ballast)
    small.mortal.kill()
    small.mortal.start()
    assert read_notice(small.mortal.home).pid == small.mortal.pid
    assert small.detail(job).job.state == "running"
    assert is_alive(worker)
    ballast.unlink()
    assert small.stop(job).state == "cancelled"
    small.mortal.end()
    assert_sound(small.mortal.home)
    small.mortal.start()


def gated(victims: Victims) -> dict[str, str]:
    """A pipe that holds a worker back."""
    os.mkfifo(victims.mortal.home / "gate")
    return {"GATE": str(victims.mortal.home / "gate")}

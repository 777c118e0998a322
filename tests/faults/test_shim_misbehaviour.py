"""The shim among workers that misbehave, on full disks, killed, and on behalf of others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.watched import FOREVER, KIB, MIB, WatchedAttempt
from tests.faults.witness import is_alive, state_of, wait_for_end

root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root may do this")


# ---------------------------------------------------------------------------------- misbehaviour


def test_who_closes_its_output_is_still_waited_for(attempt: WatchedAttempt) -> None:
    attempt.launch(
        'exec > /dev/null 2>&1; echo $$ > "$BELL"; read line < "$GATE"; exit 4',
        env=attempt.gate(),
    )
    worker = attempt.bell.pid()
    assert is_alive(worker)
    attempt.open_gate()
    assert attempt.end().code == 4


#: Leaves its parent, its group and its session, closes nothing, and tells its number.
FORKS_AWAY = f"(setsid sh -c '%secho $$ > \"$BELL\"; {FOREVER}' &)"


def test_who_forks_away_is_ended_with_the_job(attempt: WatchedAttempt) -> None:
    attempt.launch(FORKS_AWAY % "" + '; read line < "$GATE"', env=attempt.gate())
    runaway = attempt.bell.pid()
    assert os.getsid(runaway) == runaway
    attempt.open_gate()
    assert attempt.end().how == "done"
    assert not is_alive(runaway)


def test_who_forks_away_and_ignores_signals_is_killed(attempt: WatchedAttempt) -> None:
    attempt.launch(FORKS_AWAY % 'trap "" TERM; ' + "; exec sleep 1000", grace_seconds=0.2)
    runaway = attempt.bell.pid()
    attempt.tell(signal.SIGTERM)
    assert attempt.end().how == "stopped"
    assert not is_alive(runaway)


def test_children_may_say_goodbye_when_their_parent_goes_first(attempt: WatchedAttempt) -> None:
    child = attempt.directory / "child.sh"
    child.write_text(f"trap 'echo saved; exit' TERM; echo ready > $BELL; {FOREVER}")
    attempt.launch(f"setsid sh {child} & exec sleep 1000")
    attempt.bell.wait()
    attempt.tell(signal.SIGTERM)
    assert attempt.end().how == "stopped"
    assert attempt.log().splitlines()[-1] == "saved"


def test_a_flood_is_bounded_and_says_so_and_starves_nobody(attempt: WatchedAttempt) -> None:
    rotated = f"grep -qs dropped {attempt.directory}/worker-0.log.1"
    attempt.launch(
        "yes 0123456789012345678901234567890123456789",
        f'for i in 1 2 3; do echo "line $i"; done; until {rotated}; do sleep 0.01; done;'
        ' echo seen > "$BELL"; exec sleep 1000',
        log_bytes_max=64 * KIB,
    )
    attempt.bell.wait()
    attempt.tell(signal.SIGTERM)
    end = attempt.end()
    assert attempt.log(1) == "line 1\nline 2\nline 3\n"
    parts = sorted(path.name for path in attempt.directory.glob("worker-0.log*"))
    assert parts == ["worker-0.log", "worker-0.log.1", "worker-0.log.2"]
    assert sum((attempt.directory / part).stat().st_size for part in parts) <= 200 * KIB
    said, *rest = attempt.log(part=".1").splitlines()
    assert said.startswith("bough: ")
    assert "bytes of earlier output were dropped" in said
    assert set(rest) == {"0123456789012345678901234567890123456789"}  # whole lines only
    assert "worker 0: " in end.note
    assert "bytes of output were dropped" in end.note


def test_a_full_disk_stops_no_worker(attempt: WatchedAttempt) -> None:
    attempt.launch(f"{sys.executable} -I -S -c \"print('x' * 200000)\"; exit 5", start=False)
    attempt.spawn(f"resource.setrlimit(resource.RLIMIT_FSIZE, ({16 * KIB}, {16 * KIB}))")
    end = attempt.end()
    assert (end.how, end.code) == ("failed", 5)
    assert f"{200_001 - 16 * KIB} bytes of output were dropped" in end.note
    assert (attempt.directory / "worker-0.log").stat().st_size == 16 * KIB


@root_only
def test_room_on_a_full_disk_is_used_when_it_comes_back(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(room)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        attempt = WatchedAttempt(room)
        env = attempt.gate()
        (room / "ballast").write_bytes(b"x" * 100 * KIB)
        attempt.launch(
            'yes 0123456789 | head -c 396000; echo full > "$BELL"; read line < "$GATE"; echo over',
            env=env,
        )
        attempt.bell.wait()
        (room / "ballast").unlink()
        attempt.open_gate()
        end = attempt.end()
        lines = attempt.log().splitlines()
        attempt.close()
    finally:
        subprocess.run(["umount", str(room)], check=True)
    assert (end.how, lines[-1]) == ("done", "over")
    (said,) = (line for line in lines if line.startswith("bough: "))
    assert "could not be written: No space left on device" in said


def test_memory_beyond_the_limit_ends_the_job_with_a_word(attempt: WatchedAttempt) -> None:
    hog = "data = b'x' * (200 << 20); import time; time.sleep(1000)"
    attempt.launch(
        "exec sleep 1000", f'exec {sys.executable} -I -S -c "{hog}"', memory_max=100 * MIB
    )
    end = attempt.end()
    assert (end.how, end.code) == ("failed", 137)
    assert "its memory limit is 100 MiB" in end.note
    assert [w.signal for w in end.workers] != [0, 0]


# ---------------------------------------------------------------------------------- freezing


def test_everybody_is_frozen_and_goes_on(attempt: WatchedAttempt) -> None:
    tells = "sh -c 'echo $$ > \"$BELL\"; exec sleep 1000'"
    attempt.launch(f"setsid {tells} & {tells}")
    everybody = [attempt.bell.pid(), attempt.bell.pid()]
    assert attempt.heard() == "R"
    attempt.tell(signal.SIGUSR1)
    assert attempt.heard() == "F"
    assert [state_of(pid) for pid in everybody] == ["T", "T"]
    assert json.loads((attempt.directory / "shim.json").read_text())["state"] == "frozen"
    attempt.tell(signal.SIGUSR2)
    assert attempt.heard() == "R"
    assert "T" not in [state_of(pid) for pid in everybody]


def test_the_frozen_end_gracefully_too(attempt: WatchedAttempt) -> None:
    attempt.launch("trap 'echo saved; exit 0' TERM; echo ready > \"$BELL\"; " + FOREVER)
    attempt.bell.wait()
    assert attempt.heard() == "R"
    attempt.tell(signal.SIGUSR1)
    assert attempt.heard() == "F"
    attempt.tell(signal.SIGTERM)
    assert attempt.end().how == "stopped"
    assert attempt.log().splitlines()[-1] == "saved"


# ---------------------------------------------------------------------------------- kill -9


def test_when_the_shim_is_killed_its_workers_die_with_it(attempt: WatchedAttempt) -> None:
    attempt.launch(*['echo $$ > "$BELL"; exec sleep 1000'] * 3)
    workers = [attempt.bell.pid() for _ in range(3)]
    attempt.tell(signal.SIGKILL)
    for worker in workers:
        wait_for_end(worker)
    assert not (attempt.directory / "exit.json").exists()


# ---------------------------------------------------------------------------------- other users


@root_only
def test_workers_run_as_the_user_who_asked(attempt: WatchedAttempt) -> None:
    attempt.launch(
        f"id -u; id -g; id -G; cat {attempt.directory}/launch.json || echo private",
        uid=65534,
        gid=65533,
        groups=(65533, 65532),
    )
    end = attempt.end()
    assert end.how == "done"
    lines = attempt.log().splitlines()
    assert lines[:3] == ["65534", "65533", "65533 65532"]
    assert lines[-1] == "private"
    assert (attempt.directory / "worker-0.log").stat().st_uid == 0


@root_only
def test_a_directory_is_entered_as_who_asked(attempt: WatchedAttempt, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    attempt.launch("pwd", cwd=str(private), uid=65534, gid=65534)
    end = attempt.end()
    assert (end.how, end.code) == ("failed", 126)
    assert "Permission denied" in end.note


def test_a_log_is_not_written_through_a_link(attempt: WatchedAttempt, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (attempt.directory / "worker-0.log").symlink_to(tmp_path / "victim")
    attempt.launch("echo overwritten")
    assert attempt.end().how == "done"
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.skipif(os.getuid() == 0, reason="root may become anybody")
def test_who_may_not_become_somebody_else_starts_nothing(attempt: WatchedAttempt) -> None:
    attempt.launch('echo here > "$BELL"', uid=65534, gid=65534)
    end = attempt.end()
    assert (end.how, end.code) == ("failed", 126)
    assert attempt.bell.silent

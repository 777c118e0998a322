"""Jobs of this machine while the daemon comes and goes, shims are killed, and power fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.faults.watched import SHIM
from tests.faults.witness import Bell, is_alive, wait_for_end

from bough.backends import attempts
from bough.backends.local import Local
from bough.core.model import Exited, Started
from bough.home import attempt_dir
from bough.testing.backends import Inbox, Stage

TELLS = 'echo $$ > "$BELL"; exec sleep 1000'
#: Leaves its group and its session, and keeps only its environment.
RUNAWAY = "(setsid sh -c 'echo $$ > \"$BELL\"; exec sleep 1000' &)"


def shim_of(home: Path, job: str, epoch: int = 1) -> int:
    facts = attempts.read_shim(attempt_dir(home, job, epoch))
    assert facts is not None
    return facts.pid


def told(stage: Stage, learnt: list[object]) -> Exited:
    """The end of job 1, learnt at once or told soon after."""
    event = learnt[0] if learnt else stage.inbox.take(Exited, "1", 1)
    assert isinstance(event, Exited)
    return event


# ---------------------------------------------------------------------------------- kill -9


def test_a_killed_shim_loses_the_job_and_all_that_ran(stage: Stage, home: Path, bell: Bell) -> None:
    stage.run("1", f"{RUNAWAY}; {TELLS}", devices=2)
    everybody = [bell.pid() for _ in range(4)]
    os.kill(shim_of(home, "1"), signal.SIGKILL)
    assert stage.exit_of("1")[0] == "lost"
    assert not any(map(is_alive, everybody))
    ending = stage.body.ending("1", 1)  # type: ignore[attr-defined]
    assert "killed" in ending.note


def test_a_shim_killed_while_nobody_watched_is_noticed(
    stage: Stage, home: Path, bell: Bell
) -> None:
    stage.run("1", f"{RUNAWAY}; {TELLS}")
    everybody = [bell.pid(), bell.pid()]
    stage.forget()
    os.kill(shim_of(home, "1"), signal.SIGKILL)
    wait_for_end(shim_of(home, "1"))
    end = told(stage, [*stage.return_with({"1": stage.believed("running")})])
    assert end.why == "lost"
    assert not any(map(is_alive, everybody))


def test_a_lost_job_stays_lost(stage: Stage, home: Path) -> None:
    stage.run("1", "exec sleep 1000")
    os.kill(shim_of(home, "1"), signal.SIGKILL)
    assert stage.exit_of("1")[0] == "lost"
    stage.forget()
    assert told(stage, [*stage.return_with({"1": stage.believed("running")})]).why == "lost"


def test_a_killed_worker_is_its_jobs_failure(stage: Stage, bell: Bell) -> None:
    stage.run("1", TELLS, devices=3)
    os.kill(bell.pid(), signal.SIGKILL)
    assert stage.exit_of("1") == ("failed", 137)


def test_a_killed_daemon_changes_nothing(stage: Stage, home: Path, bell: Bell) -> None:
    """A real one, so that the shim is nobody's child any more."""
    program = f"""
import os, signal, time
from pathlib import Path
from bough.backends.local import Local
from bough.core.model import JobSpec, Node, Start
from bough.records import Recipe
body = Local(Path({str(home)!r}), [Node(name="here", kind="cpu", devices=8)], time.time)
body.open(lambda event: os.kill(os.getpid(), signal.SIGKILL))
script = 'echo $$ > {bell.path}; exec sleep 1000'
recipe = Recipe(argv=("/bin/sh", "-c", script), cwd="/")
body.execute(Start(id="1", epoch=1, place=(("here", (0,)),)), JobSpec(name="x"), recipe)
time.sleep(60)
"""
    daemon = subprocess.run([sys.executable, "-c", program], check=False)
    assert daemon.returncode == -signal.SIGKILL
    worker = bell.pid()
    stage.forget()
    learnt = stage.return_with({"1": stage.believed("starting")})
    assert [type(event) for event in learnt] == [Started]
    assert is_alive(worker)
    stage.start("1", TELLS)  # told twice: still the same
    stage.inbox.take(Started, "1", 1)
    stage.stop("1")
    assert stage.exit_of("1")[0] == "stopped"
    assert not is_alive(worker)


# ---------------------------------------------------------------------------------- half-done


def never_begun(stage: Stage, home: Path) -> Path:
    """An attempt that was prepared when the daemon died."""
    stage.start("2", "exit 0")
    stage.exit_of("2")
    directory = attempt_dir(home, "1", 1)
    directory.mkdir(parents=True)
    launch = attempts.read_launch(attempt_dir(home, "2", 1))
    assert launch is not None
    attempts.write(directory / "launch.json", msgspec.structs.replace(launch, job="1"))
    return directory


def test_a_prepared_attempt_is_lost_and_never_begins(stage: Stage, home: Path) -> None:
    directory = never_begun(stage, home)
    stage.forget()
    assert told(stage, [*stage.return_with({"1": stage.believed("starting")})]).why == "lost"
    subprocess.run([*SHIM, str(directory)], check=True)  # a shim that came late
    assert attempts.read_ending(directory) is None
    assert list(directory.glob("*.log")) == []


def test_a_prepared_attempt_that_was_to_stop_is_stopped(stage: Stage, home: Path) -> None:
    never_begun(stage, home)
    stage.forget()
    assert told(stage, [*stage.return_with({"1": stage.believed("stopping")})]).why == "stopped"


def test_torn_files_lose_the_job_and_nothing_else(stage: Stage, home: Path) -> None:
    directory = never_begun(stage, home)
    for name in ("launch.json", "shim.json", "exit.json"):
        (directory / name).write_bytes(b'{"pid": 1')
    stage.forget()
    assert told(stage, [*stage.return_with({"1": stage.believed("running")})]).why == "lost"


# ---------------------------------------------------------------------------------- who is who


@pytest.mark.parametrize("change", [{"start_ticks": 1}, {"boot_id": "another"}])
def test_a_stranger_with_the_same_number_is_left_alone(
    stage: Stage, home: Path, bell: Bell, change: dict[str, object]
) -> None:
    directory = never_begun(stage, home)
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    facts = json.loads((attempt_dir(home, "2", 1) / "shim.json").read_text())
    stat = Path(f"/proc/{stranger.pid}/stat").read_text().rpartition(")")[2].split()
    facts |= {"pid": stranger.pid, "start_ticks": int(stat[19]), "state": "running"}
    (directory / "shim.json").write_text(json.dumps(facts | change))
    stage.forget()
    assert told(stage, [*stage.return_with({"1": stage.believed("running")})]).why == "lost"
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_after_a_reboot_what_was_finished_before_counts(stage: Stage, home: Path) -> None:
    stage.start("1", "exit 3")
    stage.exit_of("1")
    path = attempt_dir(home, "1", 1) / "shim.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"boot_id": "another"}))
    stage.forget()
    end = told(stage, [*stage.return_with({"1": stage.believed("running")})])
    assert (end.why, end.code) == ("failed", 3)


# ---------------------------------------------------------------------------------- answers


def test_answers_before_anybody_listens_are_kept(home: Path, stage: Stage) -> None:
    stage.run("1", "exec sleep 1000")
    stage.forget()
    os.kill(shim_of(home, "1"), signal.SIGKILL)
    wait_for_end(shim_of(home, "1"))
    body = Local(home, stage.body.nodes(), lambda: 42.0)
    learnt = body.observe({"1": stage.believed("running")})
    inbox = Inbox()
    body.open(inbox)
    end = learnt[0] if learnt else inbox.take(Exited, "1", 1)
    assert (end.at, type(end)) == (42.0, Exited)
    body.close()
    stage.return_with({})


def test_ports_of_living_jobs_are_remembered(stage: Stage, home: Path) -> None:
    stage.run("1", "exec sleep 1000")
    stage.forget()
    stage.return_with({"1": stage.believed("running")})
    stage.run("2", "exec sleep 1000")
    launches = [attempts.read_launch(attempt_dir(home, job, 1)) for job in ("1", "2")]
    ports = [port for launch in launches if launch for port in launch.ports]
    assert len(ports) == len(set(ports)) == 4


def test_nothing_is_left_behind_in_the_daemon(stage: Stage) -> None:
    def held() -> tuple[int, set[int]]:
        everyone = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        mine = {pid for pid in everyone if parent_of(pid) == os.getpid()}
        return len(os.listdir("/proc/self/fd")), mine

    stage.start("0", "exit 0")
    stage.exit_of("0")
    before = held()
    for number in range(1, 21):
        stage.start(str(number), "exit 0")
    for number in range(1, 21):
        assert stage.exit_of(str(number)) == ("done", 0)
    assert held() == before


def parent_of(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])

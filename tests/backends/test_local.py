"""This machine as a body: what it does for a job besides what every body does."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.witness import Bell

from bough.backends.local import Local
from bough.backends.render import Identity
from bough.core.model import JobSpec, Node, Resized, Started
from bough.errors import InputError
from bough.home import attempt_dir, job_dir
from bough.records import Ending, Recipe
from bough.testing.backends import Stage

TELLS = 'echo ready > "$BELL"; exec sleep 1000'
root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root may do this")


def ending(stage: Stage, job: str = "1", epoch: int = 1) -> Ending:
    assert isinstance(stage.body, Local)
    found = stage.body.ending(job, epoch)
    assert found is not None
    return found


def log(stage: Stage, job: str = "1", rank: int = 0) -> str:
    return stage.body.logs(job, 1)[rank].path.read_text()


# ---------------------------------------------------------------------------------- cannot start


@pytest.mark.parametrize(
    ("more", "code", "sentence"),
    [
        ({"argv": ("nonsense-command",)}, 127, "cannot run 'nonsense-command'"),
        ({"argv": ("/etc/passwd",)}, 126, "cannot run '/etc/passwd': Permission denied"),
        ({"cwd": "/no/such/place"}, 126, "the directory '/no/such/place' cannot be used"),
    ],
)
def test_a_command_that_cannot_run_fails_with_a_sentence(
    stage: Stage, more: dict[str, Any], code: int, sentence: str
) -> None:
    stage.start("1", "exit 0", **more)
    assert stage.exit_of("1") == ("failed", code)
    assert sentence in ending(stage).note
    assert log(stage).startswith(f"bough: {sentence}")


def test_no_command_at_all_fails_with_a_sentence(stage: Stage) -> None:
    stage.start("1", "", argv=())
    assert stage.exit_of("1") == ("failed", 126)
    assert ending(stage).note == "the job has no command"


def test_whatever_goes_wrong_is_an_answer(stage: Stage) -> None:
    stage.start("1", "exit 0", env={"ODD": "\udc80"})  # no JSON can hold that
    assert stage.exit_of("1") == ("failed", 125)
    assert "could not start it" in ending(stage).note


def test_what_bough_cannot_do_is_told_as_such(stage: Stage, home: Path) -> None:
    (home / "jobs").write_text("in the way")
    stage.start("1", "exit 0")
    assert stage.exit_of("1") == ("failed", 125)
    (home / "jobs").unlink()
    stage.start("1", "exit 0", epoch=2)
    assert stage.exit_of("1", 2) == ("done", 0)


# ---------------------------------------------------------------------------------- what jobs get


def test_each_worker_knows_its_rank_and_where_to_meet(stage: Stage) -> None:
    stage.start("1", 'echo "$RANK/$WORLD_SIZE $MASTER_ADDR $BOUGH_DEVICES"', devices=2)
    assert stage.exit_of("1") == ("done", 0)
    assert log(stage, rank=0) == "0/2 127.0.0.1 here:0\n"
    assert log(stage, rank=1) == "1/2 127.0.0.1 here:1\n"


def test_what_a_job_keeps_is_there_in_its_next_attempt(stage: Stage) -> None:
    stage.start("1", 'echo kept > "$BOUGH_JOB_DIR/state"; touch "$BOUGH_ATTEMPT_DIR/own"')
    stage.exit_of("1")
    stage.start("1", 'cat "$BOUGH_JOB_DIR/state"; ls "$BOUGH_ATTEMPT_DIR"', epoch=2)
    assert stage.exit_of("1", 2) == ("done", 0)
    assert stage.body.logs("1", 2)[0].path.read_text() == "kept\n"


def test_mpi_finds_its_hosts(stage: Stage) -> None:
    stage.start("1", 'cat "$BOUGH_HOSTFILE"', devices=3, launch="one")
    stage.exit_of("1")
    assert log(stage) == "localhost slots=3\n"


def test_a_place_may_span_nodes_of_the_machine(stage: Stage) -> None:
    place = (("here", (0,)), ("there", (1,)))
    stage.start("1", 'echo "$RANK $BOUGH_DEVICES"', place=place)
    assert stage.exit_of("1") == ("done", 0)
    assert log(stage, rank=1) == "1 there:1\n"


def test_jobs_side_by_side_meet_at_different_ports(stage: Stage, bell: Bell) -> None:
    for job in ("1", "2", "3"):
        stage.start(job, 'echo "$MASTER_PORT ${JAX_COORDINATOR_ADDRESS#*:}" > "$BELL"; cat')
    ports = " ".join(bell.wait() for _ in range(3)).split()
    assert len(set(ports)) == 6


def test_a_log_of_several_parts_is_found_whole_and_in_order(stage: Stage) -> None:
    stage.start("1", "seq 1 2500", log_bytes_max=4096)
    assert stage.exit_of("1") == ("done", 0)
    parts = stage.body.logs("1", 1)
    assert [part.path.name for part in parts] == [
        "worker-0.log.2", "worker-0.log.1", "worker-0.log",
    ]  # fmt: skip
    text = "".join(part.path.read_text() for part in parts)
    lines = [int(line) for line in text.splitlines() if not line.startswith("bough:")]
    assert lines == list(range(lines[0], 2501))
    assert [part.size for part in parts] == [part.path.stat().st_size for part in parts]


def test_what_cannot_change_its_size_says_so(stage: Stage) -> None:
    stage.run("1", TELLS)
    stage.resize("1", stage.place(2))
    assert stage.inbox.take(Resized, "1", 1).ok is False


def test_an_order_is_taken_at_once(stage: Stage) -> None:
    began = time.perf_counter()
    for number in range(20):
        stage.start(str(number), "exit 0")
    assert (time.perf_counter() - began) / 20 < 0.010
    for number in range(20):
        assert stage.exit_of(str(number)) == ("done", 0)


# ---------------------------------------------------------------------------------- whose it is


def test_nobody_else_can_look_into_a_home(stage: Stage, home: Path) -> None:
    stage.start("1", "exit 0")
    stage.exit_of("1")
    for path in (home / "jobs", job_dir(home, "1"), attempt_dir(home, "1", 1)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((attempt_dir(home, "1", 1) / "launch.json").stat().st_mode) == 0o600


NOBODY = Identity(65534, 65534, ())


@pytest.fixture
def passable() -> Iterator[Path]:
    """A home that others can pass through to what is theirs, as on a shared server."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o711)
        yield Path(path)


def shared(home: Path, who: Identity | None = NOBODY) -> Stage:
    """A body whose jobs run as somebody else."""

    def identity(spec: JobSpec) -> Identity:
        if who is None:
            raise InputError(f"has no user {spec.user!r} here")
        return who

    nodes = [Node(name="here", kind="cpu", devices=8)]
    env = {"PATH": "/usr/bin:/bin"}
    return Stage(
        lambda: Local(home, nodes, time.time, identity=identity),
        lambda script: Recipe(argv=("/bin/sh", "-c", script), cwd="/", env=env),
    )


@root_only
def test_a_job_runs_as_its_user_and_reads_nothing_of_ours(passable: Path) -> None:
    stage, directory = shared(passable), attempt_dir(passable, "1", 1)
    names = ("launch.json", "shim.json", "worker-0.log", "news")
    lines = [
        "id -u",
        'touch "$BOUGH_JOB_DIR/a" "$BOUGH_ATTEMPT_DIR/b" && echo mine',
        'cat "$BOUGH_HOSTFILE"',
        *(f"cat {directory}/{name}" for name in names),
        *(f"ls {path}" for path in (directory, directory.parent, passable / "jobs")),
        f"mv {directory} {directory}.old",
        'ln -s /etc/passwd "$(dirname "$BOUGH_ATTEMPT_DIR")/worker-0.log.1"',
        "kill -9 $PPID",
    ]
    stage.start("1", "\n".join(lines))
    assert stage.exit_of("1")[0] == "failed"
    text = log(stage)
    stage.clear()
    assert text.splitlines()[:3] == ["65534", "mine", "localhost slots=1"]
    assert text.count("Permission denied") == len(names) + 5
    assert text.count("not permitted") == 1  # to kill its shim


@root_only
def test_a_user_who_does_not_exist_runs_nothing(passable: Path) -> None:
    stage = shared(passable, who=None)
    stage.start("1", "id -u", spec=JobSpec(name="x", user="ghost"))
    assert stage.exit_of("1") == ("failed", 126)
    assert ending(stage).note == "the job has no user 'ghost' here"
    stage.clear()


def test_a_started_job_is_told_with_the_time_of_the_bodys_clock(home: Path, stage: Stage) -> None:
    before = time.time()
    stage.start("1", "exit 0")
    assert before <= stage.inbox.take(Started, "1", 1).at <= time.time()

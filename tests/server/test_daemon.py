"""`bough up`, `down` and `status`: one daemon for each home, whatever its last one left behind."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import select
import signal
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.daemons import PATIENCE_SECONDS, Daemon
from tests.server.accounts import interpreter

from bough.errors import DaemonError
from bough.home import daemon_path, socket_path, store_path
from bough.server.database import migrations

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
NOBODY = pwd.getpwnam("nobody")


@contextlib.contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """A daemon in the foreground, which is no more when this is over."""
    with process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The one line in which a command says what is wrong."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    line = done.stderr.strip()
    assert line.startswith("bough: ")
    assert "\n" not in line, line
    assert "Traceback" not in line
    return line.removeprefix("bough: ")


# ------------------------------------------------------------------------------ up, status, down


def test_a_daemon_begins_says_how_it_is_and_ends(nobody_home: Daemon) -> None:
    home = nobody_home
    begun = home.bough("up", "--devices", "cpu:2")
    assert begun.stdout.startswith(f"bough serves you: process {home.pid}, at {home.home}/")
    status = json.loads(home.bough("status", "--json").stdout)
    assert (status["pid"], status["home"], status["devices"]) == (home.pid, str(home.home), 2)
    assert f"process {home.pid}" in home.bough("status").stdout
    again = home.bough("up")
    assert again.stdout.startswith(f"bough runs already: process {home.pid}")
    pidfd = os.pidfd_open(home.pid)
    try:
        assert home.bough("down").stdout.startswith("bough has ended; nothing ran.")
        assert select.select([pidfd], [], [], 0)[0], "down returns when it is gone"
    finally:
        os.close(pidfd)
    for command in ("status", "down", "ls"):
        assert "No bough runs here" in sentence(home.bough(command))
    assert not socket_path(home.home).exists()
    assert not daemon_path(home.home).exists()


def test_what_a_home_holds_is_for_its_owner_alone(daemon: Daemon) -> None:
    told = {daemon_path(daemon.home), daemon.home / "up.args"}  # where it listens, how it began
    for path in daemon.home.rglob("*"):
        if path not in told and not path.is_dir():
            assert path.stat().st_mode & 0o077 == 0, path
    assert daemon.home.stat().st_mode & 0o077 == 0


def test_jobs_go_on_without_their_daemon_and_the_next_one_finds_them(daemon: Daemon) -> None:
    begun = daemon.bough("run", "--detach", "--", "sleep", "1000")
    id = begun.stdout.strip()
    assert daemon.bough("wait", id, "--timeout", "0").returncode != 0
    with daemon.client() as client:
        happenings = client.events(0)
        next(each for each in happenings if each.type == "Started")
    said = daemon.bough("down").stdout
    assert said.startswith("bough has ended; 1 job goes on by itself."), said
    daemon.start()
    with daemon.client() as client:
        assert client.job(id).job.state == "running"
        assert len(client.job(id).attempts) == 1
        client.stop(id)
        assert client.wait(id, PATIENCE_SECONDS).state == "cancelled"


def test_parked_jobs_go_on_with_the_next_daemon(daemon: Daemon) -> None:
    id = daemon.bough("run", "--detach", "--", "sleep", "1000").stdout.strip()
    with daemon.client() as client:
        next(each for each in client.events(0) if each.type == "Started")
    assert daemon.bough("down", "--park").stdout.startswith("bough has ended; 1 job parked")
    daemon.start()
    with daemon.client() as client:
        starts = (each.data["epoch"] for each in client.events(0) if each.type == "Started")
        assert [next(starts), next(starts)] == [1, 2]
        assert (client.job(id).job.state, client.job(id).job.epoch) == ("running", 2)


def test_run_starts_a_daemon_where_none_runs(nobody_home: Daemon) -> None:
    done = nobody_home.bough("run", "--", "echo", "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert nobody_home.runs


def test_it_begins_again_as_it_was_begun_last(daemon: Daemon) -> None:
    daemon.bough("down")
    assert daemon.bough("run", "--", "true").returncode == 0
    with daemon.client() as client:
        assert client.status().devices == daemon.slots


def test_one_that_runs_is_not_made_another_by_the_way(daemon: Daemon) -> None:
    said = sentence(daemon.bough("up", "--devices", "cpu:7"))
    assert "A daemon runs already, with --devices cpu:4" in said
    assert "A daemon runs already, without --listen" in sentence(
        daemon.bough("up", "--listen", "127.0.0.1:0")
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--devices", "nonsense:3"), "nonsense"),
        (("--listen", "nowhere"), "'nowhere' is no HOST:PORT"),
        (("--listen", "127.0.0.1:99999"), "is no HOST:PORT"),
        (("--listen", "192.0.2.1:1"), "cannot be listened at"),
        (("--certificate", "/no/such/file"), "--certificate and --key go together"),
        (("--certificate", "/c", "--key", "/k"), "--certificate is for --listen"),
        (("--listen", "127.0.0.1:0", "--certificate", "/c", "--key", "/k"), "/c"),
        (("--store", "mysql://x"), "a store of this kind is not known"),
        (("--store", "/no/such/folder/x.db"), "there is no folder /no/such/folder"),
    ],
)
def test_a_wish_that_cannot_be_is_refused_in_a_sentence(
    nobody_home: Daemon, words: tuple[str, ...], problem: str
) -> None:
    assert problem in sentence(nobody_home.bough("up", *words))
    assert not nobody_home.runs


# --------------------------------------------------------------------------- what was left behind


def test_a_daemon_that_was_killed_is_followed_by_the_next(daemon: Daemon) -> None:
    daemon.kill()
    assert socket_path(daemon.home).exists(), "a socket that nobody listens at"
    assert "No bough runs here" in sentence(daemon.bough("status"))
    assert daemon.bough("run", "--", "echo", "again").stdout == "again\n"


def test_a_number_that_is_somebody_elses_by_now_is_left_alone(nobody_home: Daemon) -> None:
    with subprocess.Popen(["sleep", "1000"]) as bystander:
        notice = {"pid": bystander.pid, "version": "0", "socket": "/nowhere"}
        daemon_path(nobody_home.home).write_text(json.dumps(notice))
        lock = nobody_home.home / "bough.db.lock"
        lock.write_text(f"{bystander.pid} some-boot\n")
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as stale:
            stale.bind(str(socket_path(nobody_home.home)))
        assert "No bough runs here" in sentence(nobody_home.bough("down"))
        nobody_home.start()
        assert nobody_home.pid != bystander.pid
        assert nobody_home.bough("down").returncode == 0
        assert bystander.poll() is None
        bystander.kill()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', "\0\0", '{"pid": 1, "no": 2}'])
def test_a_notice_that_says_nothing_is_passed_over(nobody_home: Daemon, text: str) -> None:
    daemon_path(nobody_home.home).write_text(text)
    assert "No bough runs here" in sentence(nobody_home.bough("status"))
    nobody_home.start()
    assert nobody_home.runs


def test_something_else_in_place_of_the_socket_is_told(nobody_home: Daemon) -> None:
    (nobody_home.home / "bough.sock").mkdir()
    assert "bough.sock" in sentence(nobody_home.bough("up", "--devices", "cpu:1"))


# --------------------------------------------------------------------------------- two at once


def test_of_many_who_begin_one_at_once_all_find_the_same(nobody_home: Daemon) -> None:
    begun = [nobody_home.popen("up", "--devices", "cpu:1") for _ in range(6)]
    said = [each.communicate(timeout=2 * PATIENCE_SECONDS) for each in begun]
    assert [each.returncode for each in begun] == [0] * 6, said
    assert sum("bough serves you" in out for out, _ in said) == 1
    assert all(f"process {nobody_home.pid}," in out for out, _ in said)


def test_of_two_in_the_foreground_one_serves_and_the_other_says_so(nobody_home: Daemon) -> None:
    both = [nobody_home.popen("up", "--foreground", "--devices", "cpu:1") for _ in range(2)]
    with ended(both[0]), ended(both[1]):
        pidfds = [os.pidfd_open(each.pid) for each in both]
        gone, _, _ = select.select(pidfds, [], [], PATIENCE_SECONDS)
        assert len(gone) == 1, "neither gave way"
        loser = both[pidfds.index(gone[0])]
        winner = both[1 - pidfds.index(gone[0])]
        out, err = loser.communicate()
        assert (loser.returncode, out) == (2, "")
        assert f"A daemon serves {nobody_home.home} already" in err
        assert nobody_home.pid == winner.pid
        assert nobody_home.bough("run", "--", "echo", "one").stdout == "one\n"
        for pidfd in pidfds:
            os.close(pidfd)


def test_another_store_is_no_way_into_a_home_that_is_served(daemon: Daemon, tmp_path: Path) -> None:
    pid, store = daemon.pid, str(tmp_path / "other.db")
    said = sentence(daemon.bough("up", "--foreground", "--devices", "cpu:1", "--store", store))
    assert said == f"A daemon serves {daemon.home} already: process {pid}."
    assert not Path(store).exists()
    with daemon.client() as client:
        assert client.status().pid == pid
    daemon.bough("down")
    daemon.start()
    assert not (daemon.home / "store").exists(), "the next one has the store of before"


def test_one_store_is_not_served_from_two_homes(daemon: Daemon, tmp_path: Path) -> None:
    other = Daemon(tmp_path / "other")
    said = sentence(
        other.bough("up", "--devices", "cpu:1", "--store", str(store_path(daemon.home)))
    )
    assert f"the daemon with process id {daemon.pid} is using it" in said


def test_one_that_is_just_leaving_is_waited_for(daemon: Daemon) -> None:
    with daemon.client() as client, contextlib.closing(client.events(0)) as happenings:
        next(happenings)  # who listens has to be said goodbye to
        first = daemon.pid
        os.kill(first, signal.SIGTERM)
        done = daemon.bough("up")
        assert done.returncode == 0, done.stderr
    assert daemon.bough("status").returncode == 0


# ------------------------------------------------------------------------------- what is on disk


@root_only
def test_a_home_that_may_not_be_written_is_told() -> None:
    command, given = interpreter(NOBODY.pw_uid)
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        (home := Path(place, "home")).mkdir(mode=0o755)
        env = {"PATH": os.environ["PATH"], "HOME": place, "BOUGH_HOME": str(home), **given}
        for words in (("up",), ("up", "--foreground"), ("run", "--", "true"), ("ls",)):
            done = subprocess.run(
                [*command, "-m", "bough", *words], check=False,
                user=NOBODY.pw_uid, group=NOBODY.pw_gid, extra_groups=(), env=env, cwd="/",
                capture_output=True, text=True, timeout=20,
            )  # fmt: skip
            assert str(home) in (said := sentence(done)) or "No bough runs here" in said
        assert list(home.iterdir()) == []


def test_a_home_that_is_a_file_is_told(nobody_home: Daemon, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for command in ("up", "ls", "status"):
        done = nobody_home.bough(command, env={"BOUGH_HOME": str(tmp_path / "file")})
        assert "file" in sentence(done)


def test_a_store_of_a_newer_bough_is_left_as_it_is(daemon: Daemon) -> None:
    daemon.bough("run", "--", "true")
    daemon.bough("down")
    with contextlib.closing(sqlite3.connect(store_path(daemon.home))) as db:
        db.execute("PRAGMA user_version = 99")
    before = store_path(daemon.home).read_bytes()
    for words in (("up",), ("run", "--", "true")):
        said = sentence(daemon.bough(*words))
        known = len(migrations())
        assert "was written by a newer bough (version 99 of the store, " in said
        assert f"this one reads up to version {known}); use that one" in said
    assert store_path(daemon.home).read_bytes() == before
    with contextlib.closing(sqlite3.connect(store_path(daemon.home))) as db:
        db.execute(f"PRAGMA user_version = {len(migrations())}")
    daemon.start()
    assert "done" in daemon.bough("ls", "--all").stdout


def test_a_store_that_is_something_else_is_left_as_it_is(nobody_home: Daemon) -> None:
    with contextlib.closing(sqlite3.connect(store_path(nobody_home.home))) as db, db:
        db.execute("CREATE TABLE recipes (name TEXT)")
    said = sentence(nobody_home.bough("up", "--devices", "cpu:1"))
    assert said.endswith("bough.db: is a database of another program")


def test_a_log_torn_by_a_power_cut_costs_only_what_was_torn(daemon: Daemon) -> None:
    ids = [daemon.bough("run", "--detach", "--", "true").stdout.strip() for _ in range(3)]
    for id in ids:
        assert daemon.bough("wait", id).returncode == 0
    daemon.kill()
    log = daemon.home / "bough.db-wal"
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) - 6000] + os.urandom(6000))
    daemon.start()
    with daemon.client() as client:
        known = {job.id for job in client.jobs().jobs}
        assert known, "what was written before is there"
        assert known <= set(ids)
        new = client.wait(daemon.bough("run", "--detach", "--", "true").stdout.strip(), 20.0)
        assert new.state == "done"
        assert new.id not in known


def test_a_journal_with_a_damaged_tail_is_kept_as_far_as_it_is_whole(daemon: Daemon) -> None:
    for _ in range(2):
        assert daemon.bough("run", "--", "true").returncode == 0
    daemon.kill()
    with contextlib.closing(sqlite3.connect(store_path(daemon.home))) as db, db:
        db.execute("DELETE FROM snapshots")
        (last,) = db.execute("SELECT max(seq) FROM journal").fetchone()
        db.execute("UPDATE journal SET what = x'00ff' WHERE seq = ?", (last - 1,))
    daemon.start()
    (note,) = json.loads(daemon.bough("status", "--json").stdout)["notes"]
    assert "damaged from step" in note
    assert "were put aside" in note or "entries" in note
    assert note in " ".join(daemon.bough("status").stdout.split())
    assert daemon.bough("run", "--", "true").returncode == 0


def test_a_daemon_that_ends_leaves_its_client_a_sentence(daemon: Daemon) -> None:
    with daemon.client() as client:
        client.patience_seconds = 0.0
        daemon.kill()
        with pytest.raises(DaemonError, match=r"No bough runs here|went away"):
            client.status()

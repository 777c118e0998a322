"""Memory limits held by the kernel, on a made-up tree: few machines lend tests a real one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bough.backends import cgroups


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A part of the tree that was delegated, where a new group finds its files as the kernel's."""
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids\n")
    make = os.mkdir

    def mkdir(path: str) -> None:
        make(path)
        for name in ("memory.max", "memory.oom.group", "cgroup.procs", "cgroup.kill"):
            Path(path, name).touch()
        Path(path, "memory.events").write_text("low 0\noom 0\noom_kill 0\n")

    monkeypatch.setattr(os, "mkdir", mkdir)
    return tmp_path


def test_a_group_has_its_limit(tree: Path) -> None:
    path = cgroups.make("job-1", 1 << 30, str(tree))
    assert path == str(tree / "job-1")
    assert (tree / "job-1" / "memory.max").read_text() == "1073741824"
    assert (tree / "job-1" / "memory.oom.group").read_text() == "1"
    cgroups.enter(path)
    assert (tree / "job-1" / "cgroup.procs").read_text() == "0"
    cgroups.kill(path)
    assert (tree / "job-1" / "cgroup.kill").read_text() == "1"


def test_a_death_by_the_limit_is_known(tree: Path) -> None:
    path = cgroups.make("job-1", 1 << 30, str(tree))
    assert not cgroups.was_out_of_memory(path)
    (tree / "job-1" / "memory.events").write_text("low 0\noom 1\noom_kill 3\n")
    assert cgroups.was_out_of_memory(path)


def test_where_children_have_no_limits_there_is_no_group(tree: Path) -> None:
    (tree / "cgroup.subtree_control").write_text("cpu pids\n")
    assert cgroups.make("job-1", 1 << 30, str(tree)) == ""
    assert not (tree / "job-1").exists()


def test_where_nothing_is_delegated_there_is_no_group(tmp_path: Path) -> None:
    assert cgroups.make("job-1", 1 << 30, str(tmp_path / "nowhere")) == ""


def test_without_a_group_nothing_is_done() -> None:
    cgroups.enter("")
    cgroups.kill("")
    cgroups.remove("")
    assert not cgroups.was_out_of_memory("")


@pytest.fixture
def unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where systemd puts a service with Delegate=yes and DelegateSubgroup=daemon."""
    unit = tmp_path / "system.slice" / "bough.service"
    (unit / "daemon").mkdir(parents=True)
    (tmp_path / "mountinfo").write_text(
        f"30 23 0:26 / {tmp_path} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    (tmp_path / "mine").write_text("1:name=systemd:/\n0::/system.slice/bough.service/daemon\n")
    (unit / "cgroup.subtree_control").write_text("")
    monkeypatch.setattr(cgroups, "_MOUNTS", str(tmp_path / "mountinfo"))
    monkeypatch.setattr(cgroups, "_MINE", str(tmp_path / "mine"))
    return unit


def give(path: Path) -> None:
    """As systemd marks a part of the tree that is another's to arrange."""
    try:
        os.setxattr(path, "user.delegate", b"1")
    except OSError:
        try:
            os.setxattr(path, "trusted.delegate", b"1")
        except OSError as error:
            pytest.skip(f"files here can carry no marks: {error.strerror}")


def test_the_daemon_has_memory_counted_in_what_was_lent_to_it(unit: Path) -> None:
    give(unit)
    assert cgroups.parent() == ""  # systemd leaves that to us
    cgroups.prepare()
    assert (unit / "cgroup.subtree_control").read_text() == "+memory"
    (unit / "cgroup.subtree_control").write_text("cpu memory\n")  # as the kernel answers
    assert cgroups.prepare() == cgroups.parent() == str(unit)
    assert (unit / "cgroup.subtree_control").read_text() == "cpu memory\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="what is one's own is lent to oneself; not to root")
def test_what_was_not_lent_is_left_alone_even_by_root(unit: Path) -> None:
    assert cgroups.prepare() == ""
    assert (unit / "cgroup.subtree_control").read_text() == ""
    (unit / "cgroup.subtree_control").write_text("memory\n")
    assert cgroups.parent() == ""


def test_a_kernel_that_does_not_count_memory_is_no_trouble(unit: Path) -> None:
    give(unit)
    (unit / "cgroup.subtree_control").unlink()
    assert cgroups.prepare() == ""


def test_this_machine_is_understood() -> None:
    found = cgroups.prepare()
    assert found == cgroups.parent()
    assert found == "" or os.path.exists(os.path.join(found, "cgroup.procs"))


def test_the_kernel_ends_who_takes_more_than_its_limit() -> None:
    path = cgroups.make(f"bough-test-{os.getpid()}", 64 << 20)
    if not path:
        pytest.skip("no part of a tree of cgroups (v2) with memory is lent to us here")
    take = "import sys; from bough.backends.cgroups import *; enter(sys.argv[1]); b'x' * (1 << 30)"
    done = subprocess.run([sys.executable, "-c", take, path], check=False)
    try:
        assert done.returncode == -signal.SIGKILL
        assert cgroups.was_out_of_memory(path)
    finally:
        cgroups.remove(path)

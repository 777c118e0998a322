"""Memory limits held by the kernel, on a made-up tree: few machines lend tests a real one."""

from __future__ import annotations

import os
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


def test_this_machine_is_understood() -> None:
    found = cgroups.parent()
    assert found == "" or os.path.exists(os.path.join(found, "cgroup.procs"))

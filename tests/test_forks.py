"""Work in forks: the same results in the same order whatever becomes of the forks, nothing left."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.forks import Forks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="work is shared on Linux only")


def children() -> set[str]:
    """Processes of ours, those among them that ended and that nobody asked about."""
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return set(path.read_text(encoding="ascii").split())


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Of a whole suite, other tests may have children here."""
    before = children()
    yield
    assert children() <= before


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("processes", [1, 2, 3, 9])
@pytest.mark.parametrize("items", [0, 1, 2, 40, 5000])
def test_results_come_in_the_order_of_the_items(processes: int, items: int) -> None:
    before = open_files()
    found = Forks(processes)(lambda item: item * item, range(items))
    assert found == [item * item for item in range(items)]
    assert open_files() == before


def test_several_processes_do_it(tmp_path: Path) -> None:
    """Each waits until the other has begun: one alone would never end."""

    def work(item: int) -> int:
        with (tmp_path / "meet").open("rb" if item else "wb") as pipe:
            if item:
                assert pipe.read() == b"here"
            else:
                pipe.write(b"here")
        return os.getpid()

    os.mkfifo(tmp_path / "meet")
    assert len(set(Forks(2)(work, range(2)))) == 2


def test_what_a_fork_that_dies_has_not_done_is_done_here() -> None:
    here = os.getpid()

    def work(item: int) -> int:
        if os.getpid() != here:
            os.kill(os.getpid(), 9)
        return item + 1

    assert Forks(4)(work, range(30)) == list(range(1, 31))


def test_what_goes_wrong_is_told_by_the_parent() -> None:
    before = open_files()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            Forks(3)(lambda item: 1 // (item - 7), range(20))
    assert open_files() == before


def test_a_machine_that_allows_no_fork_does_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refused)
    assert Forks(4)(str, range(5)) == ["0", "1", "2", "3", "4"]
    assert open_files() > 0


def test_large_results_come_through_a_pipe() -> None:
    found = Forks(3)(lambda item: bytes([item]) * 1_000_000, range(6))
    assert [len(each) for each in found] == [1_000_000] * 6
    assert [each[0] for each in found] == list(range(6))

"""Logs that stay within bounds, keep lines whole, and say what they lost."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bough.backends.outlet import LINE_BYTES_MAX, Outlet

BOUND = 4096


def parts(path: Path) -> list[str]:
    """The parts of a log, oldest first."""
    found = sorted(path.parent.glob(f"{path.name}.*"), reverse=True)
    return [part.read_text() for part in (*found, path)]


def filled(path: Path, *pieces: str, keep: int = 2) -> Outlet:
    outlet = Outlet(str(path), BOUND, keep)
    for piece in pieces:
        outlet.write(piece.encode())
    outlet.close()
    return outlet


def lines(count: int, width: int = 100) -> str:
    return "".join(f"{number:<{width - 1}}\n" for number in range(count))


def test_what_fits_is_one_file(tmp_path: Path) -> None:
    filled(tmp_path / "log", "one\n", "two\n")
    assert parts(tmp_path / "log") == ["one\ntwo\n"]


def test_a_full_log_is_rotated_where_a_line_ends(tmp_path: Path) -> None:
    outlet = filled(tmp_path / "log", lines(70))
    found = parts(tmp_path / "log")
    assert [len(part) for part in found] == [4000, 3000]
    assert "".join(found) == lines(70)
    assert outlet.dropped == 0


def test_it_does_not_matter_in_what_pieces_the_output_comes(tmp_path: Path) -> None:
    text = lines(70)
    filled(tmp_path / "log", *(text[i : i + 37] for i in range(0, len(text), 37)))
    found = parts(tmp_path / "log")
    assert all(part.endswith("\n") for part in found)
    assert "".join(found) == text
    assert max(map(len, found)) <= BOUND + 100


def test_the_oldest_is_dropped_and_that_is_said(tmp_path: Path) -> None:
    outlet = filled(tmp_path / "log", lines(200))
    found = parts(tmp_path / "log")
    assert len(found) == 3
    assert all(len(part) <= BOUND for part in found)
    said = [line for line in "".join(found).splitlines() if line.startswith("bough:")]
    assert f"bough: {outlet.dropped} bytes of earlier output were dropped" in said[-1]
    numbers = [int(line) for line in "".join(found).splitlines() if not line.startswith("bough:")]
    assert numbers == list(range(200 - len(numbers), 200))


def test_a_long_line_stays_whole_if_it_is_not_too_long(tmp_path: Path) -> None:
    filled(tmp_path / "log", "short\n", "x" * 10_000 + "\n", "after\n")
    assert parts(tmp_path / "log") == ["short\n", "x" * 10_000 + "\n", "after\n"]


def test_an_endless_line_is_cut(tmp_path: Path) -> None:
    filled(tmp_path / "log", *["x" * 1000] * 500)
    found = parts(tmp_path / "log")
    assert max(map(len, found)) <= BOUND + LINE_BYTES_MAX + 1000


def test_a_line_of_ours_is_a_line(tmp_path: Path) -> None:
    outlet = Outlet(str(tmp_path / "log"), BOUND, 2)
    outlet.write(b"no end of line")
    outlet.say("this happened")
    outlet.close()
    assert parts(tmp_path / "log") == ["no end of line\nbough: this happened\n"]


def test_without_any_to_keep_only_the_newest_is_there(tmp_path: Path) -> None:
    filled(tmp_path / "log", lines(200), keep=0)
    assert len(parts(tmp_path / "log")) == 1
    assert parts(tmp_path / "log")[0].startswith("bough: ")


def test_bytes_that_are_no_text_are_kept_as_they_are(tmp_path: Path) -> None:
    outlet = Outlet(str(tmp_path / "log"), BOUND, 2)
    outlet.write(bytes(range(256)))
    outlet.close()
    assert (tmp_path / "log").read_bytes() == bytes(range(256))


@pytest.fixture
def little_room() -> Iterator[Callable[[], None]]:
    """Files can have 1000 bytes, as if the disk were full beyond; until this is called."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_cannot_be_written_is_counted_and_said_later(
    tmp_path: Path, little_room: Callable[[], None]
) -> None:
    outlet = Outlet(str(tmp_path / "log"), BOUND, 2)
    for _ in range(3):
        outlet.write(b"y" * 499 + b"\n")
    assert outlet.dropped == 500
    assert outlet.trouble
    little_room()
    outlet.write(b"again\n")
    outlet.close()
    (text,) = parts(tmp_path / "log")
    said, again = text.splitlines()[-2:]
    assert said.startswith("bough: 500 bytes of output could not be written: ")
    assert (again, outlet.trouble) == ("again", "")


def test_where_no_file_can_be_made_nothing_fails(tmp_path: Path) -> None:
    outlet = Outlet(str(tmp_path / "missing" / "log"), BOUND, 2)
    outlet.write(b"hello\n")
    outlet.close()
    assert outlet.dropped == 6

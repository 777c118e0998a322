"""`bough quote` of a daemon, a journal and a trace; what is to come in `ls`, `show` and `why`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Bough
from tests.cli.jobs import running, submit
from tests.daemons import Daemon

import bough as package
from bough.client import Client

pytestmark = pytest.mark.usefixtures("vacant")


def test_it_says_when_and_what_it_takes(bough: Bough) -> None:
    done = bough("quote", "-g", "2", "--estimate", "10m", "--", "train")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == "Accept"
    assert done.lines[1].startswith("It would begin at once and end after 10m")
    labels = [line[:10].strip() for line in done.lines[3:]]
    assert {"begins", "ends", "uses", "deadline", "delays"} <= set(labels)


def test_nothing_is_submitted(bough: Bough, machine: Daemon) -> None:
    with machine.client() as client:
        before = client.status().seq
        assert bough("quote", "--", "true").code == 0
        assert client.status().seq == before


def test_a_job_file_is_quoted_job_by_job(bough: Bough, here: Path) -> None:
    (here / "job.yaml").write_text(
        "- {name: small, command: 'true', devices: 1, estimate: 5m}\n"
        "- {name: large, command: 'true', devices: 64, estimate: 5m}\n"
    )
    done = bough("quote", "job.yaml")
    assert done.code == 1  # the second not as it is
    assert any(line.startswith("small  Accept") for line in done.lines)
    assert any(line.startswith("large  Accept, if it is changed") for line in done.lines)
    assert "Ask for 4 devices only" in done.out
    found = json.loads(bough("quote", "job.yaml", "--json").out)
    assert [one["verdict"] for one in found] == ["accept", "accept-if"]


def test_others_that_would_end_later_are_named(bough: Bough, machine: Daemon) -> None:
    id = running(machine, "-g", "2..4", "--estimate", "1h")
    done = bough("quote", "-g", "2", "--estimate", "1h", "--", "true")
    assert f"job {id} by" in done.out


def test_intervals_in_listings(bough: Bough, machine: Daemon) -> None:
    running(machine, "-g", "4", "--estimate", "1h")
    id = submit(machine, "-g", "4", "--estimate", "10m", "--", "true")
    why = bough("why", id)
    assert "It probably begins in " in why.out
    job = next(job for job in bough("ls", "--json").json if job["id"] == id)
    assert job["begins"]["p50"] < job["ends"]["p50"]
    assert "begins in " in bough("ls").out
    assert "likely" in bough("show", id).out


def test_from_python(bough: Bough, machine: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOUGH_HOME", str(machine.home))
    found = package.quote("train --fast", gpus=2, estimate="10m")
    assert found.verdict == "accept"
    id = submit(machine, "-g", "4", "--estimate", "1h", "--", "sleep", "600")
    assert package.job(id).quote().ends.p50 is not None


def test_of_a_journal_that_was_exported(bough: Bough, machine: Daemon, here: Path) -> None:
    """As it stood at its end: the same as the daemon says, but for the seconds between."""
    bough("config", "set", "policy", "fifo")
    running(machine, "-g", "4", "--estimate", "1h")
    assert bough("journal", "export", "-o", "state.jsonl").code == 0
    asked = ("--estimate", "10m", "-g", "4", "--json", "--", "true")
    (there, here_) = (
        bough("quote", *more, *asked).json for more in ((), ("--state", "state.jsonl"))
    )
    for name in ("begins", "ends"):
        one, other = (found["outlook"][name]["p50"] for found in (there, here_))
        assert one == pytest.approx(other, abs=60.0), name
    with machine.client() as client:
        assert isinstance(client, Client)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-g", "two", "--", "true"), "devices"),
        ((), "What is to run?"),
        (("--versions", "0", "--", "true"), "--versions"),
        (("--state", "nothing.db", "--", "true"), "there is no such file"),
        (("--from", "trace.csv", "--", "true"), "does not exist"),
    ],
)
def test_a_mistake_is_one_line(bough: Bough, words: tuple[str, ...], said: str) -> None:
    done = bough("quote", *words)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_of_a_trace_cut_at_a_time(bough: Bough, here: Path) -> None:
    drawn = ("--jobs", "80", "--devices", "32", "--load", "2.0", "--out", "t.jsonl")
    assert bough("trace", "generate", *drawn).code == 0
    words = ("--from", "t.jsonl", "-c", "4x8xa100", "--estimate", "1h", "-g", "8")
    found = bough("quote", *words, "--at", "6h", "-p", "fifo", "--json", "--", "true").json
    again = bough("quote", *words, "--at", "6h", "-p", "fifo", "--json", "--", "true").json
    assert found == again
    assert found["outlook"]["ends"]["p50"] >= found["at"] + 1800.0
    done = bough("quote", *words, "--", "true")
    assert (done.code, done.err) == (2, "bough: --from needs --at too\n")

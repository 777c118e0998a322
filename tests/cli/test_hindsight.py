"""`bough whatif` and `bough shadow`: of a trace, and of what a real daemon's journal tells."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Bough
from tests.cli.jobs import over, running, submit
from tests.daemons import Daemon


def test_whatif_of_a_trace(bough: Bough) -> None:
    drawn = ("--jobs", "60", "--devices", "32", "--queues", "a,b", "--users", "3")
    assert bough("trace", "generate", *drawn, "--out", "t.jsonl").code == 0
    words = ("whatif", "--from", "t.jsonl", "-c", "4x8xa100", "--under", "fifo")
    done = bough(*words, "--add", "2x8xh100", "--last", "1d")
    assert (done.code, done.err) == (0, "")
    assert "fifo, and --add 2x8xh100" in done.lines[0]
    assert any(line.startswith("Queue") for line in done.lines)
    assert any(line.startswith("User") for line in done.lines)
    found = bough(*words, "--policy", "srtf", "--json").json
    assert found["all"]["jobs"] == 60
    assert sum(one["jobs"] for one in found["queues"]) == 60
    assert bough(*words, "--policy", "srtf", "--json").json == found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("whatif",), "What is to be otherwise?"),
        (("whatif", "--cluster", "8xa100", "--policy", "fifo"), "go with --from"),
        (("whatif", "--policy", "fifoo"), "--policy"),
        (("shadow",), "--policy"),
        (("shadow", "--policy", "fifo", "--state", "none.jsonl"), "there is no such file"),
    ],
)
def test_a_mistake_is_one_line(bough: Bough, words: tuple[str, ...], said: str) -> None:
    done = bough(*words)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.usefixtures("vacant")
def test_the_shadow_of_what_came_here(bough: Bough, machine: Daemon) -> None:
    """Two that are done and one that lives: the shadow has them all, and nothing here changes."""
    first = over(machine, "-g", "2", "--estimate", "1s", "--", "sleep", "0.2")
    second = over(machine, "-g", "4", "--estimate", "1s", "--", "true")
    live = running(machine, "-g", "4", "--estimate", "1h")
    waits = submit(machine, "-g", "1", "--estimate", "1m", "--", "true")
    with machine.client() as client:
        before = client.status().seq
    found = bough("shadow", "--policy", "srtf", "--json").json
    really, replayed, shadow = found["runs"]
    assert (really["policy"], shadow["policy"]) == ("really", "srtf")
    assert replayed["policy"].endswith("replayed")
    assert really["jobs"] == shadow["jobs"] >= 4
    assert really["done"] >= 2
    assert {first, second}.isdisjoint(one["job"] for one in found["jobs"])
    here = {one["job"]: one["here"] for one in found["jobs"]}
    assert (here[live], here[waits]) == ("running", "waiting")
    with machine.client() as client:
        assert client.status().seq == before
    assert bough("shadow", "--policy", "srtf").lines[1].startswith("really")
    assert "fifo" in bough("whatif", "--policy", "fifo").out

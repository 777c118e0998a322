"""A live history can be taken out, brought back, and decided again, byte for byte."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.histories import FIFO, SHARING, Daemon

from bough.cli import main
from bough.core import model as m
from bough.core.reason import Reason
from bough.core.scheduler import Scheduler
from bough.errors import InputError
from bough.server.journal import (
    Header,
    Journal,
    Since,
    check,
    lines,
    of_file,
    of_store,
    replay,
)  # fmt: skip
from bough.server.reading import StoreReader
from bough.server.replay import make_scheduler, resume
from bough.server.rows import Batch, Conditions, Entry
from bough.server.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(tmp_path / "bough.db", synchronous="OFF")) as found:
        yield found


def exported(journal: Journal) -> bytes:
    return b"".join(lines(journal))


# ------------------------------------------------------------------------------------ replay


@pytest.mark.parametrize("conditions", [FIFO, SHARING], ids=["fifo", "sharing"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_live_history_is_decided_the_same_again(
    store: Store, conditions: Conditions, seed: int
) -> None:
    daemon = Daemon(store, conditions, seed)
    daemon.live(150)
    outcome = replay(of_store(store))
    assert outcome.difference is None
    assert (outcome.steps, outcome.after) == (store.step, 0)
    assert outcome.events + outcome.commands == store.seq
    assert outcome.commands > 50


def test_a_change_of_policy_at_a_restart_is_replayed_too(store: Store) -> None:
    daemon = Daemon(store, SHARING)
    daemon.live(80)
    changed = msgspec.structs.replace(SHARING, policy="las(limits=[100.0])")
    daemon.begin(changed)
    daemon.live(80)
    daemon.begin(changed)
    daemon.live(20)
    assert [conditions.policy for _, conditions in store.conditions()] == [
        "max_min",
        "las(limits=[100.0])",
    ]
    assert replay(of_store(store)).difference is None


def test_a_pruned_history_is_replayed_from_its_oldest_snapshot(store: Store) -> None:
    daemon = Daemon(store, SHARING)
    for _ in range(3):
        daemon.live(40)
        store.save_snapshot(store.seq, daemon.scheduler.to_bytes())
    daemon.live(30)
    assert store.prune(before=daemon.now / 2) > 20
    journal = of_store(store)
    assert journal.header.snapshot is not None
    outcome = replay(journal)
    assert outcome.difference is None
    assert outcome.after == journal.header.snapshot.seq > store.begins_after() > 0
    assert 0 < outcome.steps < 100


def test_the_first_command_that_is_another_one_is_named(store: Store) -> None:
    daemon = Daemon(store, SHARING)
    daemon.live(100)

    def worse(conditions: Conditions) -> Scheduler:
        return make_scheduler(msgspec.structs.replace(conditions, policy="fifo"))

    difference = replay(of_store(store), worse).difference
    assert difference is not None
    entry = next(iter(store.events(after=difference.seq - 1)))
    assert entry.step == difference.step
    assert difference.expected != difference.got
    if difference.expected:
        assert msgspec.json.decode(difference.expected, type=m.AnyCommand) == entry.what
    before = [step for step in store.steps() if step.step < difference.step]
    fresh = worse(SHARING)
    assert all(fresh.handle(step.events) == list(step.commands) for step in before)


@pytest.mark.parametrize("which", ["expected", "got"])
def test_a_command_too_few_or_too_many_is_a_difference(store: Store, which: str) -> None:
    daemon = Daemon(store, FIFO)
    daemon.live(5)
    extra: m.Command = m.Stop("1", 1)
    journal = of_store(store)
    entries = list(journal.entries)
    if which == "expected":
        entries.append(entries[-1]._replace(seq=len(entries) + 1, what=extra))
    else:
        last = max(i for i, entry in enumerate(entries) if isinstance(entry.what, m.Command))
        gone = entries.pop(last).what
        assert isinstance(gone, m.Command)
        extra = gone
    difference = replay(Journal(journal.header, entries)).difference
    assert difference is not None
    found = difference.expected if which == "expected" else difference.got
    assert msgspec.json.decode(found, type=m.AnyCommand) == extra


def test_a_daemon_goes_on_where_it_ended(store: Store) -> None:
    daemon = Daemon(store, SHARING)
    daemon.live(120)
    scheduler, outcome = resume(store, SHARING)
    assert scheduler.to_bytes() == daemon.scheduler.to_bytes()
    last = store.snapshot()
    assert last is not None
    assert (outcome.after, outcome.difference) == (last[0], None)
    assert 0 < outcome.steps < 121


def test_a_daemon_of_another_mind_is_told_of_it_and_starts(store: Store) -> None:
    """As after an upgrade that decides otherwise, with steps after the last snapshot."""
    Daemon(store, SHARING).live(100)
    with store._writing() as db:
        db.execute("DELETE FROM snapshots")

    def other(conditions: Conditions) -> Scheduler:
        return make_scheduler(msgspec.structs.replace(conditions, policy="fifo"))

    scheduler, outcome = resume(store, SHARING, other)
    assert outcome.difference is not None
    assert outcome.steps == store.step
    assert scheduler.state.now == list(store.steps())[-1].events[-1].at


def test_a_replay_needs_to_know_how_it_was_decided(store: Store) -> None:
    store.append(Batch(at=1.0, events=[m.Tick(at=1.0)]))
    with pytest.raises(InputError, match="not known by what policy"):
        replay(of_store(store))
    store.set_conditions(Conditions(policy="fifo"))
    header = msgspec.structs.replace(of_store(store).header, begins_after=7)
    with pytest.raises(InputError, match="its beginning is gone"):
        replay(Journal(header, store.events()))
    with pytest.raises(InputError, match="unknown policy 'fivo'"):
        make_scheduler(Conditions(policy="fivo"))


# ------------------------------------------------------------------------------ files


def test_what_is_exported_comes_back_in_equal_bytes(store: Store, tmp_path: Path) -> None:
    daemon = Daemon(store, SHARING)
    daemon.live(60)
    first = exported(of_store(store))
    file = tmp_path / "journal.jsonl"
    file.write_bytes(first)
    assert exported(of_file(file)) == first
    assert list(of_file(file).entries) == list(store.events())
    assert replay(of_file(file)) == replay(of_store(store))
    header, *rest = [json.loads(line) for line in first.splitlines()]
    assert header["conditions"][0]["conditions"]["policy"] == "max_min"
    assert [line["seq"] for line in rest] == list(range(1, store.seq + 1))


moments = st.floats(allow_nan=False)


numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_infinity=False, allow_nan=False)


@given(
    at=moments,
    left=st.none() | moments,
    text=st.text(),
    facts=st.dictionaries(st.text(), numbers | st.text()),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_numbers_and_texts_come_back(
    tmp_path: Path, at: float, left: float | None, text: str, facts: dict[str, int | float | str]
) -> None:
    what = m.Progressed(at=at, id=text, epoch=1, left=left)
    why = Reason(code=text, facts=facts, text=text)
    spec = m.JobSpec(name=text, max_run_seconds=float("inf"), deadline=left)
    entries = [
        Entry(1, at, 1, what),
        Entry(2, at, 1, m.Submitted(at=at, id="1", spec=spec)),
        Entry(3, at, 1, m.Ended(text, 1, "done", text), why),
    ]
    file = tmp_path / "any.jsonl"
    header = Header(journal="bough", format=1, version="0")
    file.write_bytes(exported(Journal(header, entries)))
    assert list(of_file(file).entries) == entries


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", ":1: "),
        (b"not json\n", ":1: "),
        (b'{"journal":"bough","format":2,"version":"9"}\n', "format 2 of a journal"),
        (b'{"journal":"bough","format":1,"version":"9"}\n{"seq":1}\n', ":2: "),
        (b'{"journal":"bough","format":1,"version":"9"}\n\xff\n', ":2: "),
        (
            b'{"journal":"bough","format":1,"version":"9"}\n{"seq":1,"step":1,"at":1}\n',
            ":2: neither an event nor a command",
        ),
    ],
)
def test_a_file_that_is_no_journal_is_told_with_its_line(
    tmp_path: Path, text: bytes, said: str
) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_bytes(text)
    with pytest.raises(InputError) as found:
        list(of_file(file).entries)
    assert said in str(found.value)


# ------------------------------------------------------------------------------ verify


def test_a_whole_journal_has_no_problems(store: Store) -> None:
    Daemon(store, SHARING).live(40)
    assert (check(of_store(store)), store.check()) == ([], [])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda entries: entries.pop(3), "Entry 5 follows entry 3."),
        (lambda entries: entries.pop(2), "Entry 4 follows entry 2."),
        (
            lambda entries: entries.append(Entry(7, 9.0, 9, m.Tick(at=9.0))),
            "Step 9 follows step 3.",
        ),
        (
            lambda entries: entries.append(Entry(7, 9.0, 4, m.Stop("1", 1))),
            "Step 4 has no event: nothing can have led to it.",
        ),
        (
            lambda entries: entries.append(Entry(7, 2.0, 3, m.Tick(at=2.0))),
            "Entry 7 is an event after commands of its step.",
        ),
    ],
)
def test_verify_tells_what_is_wrong(change: Callable[[list[Entry]], None], problem: str) -> None:
    entries = [
        Entry(seq, float(step), step, what)
        for step in (1, 2, 3)
        for seq, what in ((2 * step - 1, m.Tick(at=1.0)), (2 * step, m.Stop("1", 1)))
    ]
    header = Header(
        journal="bough", format=1, version="0", conditions=(Since(seq=0, conditions=FIFO),)
    )
    assert check(Journal(header, entries)) == []
    change(entries)
    assert problem in check(Journal(header, entries))


# ---------------------------------------------------------------------- the command line


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One's own daemon's store, still open."""
    monkeypatch.setenv("BOUGH_HOME", str(tmp_path))
    with closing(Store.open(tmp_path / "bough.db", synchronous="OFF")) as store:
        Daemon(store, SHARING).live(40)
        yield store.path


def test_of_a_daemon_that_runs(live: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "verify"]) == 0
    assert main(["journal", "replay"]) == 0
    shown = capfd.readouterr().out.splitlines()
    assert shown[0] == "The journal is whole."
    assert shown[1].startswith("The same, byte for byte: 41 steps, ")
    assert main(["journal", "export"]) == 0
    with closing(StoreReader(live)) as onlooker:
        assert capfd.readouterr().out.encode() == exported(of_store(onlooker))


def test_of_a_file_that_was_exported(
    live: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "journal.jsonl"
    assert main(["journal", "export", "-o", str(file)]) == 0
    assert main(["journal", "verify", str(file)]) == 0
    assert main(["journal", "replay", "--json", str(file)]) == 0
    shown = capfd.readouterr().out.splitlines()
    assert json.loads(shown[-1])["difference"] is None
    assert json.loads(shown[-1])["steps"] == 41
    assert sorted(path.name for path in tmp_path.iterdir() if "part" in path.name) == []


def test_exit_codes_tell_what_was_found(
    live: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with closing(StoreReader(live)) as onlooker:
        text = exported(of_store(onlooker))
    other, gap, junk = (tmp_path / name for name in ("other", "gap", "junk"))
    other.write_bytes(text.replace(b'"policy":"max_min"', b'"policy":"fifo"', 1))
    gap.write_bytes(b"".join(line for i, line in enumerate(text.splitlines(True)) if i != 3))
    junk.write_bytes(b"junk")
    assert main(["journal", "replay", str(other)]) == 1
    shown = capfd.readouterr().out.splitlines()
    assert shown[0].startswith("Another decision in step ")
    assert [line.split()[0] for line in shown[1:]] == ["then", "now"]
    assert main(["journal", "verify", str(gap)]) == 1
    assert "Entry 4 follows entry 2." in capfd.readouterr().out
    for verb in ("export", "replay", "verify"):
        assert main(["journal", verb, str(junk)]) == 2
        assert main(["journal", verb, str(tmp_path / "nothing")]) == 2


def test_damage_in_the_store_is_found(live: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(live)) as db, db:
        db.execute("UPDATE journal SET what = x'00' WHERE seq = 5")
    assert main(["journal", "verify", "--json"]) == 1
    told = json.loads(capfd.readouterr().out)
    assert (told["whole"], told["dropped"]) == (False, 0)
    assert any(problem.startswith("Entry 5 cannot be understood") for problem in told["problems"])
    assert main(["journal", "replay"]) == 2
    assert "entry 5 cannot be understood" in capfd.readouterr().err


def test_without_a_store_it_is_said_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BOUGH_HOME", str(tmp_path))
    assert main(["journal", "verify"]) == 2
    assert "there is no store yet; `bough up` makes one" in capsys.readouterr().err

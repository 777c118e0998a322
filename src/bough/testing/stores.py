"""What every store must hold to: subclass StoreContract, say how yours is opened, and run pytest.

class TestMine(StoreContract):
    def open(self, folder: Path) -> AnyStore:
        return Mine(folder / "mine.db")
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bough.core import model as m
from bough.core.reason import Reason
from bough.errors import InputError
from bough.records import JobRecord, Recipe, State
from bough.server.anystore import AnyStore
from bough.server.database import StoreError
from bough.server.rows import Accepted, Account, Batch, Conditions, Step, Token

INFINITY = float("inf")


# ----------------------------------------------------------------------------------- builders


def a_spec(user: str = "ada", **asked: Any) -> m.JobSpec:
    """A job for up to four devices."""
    return m.JobSpec(name="train", user=user, devices=m.Range(min=1, max=4), **asked)


def a_record(id: str, **shown: Any) -> JobRecord:
    """A job that waits, unless it is told otherwise."""
    usual: dict[str, Any] = {
        "name": "train", "user": "ada", "queue": "default", "state": "waiting", "devices": 0,
        "sizes": (1, 2, 4), "place": (), "epoch": 0, "priority": 0, "submitted": float(id),
        "reason": Reason(code="busy", facts={"free": 0}, text="It waits."),
    }  # fmt: skip
    return JobRecord(id=id, **(usual | shown))


def a_start(id: str) -> tuple[m.Command, Reason]:
    """It starts on two devices."""
    text = "It starts on 2 devices of n0."
    return m.Start(id, 1, (("n0", (0, 1)),)), Reason(code="placed", facts={"devices": 2}, text=text)


def submit(store: AnyStore, at: float, **shown: Any) -> str:
    """A step in which a job is submitted and told to start; its id."""
    id = str(store.next_number())
    spec = a_spec(shown.get("user", "ada"))
    recipe = Recipe(argv=("python", "train.py"), cwd="there", env={"SECRET": id})
    store.append(
        Batch(
            at=at,
            events=[m.Submitted(at=at, id=id, spec=spec)],
            commands=[a_start(id)],
            submissions=[Accepted(id, spec, recipe, key=f"key-{id}", uid=1000 + int(id))],
            records=[a_record(id, **shown)],
        )
    )
    return id


def ticks(store: AnyStore, *moments: float) -> int:
    """Steps in which only time passes; the number of the last entry."""
    for at in moments:
        store.append(Batch(at=at, events=[m.Tick(at=at)]))
    return store.seq


#: One of each kind, with numbers JSON does not know and words it must not mistake for them.
EVENTS: tuple[m.Event, ...] = (
    m.Submitted(at=0.1 + 0.2, id="1", spec=a_spec("null", max_run_seconds=9.5, kinds=("h100",))),
    m.Submitted(at=1.0, id="2", spec=a_spec(carbon=m.Carbon(budget_grams=float("inf")))),
    m.Cancelled(at=1.0, id="1"), m.Held(at=1.0, id="1", held=False),
    m.Started(at=1.0, id="1", epoch=2), m.Resized(at=1.0, id="1", epoch=1, step=3, ok=False),
    m.Exited(at=1.0, id="2", epoch=1, why="failed", code=137),
    m.Progressed(at=1.0, id="1", epoch=1, left=float("inf"), rate=1e-300, size=4),
    m.NodeUp(at=1.0, node=m.Node(name="null", kind="cpu", devices=8, cpus=float("inf"))),
    m.NodeDown(at=1.0, name="n0"), m.NodeDrained(at=1.0, name="n0"),
    m.DeviceHealth(at=1.0, name="n0", device=3, healthy=False),
    m.QueueSet(at=1.0, queue=m.Queue(name="gäste", budget_device_hours=float("inf"))),
    m.Tick(at=1.7e9),
)  # fmt: skip
COMMANDS: tuple[m.Command, ...] = (
    a_start("1")[0], m.Resize("1", 1, 2, (("n0", (0,)), ("n1", (4, 5)))), m.Stop("1", 1, False),
    m.Ended("1", 1, "failed", "exit code null"),
)  # fmt: skip


class StoreContract:
    """The rules of the daemon's store as tests."""

    def open(self, folder: Path) -> AnyStore:
        """The store of this folder: empty at first, later as it was left."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[AnyStore]:
        found = self.open(tmp_path)
        yield found
        found.close()

    # ----------------------------------------------------------------------- the journal

    def test_what_is_appended_comes_back_equal(self, store: AnyStore) -> None:
        why = Reason(code="placed", facts={"devices": 2, "share": 0.5, "by": "7"}, text="So.")
        last = store.append(
            Batch(at=5.0, events=EVENTS, commands=[(each, why) for each in COMMANDS])
        )
        found = list(store.events())
        assert [entry.what for entry in found] == [*EVENTS, *COMMANDS]
        assert [entry.seq for entry in found] == list(range(1, last + 1))
        assert {(entry.at, entry.step) for entry in found} == {(5.0, 1)}
        assert [entry.reason for entry in found] == [None] * len(EVENTS) + [why] * len(COMMANDS)

    def test_entries_are_numbered_through_all_steps(self, store: AnyStore) -> None:
        assert store.append(Batch(at=1.0, events=EVENTS[:3])) == 3
        assert store.append(Batch(at=2.0, step=2, events=EVENTS[:1], commands=[a_start("1")])) == 5
        assert [(e.seq, e.step) for e in store.events()] == [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)]
        assert (store.seq, store.step) == (5, 2)

    def test_entries_are_read_from_any_of_them_on(self, store: AnyStore) -> None:
        last = store.append(Batch(at=1.0, events=[m.Tick(at=1.0)] * 2500))
        assert [entry.seq for entry in store.events(after=10, limit=3)] == [11, 12, 13]
        assert [entry.seq for entry in store.events(limit=1500)] == list(range(1, 1501))
        assert [entry.seq for entry in store.events(after=last - 1)] == [last]
        assert list(store.events(after=last)) == []
        assert list(store.events(limit=0)) == []

    def test_steps_group_what_was_taken_and_given(self, store: AnyStore) -> None:
        submit(store, 1.0)
        ticks(store, 2.0)
        first, second = store.steps()
        assert (first.step, first.at, first.seq) == (1, 1.0, 2)
        assert [type(each) for each in first.events] == [m.Submitted]
        assert first.commands == (a_start("1")[0],)
        assert second == Step(2, 2.0, 3, (m.Tick(at=2.0),), ())
        assert list(store.steps(after=2)) == [second]

    def test_the_history_of_a_job_is_its_own(self, store: AnyStore) -> None:
        one, two = submit(store, 1.0), submit(store, 2.0)
        ticks(store, 3.0)
        assert [entry.seq for entry in store.history(one)] == [1, 2]
        assert [entry.seq for entry in store.history(two)] == [3, 4]
        assert [entry.seq for entry in store.history(two, after=3)] == [4]
        assert list(store.history("77")) == []

    def test_a_step_out_of_turn_is_refused(self, store: AnyStore) -> None:
        ticks(store, 1.0)
        with pytest.raises(AssertionError):
            store.append(Batch(at=2.0, step=3, events=[m.Tick(at=2.0)]))
        assert ticks(store, 2.0) == 2

    def test_jobs_can_be_shown_anew_without_a_step(self, store: AnyStore) -> None:
        id = submit(store, 1.0)
        assert store.append(Batch(at=2.0, records=[a_record(id, priority=9)])) == 2
        assert (store.seq, store.step) == (2, 1)
        shown = store.job(id)
        assert shown is not None
        assert shown.priority == 9

    def test_a_batch_that_cannot_be_written_leaves_nothing(self, store: AnyStore) -> None:
        id = submit(store, 1.0)
        spec = a_spec()
        twice = [Accepted("2", spec), Accepted(id, spec)]
        with pytest.raises(StoreError):
            store.append(
                Batch(
                    at=2.0, events=EVENTS, submissions=twice, records=[a_record(id, state="done")]
                )
            )
        assert [entry.seq for entry in store.events()] == [1, 2]
        assert (store.spec("2"), store.live()) == (None, [id])
        assert ticks(store, 3.0) == 3

    # ----------------------------------------------------------------- after a restart

    def test_everything_is_there_after_a_restart(self, tmp_path: Path) -> None:
        store = self.open(tmp_path)
        id = submit(store, 1.0)
        before = list(store.events())
        store.set_setting("answer", 42)
        store.close()
        store = self.open(tmp_path)
        assert store.notes == []
        assert list(store.events()) == before
        assert (store.seq, store.step, store.next_number()) == (2, 1, 2)
        assert (store.job(id), store.setting("answer", int)) == (a_record(id), 42)
        assert ticks(store, 2.0) == 3
        store.close()

    def test_the_tail_is_what_came_after_the_last_snapshot(self, store: AnyStore) -> None:
        assert store.snapshot() is None
        assert list(store.tail()) == []
        for n in range(1, 5):
            store.save_snapshot(ticks(store, float(n)), b"\x00state %d" % n)
        ticks(store, 5.0, 6.0)
        assert store.snapshot() == (4, b"\x00state 4")
        assert [step.seq for step in store.tail()] == [5, 6]

    def test_a_restart_after_a_snapshot_goes_on_counting(self, tmp_path: Path) -> None:
        store = self.open(tmp_path)
        store.save_snapshot(ticks(store, 1.0, 2.0), b"state")
        store.close()
        store = self.open(tmp_path)
        assert ((store.seq, store.step), list(store.tail())) == ((2, 2), [])
        assert ticks(store, 3.0) == 3
        store.close()

    def test_conditions_are_kept_when_they_change(self, store: AnyStore) -> None:
        first = Conditions(policy="fifo", queues=(m.Queue(name="a", budget_device_hours=INFINITY),))
        store.set_conditions(first)
        ticks(store, 1.0, 2.0)
        store.set_conditions(first)
        store.set_conditions(Conditions(policy="max_min"))
        assert store.conditions() == [(0, first), (2, Conditions(policy="max_min"))]

    def test_pruning_keeps_jobs_and_what_a_snapshot_needs(self, tmp_path: Path) -> None:
        store = self.open(tmp_path)
        id = submit(store, 1.0)
        assert store.prune(before=9.0) == 0, "without a snapshot all of it is needed"
        store.save_snapshot(ticks(store, 2.0, 3.0), b"old")
        store.save_snapshot(ticks(store, 4.0), b"new")
        ticks(store, 5.0)
        assert store.prune(before=3.0) == 3
        assert store.prune(before=9.0) == 1
        assert [entry.seq for entry in store.events()] == [5, 6]
        assert (store.begins_after(), store.check()) == (4, [])
        assert (store.job(id), list(store.history(id))) == (a_record(id), [])
        store.close()
        store = self.open(tmp_path)
        assert (store.notes, store.seq, store.step) == ([], 6, 5)
        store.close()

    # ------------------------------------------------------------------------------ jobs

    def test_a_submission_is_kept_with_its_recipe(self, store: AnyStore) -> None:
        id = submit(store, 1.0)
        recipe = store.recipe(id)
        assert recipe is not None
        assert (recipe.argv, recipe.env) == (("python", "train.py"), {"SECRET": id})
        assert (store.spec(id), store.uid(id)) == (a_spec(), 1001)
        assert [f(":no:") for f in (store.job, store.spec, store.recipe, store.uid)] == [None] * 4

    def test_recipes_are_nowhere_in_the_journal(self, store: AnyStore) -> None:
        submit(store, 1.0)
        assert [entry for entry in store.events() if "SECRET" in repr(entry)] == []

    def test_a_key_names_one_job_of_its_user(self, store: AnyStore) -> None:
        id = submit(store, 1.0)
        assert store.by_key("ada", f"key-{id}") == id
        assert store.by_key("bob", f"key-{id}") is None
        with pytest.raises(StoreError):
            store.append(
                Batch(at=2.0, submissions=[Accepted("9", a_spec(), Recipe(), f"key-{id}")])
            )

    def test_numbers_are_given_once(self, store: AnyStore) -> None:
        assert [store.next_number(), store.next_number()] == [1, 2]
        store.append(Batch(at=1.0, records=[a_record("7.0", submitted=1.0)]))
        assert store.next_number() == 8

    def test_jobs_are_listed_latest_first_page_by_page(self, store: AnyStore) -> None:
        ids = [submit(store, float(n)) for n in range(7)]
        pages = [store.jobs(limit=3)]
        while pages[-1]:
            pages.append(store.jobs(limit=3, before=pages[-1][-1].id))
        assert [len(page) for page in pages] == [3, 3, 1, 0]
        assert [record.id for page in pages for record in page] == ids[::-1]
        with pytest.raises(InputError, match="no job is called 99"):
            store.jobs(before="99")

    def test_jobs_are_listed_by_state_user_and_queue(self, store: AnyStore) -> None:
        states: tuple[State, ...] = ("waiting", "running", "done")
        for n in range(18):
            user, queue = ("ada", "bob")[n % 2], ("a", "b", "c")[n // 6]
            submit(store, float(n), state=states[n % 3], user=user, queue=queue)
        every = store.jobs()
        assert len(every) == 18
        wishes = product(
            (None, ("done",), ("done", "waiting"), ()), (None, "ada", "eve"), (None, "b")
        )
        for wanted, of_user, of_queue in wishes:
            expected = [
                record
                for record in every
                if (wanted is None or record.state in wanted)
                and of_user in (None, record.user)
                and of_queue in (None, record.queue)
            ]
            asked: Any = {"states": wanted, "user": of_user, "queue": of_queue}
            assert store.jobs(**asked) == expected
            assert store.jobs(**asked, limit=2) == expected[:2]
            later = [record for record in expected if int(record.id) < 10]
            assert store.jobs(**asked, before="10") == later

    def test_jobs_are_found_by_name(self, store: AnyStore) -> None:
        for n in range(6):
            state: State = "done" if n < 4 else "running"
            submit(store, float(n), name=f"train-{n % 2}", user=("ada", "bob")[n // 3], state=state)
        assert [job.id for job in store.jobs(name="train-0")] == ["5", "3", "1"]
        assert [job.id for job in store.jobs(name="train-0", user="ada")] == ["3", "1"]
        assert [job.id for job in store.jobs(name="train-0", before="5", limit=1)] == ["3"]
        assert [job.id for job in store.jobs(name="train-0", states=["done"])] == ["3", "1"]
        assert store.jobs(name="train-0", states=[]) == store.jobs(name="no such") == []

    def test_members_of_an_array_share_a_number(self, store: AnyStore) -> None:
        shown = [a_record(id, submitted=1.0) for id in ("1", "2.0", "2.1", "3")]
        store.append(Batch(at=1.0, records=shown))
        assert store.members(2) == ["2.0", "2.1"]
        assert store.members(9) == []

    def test_an_array_is_found_by_its_name(self, store: AnyStore) -> None:
        replace = msgspec.structs.replace
        arrays = (("2", "sweep", "ada"), ("3", "sweep", "bob"), ("4", "sweep-final", "ada"))
        shown = [
            replace(
                a_record(f"{number}.{n}", submitted=1.0),
                name=f"{name}-{n}", array_of=name, user=user,
            )
            for number, name, user in arrays
            for n in (0, 1)
        ]  # fmt: skip
        plain = replace(a_record("5", submitted=2.0), name="sweep-5", user="ada")
        store.append(Batch(at=1.0, records=[*shown, plain]))
        assert [store.array("sweep", user) for user in ("ada", "bob", None)] == [2, 3, 3]
        assert store.array("sweep-final", None) == 4
        assert store.array("swee", None) is store.array("sweep", "eve") is None

    def test_accounts_are_kept_beside_what_is_shown(self, store: AnyStore) -> None:
        one, two = submit(store, 1.0), submit(store, 2.0)
        account = Account(id=one, sizes=((1.0, 2), (9.0, 0)), waits={"busy": 3.5})
        ended = a_record(one, ended=9.0, state="done", device_seconds=16.0)
        store.append(Batch(at=9.0, records=[ended], accounts=[Account(id=one)]))
        store.append(Batch(at=9.0, accounts=[account]))
        assert (store.account(one), store.account(two)) == (account, None)
        assert list(store.between(0.0, 99.0)) == [(ended, account), (a_record(two), None)]
        assert [job.id for job, _ in store.between(9.0, 99.0)] == [two]
        assert [job.id for job, _ in store.between(0.0, 2.0)] == [one]
        assert store.counts() == {"done": 1, "waiting": 1}
        assert store.used() == {"ada": 16.0}

    def test_jobs_that_are_not_over_are_live(self, store: AnyStore) -> None:
        states: tuple[State, ...] = ("done", "running", "failed", "waiting", "stopping")
        for n, state in enumerate(states):
            submit(store, float(n), state=state)
        assert store.live() == ["2", "4", "5"]

    # -------------------------------------------------------------- settings and tokens

    def test_settings_are_what_was_set_last(self, store: AnyStore) -> None:
        assert store.setting("policy", str) is None
        store.set_setting("policy", "fifo")
        store.set_setting("policy", "max_min")
        assert store.setting("policy", str) == "max_min"

    def test_a_token_opens_until_it_expires_or_is_revoked(self, store: AnyStore) -> None:
        lasting = Token(name="laptop", user="ada", scopes=("read", "submit"), created=1.0)
        short = Token(name="ci", user="bob", scopes=("read",), created=1.0, expires=10.0)
        store.add_token(lasting, "s3cret")
        store.add_token(short, "other")
        assert store.tokens() == [short, lasting]
        assert store.find_token("s3cret", now=1e12) == lasting
        assert (store.find_token("other", now=9.9), store.find_token("other", now=10.0)) == (
            short,
            None,
        )
        assert store.find_token("guess", now=2.0) is None
        with pytest.raises(StoreError, match="already a token called ci"):
            store.add_token(short, "third")
        assert (store.revoke_token("laptop"), store.revoke_token("laptop")) == (True, False)
        assert store.find_token("s3cret", now=2.0) is None

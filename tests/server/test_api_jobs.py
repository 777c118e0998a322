"""Jobs through the API: submitted, listed, explained, changed, ended, repeated."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from tests.server.served import Served, order

from bough.client import Client
from bough.core.model import Range
from bough.errors import ConflictError, InputError, NotFoundError
from bough.records import Amendment, JobRecord, Submission

#: More than there are: it waits.
TOO_MANY = 5


def started(served: Served, *argv: str, **spec: object) -> JobRecord:
    job = served.submit(*(argv or ("sleep", "600")), **spec)
    served.until("Started", job.id)
    return job


# --------------------------------------------------------------------------- submit and look


def test_a_job_that_was_submitted_runs_and_is_over(served: Served, client: Client) -> None:
    job = client.submit(order("sh", "-c", "exit 3", name="mine", priority=7))
    assert (job.id, job.name, job.state, job.priority) == ("1", "mine", "starting", 7)
    assert job.command == ("sh", "-c", "exit 3")
    over = client.wait(job.id, 20.0)
    assert (over.state, over.code, over.devices) == ("failed", 3, 0)
    assert over.began is not None
    assert over.ended is not None
    assert job.submitted <= over.began <= over.ended


def test_a_new_job_is_answered_with_its_address(served: Served) -> None:
    answer = served.ask("POST", "/v1/jobs", order("true"))
    assert answer.status == 201
    assert answer.headers["location"] == "/v1/jobs/1"
    assert served.ask("GET", answer.headers["location"]).json["job"]["id"] == "1"


def test_the_detail_tells_how_it_is_run_and_what_it_went_through(served: Served) -> None:
    job = served.run("sh", "-c", "exit 0", env={"PATH": "/bin", "GREETING": "hello"})
    with served.client() as client:
        detail = client.job(job.id)
    assert detail.recipe is not None
    assert detail.recipe.argv == ("sh", "-c", "exit 0")
    assert detail.recipe.env == {"PATH": "/bin", "GREETING": "hello"}
    assert detail.spec.command == ()
    (attempt,) = detail.attempts
    assert (attempt.epoch, attempt.how, attempt.code) == (1, "done", 0)
    assert [worker.code for worker in attempt.workers] == [0]
    assert [devices for _, devices in detail.sizes] == [1, 0]


def test_a_name_means_the_latest_job_of_that_name(served: Served, client: Client) -> None:
    served.run("true", name="train")
    latest = served.run("true", name="train")
    served.run("true", name="other")
    assert client.job("train").job.id == latest.id
    with pytest.raises(NotFoundError, match="No job is called 'trian'"):
        client.job("trian")


def test_secrets_are_shown_to_nobody_the_owner_included(served: Served, client: Client) -> None:
    env = {
        "WANDB_API_KEY": "0123456789", "DB": "postgres://me:hunter2@db/x", "PLAIN": "seen",
        "MY_PASSWORD": "hunter2",
    }  # fmt: skip
    job = client.submit(order("true", env=env))
    raw = served.ask("GET", f"/v1/jobs/{job.id}")
    assert b"hunter2" not in raw.body
    assert b"0123456789" not in raw.body
    shown = client.job(job.id).recipe
    assert shown is not None
    assert shown.env["PLAIN"] == "seen"
    assert shown.env["DB"] == "postgres://***@db/x"
    assert shown.env["WANDB_API_KEY"] == shown.env["MY_PASSWORD"] == "***"


# --------------------------------------------------------------------------- listing


def test_lists_are_filtered_by_state_user_queue_and_name(served: Served, client: Client) -> None:
    done = served.run("true", name="a")
    failed = served.run("false", name="b")
    waiting = served.submit("true", name="a", devices=TOO_MANY)
    everybody = [job.id for job in client.jobs().jobs]
    assert everybody == [waiting.id, failed.id, done.id]

    def ids(**wish: object) -> list[str]:
        return [job.id for job in client.jobs(**wish).jobs]  # type: ignore[arg-type]

    assert ids(states=["failed"]) == [failed.id]
    assert ids(states=["failed", "waiting"]) == [waiting.id, failed.id]
    assert ids(name="a") == [waiting.id, done.id]
    assert ids(name="a", states=["done"]) == [done.id]
    assert ids(user=done.user) == everybody
    assert ids(user="somebody else") == []
    assert ids(queue="default") == everybody
    assert ids(queue="none such") == []


def test_pages_neither_lose_nor_double_a_job_while_new_ones_come(
    served: Served, client: Client
) -> None:
    first = client.submit_all([order(devices=TOO_MANY, name=str(i)) for i in range(7)])
    seen: list[str] = []
    before: str | None = None
    while before != "":
        page = client.jobs(before=before, limit=3)
        seen += [job.id for job in page.jobs]
        before = page.next
        client.submit(order(devices=TOO_MANY))
    assert seen == [job.id for job in reversed(first)]
    assert len(client.jobs().jobs) == 7 + 3


def test_a_page_that_ends_exactly_is_the_last(served: Served, client: Client) -> None:
    client.submit_all([order(devices=TOO_MANY) for _ in range(4)])
    page = client.jobs(limit=2)
    assert page.next == "3"
    assert client.jobs(limit=2, before=page.next).next == ""
    with pytest.raises(InputError, match="no job is called 99"):
        client.jobs(before="99")


# --------------------------------------------------------------------------- many at once


def test_a_batch_is_taken_on_whole(served: Served, client: Client) -> None:
    jobs = client.submit_all([order("true", name=name) for name in "abc"])
    assert [job.name for job in jobs] == ["a", "b", "c"]
    assert [client.wait(job.id, 20.0).state for job in jobs] == ["done"] * 3


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_batch_with_one_bad_job_is_refused_whole(standing: Served, at: int) -> None:
    batch = [order("true") for _ in range(3)]
    batch[at] = order("true", name=" ")
    with standing.client() as client:
        with pytest.raises(InputError, match="needs some letters") as refused:
            client.submit_all(batch)
        assert client.jobs().jobs == ()
    assert refused.value.field == (f"[{at}].spec.name" if at else "spec.name")


def test_jobs_of_one_batch_come_after_each_other_by_name(served: Served, client: Client) -> None:
    after = {"job": "first", "on": "success"}
    second = msgspec.convert(
        {"spec": {"name": "second", "after": [after]}, "recipe": {"argv": ["true"], "cwd": "/"}},
        Submission,
    )
    jobs = client.submit_all([second, order("true", name="first")])
    assert jobs[0].after == (jobs[1].id,)
    ends = [client.wait(job.id, 20.0) for job in jobs]
    assert [job.state for job in ends] == ["done", "done"]
    assert ends[1].ended is not None
    assert ends[0].began is not None
    assert ends[0].began >= ends[1].ended
    wish = msgspec.structs.replace(second.spec.after[0], job="nobody")
    spec = msgspec.structs.replace(second.spec, after=(wish,))
    with pytest.raises(InputError, match="no job is called 'nobody'"):
        client.submit(msgspec.structs.replace(second, spec=spec))


def test_an_array_is_one_number_with_members(served: Served, client: Client) -> None:
    script = "exit $BOUGH_ARRAY_INDEX"
    jobs = client.submit_all(
        [order("sh", "-c", script, name="sweep", array_of="sweep", array_index=i) for i in (0, 1)]
    )
    assert [job.id for job in jobs] == ["1.0", "1.1"]
    ends = [client.wait(job.id, 20.0) for job in jobs]
    assert [(job.state, job.code) for job in ends] == [("done", 0), ("failed", 1)]
    assert [job.id for job in client.members("1")] == ["1.0", "1.1"]
    assert [job.id for job in client.members("sweep")] == ["1.0", "1.1"]
    assert [job.id for job in client.members("1.1")] == ["1.1"]
    # Repeating it repeats what is not done.
    (again,) = client.retry("1")
    assert (again.retry_of, again.name) == ("1.1", "sweep")


def test_an_array_has_a_name_and_each_of_its_jobs_too(served: Served, client: Client) -> None:
    """As `bough run --array` calls them."""
    for _ in range(2):
        jobs = [order("true", name=f"sweep-{i}", array_of="sweep", array_index=i) for i in (0, 1)]
        client.submit_all(jobs)
    assert [job.id for job in client.members("sweep")] == ["2.0", "2.1"]
    assert [job.id for job in client.members("sweep-1")] == ["2.1"]
    assert client.job("sweep-1").job.id == "2.1"
    assert [job.id for job in client.park("sweep-0")] == ["2.0"]
    assert {job.id for job in client.stop("sweep")} == {"2.0", "2.1"}


def test_two_members_of_an_array_cannot_have_the_same_index(
    standing: Served,
) -> None:
    twins = [order("true", array_of="twins", array_index=4) for _ in range(2)]
    with standing.client() as client, pytest.raises(InputError, match="the same index"):
        client.submit_all(twins)


# --------------------------------------------------------------------------- changing


def test_a_job_is_amended(served: Served, client: Client) -> None:
    job = client.submit(order("true", devices=TOO_MANY))
    wish = Amendment(devices=Range(min=6, max=8), priority=3, deadline=4e9)
    (amended,) = client.amend(job.id, wish)
    assert (amended.sizes, amended.priority, amended.deadline) == ((6, 8), 3, 4e9)
    (smaller,) = client.amend(job.id, Amendment(devices=Range(min=1, max=1)))
    assert smaller.sizes == (1,)
    assert client.wait(job.id, 20.0).state == "done"
    with pytest.raises(ConflictError, match=r"Job 1 is over\."):
        client.amend(job.id, Amendment(priority=1))


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({}, None),
        ({"priority": 1 << 40}, "priority"),
        ({"deadline": 1.0}, "deadline"),
        ({"max_run_seconds": -1.0}, "max_run_seconds"),
        ({"queue": "a/b"}, "queue"),
        ({"devices": {"min": 0, "max": 1}}, "devices"),
        ({"devices": {"min": 2, "max": 1}}, "devices"),
        ({"colour": "red"}, None),
    ],
)
def test_what_makes_no_sense_is_not_amended(
    served: Served, wish: dict[str, object], field: str | None
) -> None:
    job = served.submit(devices=TOO_MANY)
    before = served.ask("GET", f"/v1/jobs/{job.id}").json
    refused = served.ask("PATCH", f"/v1/jobs/{job.id}", wish)
    assert (refused.status, refused.code) == (422, "input")
    assert refused.json.get("field") == field
    assert served.ask("GET", f"/v1/jobs/{job.id}").json == before


def test_a_job_is_stopped_once_and_for_all(served: Served, client: Client) -> None:
    job = started(served)
    client.stop(job.id)
    over = client.wait(job.id, 20.0)
    assert over.state == "cancelled"
    (again,) = client.stop(job.id)
    assert again == over
    waiting = served.submit(devices=TOO_MANY)
    (gone,) = client.stop(waiting.id)
    assert gone.state == "cancelled"


def test_a_parked_job_leaves_its_devices_until_it_is_unparked(
    served: Served, client: Client
) -> None:
    job = started(served, "sh", "-c", "echo again; exec sleep 600")
    (parked,) = client.park(job.id)
    assert parked.held
    served.until("Exited", job.id)
    waiting = client.job(job.id).job
    assert (waiting.state, waiting.devices, waiting.held) == ("waiting", 0, True)
    assert client.why(job.id).code == "held"
    heard = client.status().seq
    client.unpark(job.id)
    served.until("Started", job.id, after=heard)
    assert client.job(job.id).job.epoch == 2
    client.stop(job.id)
    client.wait(job.id, 20.0)
    with pytest.raises(ConflictError, match="is over"):
        client.park(job.id)


def test_a_job_that_is_over_is_run_once_more(served: Served, client: Client) -> None:
    job = served.run("false", env={"PATH": "/bin", "SECRET_KEY": "s"})
    (again,) = client.retry(job.id)
    assert (again.id, again.retry_of, again.command) == ("2", job.id, ("false",))
    assert client.wait(again.id, 20.0).state == "failed"
    running = started(served)
    with pytest.raises(ConflictError, match=f"Job {running.id} is not over yet"):
        client.retry(running.id)


# --------------------------------------------------------------------------- waiting and why


def test_waiting_ends_when_the_time_is_up_or_the_job_is_over(
    served: Served, client: Client
) -> None:
    job = started(served)
    assert client.wait(job.id, 0.0).state == "running"
    assert client.wait(job.id, 0.05).state == "running"
    with ThreadPoolExecutor(3) as threads:
        waits = [threads.submit(client.wait, job.id, 20.0) for _ in range(3)]
        client.stop(job.id)
        assert [each.result(20.0).state for each in waits] == ["cancelled"] * 3
    with pytest.raises(NotFoundError):
        client.wait("77", 1.0)
    for bad in ("-1", "61", "nan", "inf", "x"):
        assert served.ask("GET", f"/v1/jobs/1/wait?seconds={bad}").status == 422


def test_why_tells_the_reason_and_what_would_help(served: Served, client: Client) -> None:
    job = served.submit(devices=TOO_MANY)
    why = client.why(job.id)
    assert why.code == "too-big"
    assert "5" in why.text
    over = served.run("sh", "-c", "exit 9")
    assert client.why(over.id) == over.reason
    assert "9" in over.reason.text


def test_the_receipt_adds_up(served: Served, client: Client) -> None:
    job = served.run("sleep", "0.1", devices=(1, 2))
    receipt = client.receipt(job.id)
    assert (receipt.state, receipt.starts, receipt.failures) == ("done", 1, 0)
    assert receipt.began is not None
    assert receipt.ended is not None
    assert receipt.ran_seconds >= 0.1
    assert receipt.device_seconds == pytest.approx(2 * receipt.ran_seconds)
    assert receipt.waited_seconds == pytest.approx(sum(receipt.waits.values()))
    assert receipt.submitted + receipt.waited_seconds <= receipt.ended


def test_decisions_are_told_in_order_and_in_pages(served: Served, client: Client) -> None:
    jobs = [served.run("true") for _ in range(2)]
    every = client.decisions()
    assert [(each.job, each.command) for each in every] == [
        (job.id, command) for job in jobs for command in ("start", "ended")
    ]
    assert all(each.reason is not None for each in every)
    of_one = client.decisions(jobs[1].id)
    assert list(of_one) == [each for each in every if each.job == jobs[1].id]
    pages, after = [], 0
    while page := client.decisions(after=after, limit=3):
        pages += page
        after = page[-1].seq
    assert tuple(pages) == every
    assert served.ask("GET", f"/v1/decisions?job={jobs[0].id}").json[0]["job"] == jobs[0].id
    assert served.ask("GET", "/v1/decisions?job=77").status == 404


def test_everything_is_there_after_a_restart(tmp_path: Path, served: Served) -> None:
    done = served.run("sh", "-c", "echo out")
    running = started(served)
    parked = served.submit(devices=TOO_MANY)
    with served.client() as client:
        client.park(parked.id)
        before = (client.jobs().jobs, client.decisions(), client.receipt(done.id))
    served.stop()
    served.start()
    with served.client() as client:
        now = (client.jobs().jobs, client.decisions(), client.receipt(done.id))
        assert [(job.id, job.state) for job in now[0]] == [(job.id, job.state) for job in before[0]]
        assert now[1:] == before[1:]
        assert client.job(running.id).job.epoch == 1
        assert client.job(parked.id).job.held
        client.stop(running.id)
        assert client.wait(running.id, 20.0).state == "cancelled"

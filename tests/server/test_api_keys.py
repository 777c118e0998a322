"""A job is sent again with its key when nobody knows whether it was heard: it is the same job."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from tests.server.served import Served, order

from bough.client import Client
from bough.errors import InputError


def test_the_same_key_is_the_same_job(served: Served) -> None:
    body = msgspec.to_builtins(order("true"))
    first = served.ask("POST", "/v1/jobs", body, {"Idempotency-Key": "k"})
    again = served.ask("POST", "/v1/jobs", body, {"Idempotency-Key": "k"})
    in_body = served.ask("POST", "/v1/jobs", {**body, "key": "k"})
    other = served.ask("POST", "/v1/jobs", body, {"Idempotency-Key": "other"})
    assert (first.status, again.status, in_body.status, other.status) == (201, 200, 200, 201)
    assert first.json["id"] == again.json["id"] == in_body.json["id"] == "1"
    assert other.json["id"] == "2"
    differ = served.ask("POST", "/v1/jobs", {**body, "key": "k"}, {"Idempotency-Key": "l"})
    assert (differ.status, differ.code) == (400, "malformed")


def test_the_same_key_is_the_same_job_after_a_restart_too(served: Served) -> None:
    first = served.submit("true", key="once")
    with served.client() as client:
        client.wait(first.id, 20.0)
    served.stop()
    served.start()
    assert served.submit("true", key="once").id == first.id
    assert served.submit("true", key="twice").id != first.id


def test_the_same_key_at_the_same_moment_is_one_job(served: Served) -> None:
    together = threading.Barrier(8)

    def submit(number: int) -> str:
        together.wait(10.0)
        return served.submit("true", key=f"k{number % 2}").id

    with ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(submit, range(8)))
    assert len(set(ids)) == 2
    assert len({*ids[::2]}) == 1


def test_the_same_key_with_another_job_is_refused(served: Served, client: Client) -> None:
    first = client.submit(order("true", key="k"))
    with pytest.raises(InputError, match=f"another job, {first.id}, was submitted") as refused:
        client.submit(order("false", key="k"))
    assert refused.value.field == "key"
    with pytest.raises(InputError, match="another job"):
        client.submit(order("true", key="k", devices=2))
    with pytest.raises(InputError, match="two jobs have the key 'x'"):
        client.submit_all([order("true", key="x"), order("false", key="x")])
    assert len(client.jobs().jobs) == 1


def test_a_batch_that_is_sent_again_is_the_same_batch(served: Served, client: Client) -> None:
    batch = [order("true", key=key) for key in "ab"]
    first = client.submit_all(batch)
    more = client.submit_all([*batch, order("true", key="c")])
    assert [job.id for job in more] == [first[0].id, first[1].id, "3"]

"""What jobs share, through the API: queues, devices, users, settings, tokens, and the daemon."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.server.served import Served

from bough import __version__
from bough.client import Client
from bough.core.model import Queue
from bough.errors import ConflictError, InputError, NotFoundError
from bough.records import ConfigChange
from bough.server.auth import Peer
from bough.server.permissions import Caller
from bough.server.routes import api

ME = getpass.getuser()


def node_of(client: Client) -> str:
    return client.devices()[0].node


# --------------------------------------------------------------------------- queues and users


def test_queues_are_made_changed_and_used(served: Served, client: Client) -> None:
    made = client.set_queue(Queue(name="vision", weight=2.0, limit=2))
    assert (made.queue.limit, made.used, made.running) == (2, 0, 0)
    changed = client.set_queue(Queue(name="vision", limit=1))
    assert (changed.queue.limit, changed.queue.weight) == (1, 1.0)
    first, second = (served.submit("sleep", "600", queue="vision") for _ in range(2))
    served.until("Started", first.id)
    found = {each.queue.name: each for each in client.queues()}
    vision = found["vision"]
    assert (vision.used, vision.running, vision.waiting) == (1, 1, 1)
    assert client.why(second.id).code == "quota"


@pytest.mark.parametrize(
    ("queue", "status"),
    [
        ({"name": "other"}, 422),
        ({"name": "q", "parent": "nowhere"}, 422),
        ({"name": "q", "parent": "q"}, 422),
        ({"name": "q", "weight": -1}, 422),
        ({"name": "q", "guarantee": 1e300}, 422),
        ({"name": "q", "guarantee": 3, "limit": 2}, 422),
        ({"name": "q", "colour": "red"}, 422),
        ({}, 422),
        ([], 422),
    ],
)
def test_a_queue_that_cannot_be_is_refused(standing: Served, queue: Any, status: int) -> None:
    before = standing.ask("GET", "/v1/queues").json
    refused = standing.ask("PUT", "/v1/queues/q", queue)
    assert (refused.status, refused.code) == (status, "input")
    assert standing.ask("GET", "/v1/queues").json == before


def test_users_and_usage_add_up_what_was_used(served: Served, client: Client) -> None:
    done = served.run("sleep", "0.1", devices=2)
    failed = served.run("false")
    running = served.submit("sleep", "600")
    served.until("Started", running.id)
    (user,) = client.users()
    assert (user.user, user.running, user.waiting, user.devices) == (ME, 1, 0, 1)
    assert user.device_hours >= 0.2 / 3600
    (row,) = client.usage()
    assert (row.who, row.jobs, row.failed) == (ME, 3, 1)
    hours = client.receipt(done.id).device_seconds / 3600
    by_job = {each.who: each for each in client.usage(by="job")}
    assert by_job[done.id].device_hours == pytest.approx(hours)
    assert by_job[failed.id].failed == 1
    assert [each.who for each in client.usage(by="queue")] == ["default"]
    assert client.usage(until=done.submitted) == ()
    with pytest.raises(InputError, match="by"):
        client.usage(by="planet")


# --------------------------------------------------------------------------- devices


def test_a_drained_node_takes_nothing_new(served: Served, client: Client) -> None:
    node = node_of(client)
    running = served.submit("sleep", "600")
    served.until("Started", running.id)
    drained = client.drain(node)
    assert [each.state for each in drained] == ["held", "drained", "drained", "drained"]
    waiting = served.submit("true")
    assert waiting.state == "waiting"
    assert {each.state for each in client.drain(node, False)} >= {"held"}
    assert client.wait(waiting.id, 20.0).state == "done"
    with pytest.raises(NotFoundError, match="No node is called 'moon'"):
        client.drain("moon")


def test_a_device_in_quarantine_is_not_used(served: Served, client: Client) -> None:
    node = node_of(client)
    (bad,) = client.quarantine(node, 0)
    assert (bad.index, bad.state, bad.note) == (0, "unhealthy", "put aside by an admin")
    status = client.status()
    assert (status.devices, status.free, status.unhealthy) == (4, 3, 1)
    job = served.submit("sleep", "600", devices=3)
    served.until("Started", job.id)
    assert client.job(job.id).job.place == ((node, (1, 2, 3)),)
    assert [each.job for each in client.devices()] == ["", job.id, job.id, job.id]
    assert client.check_devices()[0].state == "unhealthy"
    (good,) = client.quarantine(node, 0, False)
    assert (good.state, good.note) == ("free", "")
    with pytest.raises(NotFoundError, match="has no device 4; it has 4"):
        client.quarantine(node, 4)


def test_a_quarantine_outlives_the_daemon(served: Served, client: Client) -> None:
    node = node_of(client)
    client.quarantine(node, 2)
    client.drain(node)
    served.stop()
    served.start()
    found = client.devices()
    assert [each.state for each in found] == ["drained", "drained", "unhealthy", "drained"]


# --------------------------------------------------------------------------- settings


def test_settings_are_changed_one_by_one_and_kept(served: Served, client: Client) -> None:
    client.configure(ConfigChange(policy="fifo", damp_seconds=5.0))
    changed = client.configure(ConfigChange(keep_days=7.0))
    assert (changed.policy, changed.damp_seconds, changed.keep_days) == ("fifo", 5.0, 7.0)
    assert client.status().policy == "fifo"
    served.run("true")
    served.stop()
    served.start()
    assert client.config() == changed


def test_two_who_change_settings_at_once_both_have_their_way(served: Served) -> None:
    admin = Caller(user=ME, uid=os.geteuid(), admin=True)
    released = threading.Event()
    served.service.parts.loop.look(lambda: released.wait(20.0))
    wishes = [ConfigChange(damp_seconds=3.0), ConfigChange(keep_days=3.0)]
    asked = [served.service.configure(admin, wish) for wish in wishes]  # both in one turn
    released.set()
    config = [each.result(20.0) for each in asked][-1]
    assert (config.damp_seconds, config.keep_days) == (3.0, 3.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", "no_such_policy"),
        ("policy", "las(colour=red)"),
        ("policy", ""),
        ("policy", "x" * 100_000),
        ("locality_seconds", -1),
        ("damp_seconds", 1e12),
        ("moving_share", 0),
        ("moving_share", 1.5),
        ("backoff_max_seconds", 0.5),
        ("keep_days", -1),
        ("keep_days", "many"),
        ("admins", [""]),
        ("admins", "root"),
    ],
)
def test_a_bad_setting_is_refused_by_name(standing: Served, field: str, value: object) -> None:
    before = standing.ask("GET", "/v1/config").json
    refused = standing.ask("PATCH", "/v1/config", {field: value})
    assert (refused.status, refused.code) == (422, "input")
    assert refused.json["field"] == field
    assert refused.json["detail"]
    assert standing.ask("GET", "/v1/config").json == before


# --------------------------------------------------------------------------- tokens


def test_a_token_lets_in_until_it_is_revoked(served: Served, client: Client) -> None:
    new = client.add_token("laptop")
    assert (new.token.name, new.token.user) == ("laptop", ME)
    assert new.token.scopes == ("read", "submit", "manage")
    assert served.ask("GET", "/v1/status", token=new.secret, network=True).status == 200
    client.revoke_token("laptop")
    refused = served.ask("GET", "/v1/status", token=new.secret, network=True)
    assert (refused.status, refused.code) == (401, "unauthorized")
    assert refused.headers["www-authenticate"] == "Bearer"
    with pytest.raises(NotFoundError, match="No token is called 'laptop'"):
        client.revoke_token("laptop")


def test_a_token_is_good_for_as_long_as_it_was_made_for(served: Served, client: Client) -> None:
    new = client.add_token("brief", seconds=0.001)
    assert new.token.expires == pytest.approx(new.token.created + 0.001)
    while served.service.now() < new.token.expires:  # the clock that decides
        pass
    assert served.ask("GET", "/v1/status", token=new.secret, network=True).status == 401
    long = client.add_token("long", seconds=3600.0)
    assert served.ask("GET", "/v1/status", token=long.secret, network=True).status == 200


def test_the_secret_of_a_token_is_told_once_and_kept_nowhere(
    served: Served, client: Client, tmp_path: Path
) -> None:
    new = client.add_token("laptop", scopes=["read"])
    assert new.secret.startswith("bough_")
    assert [msgspec.to_builtins(each) for each in client.tokens()] == [
        msgspec.to_builtins(new.token)
    ]
    served.ask("GET", "/v1/jobs", token=new.secret, network=True)
    served.stop()
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    for path in kept:
        assert new.secret.removeprefix("bough_").encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("wish", "status", "field"),
    [
        ({"name": "a/b"}, 422, "name"),
        ({"name": ""}, 422, "name"),
        ({"name": "t", "scopes": ["everything"]}, 422, "scopes[0]"),
        ({"name": "t", "seconds": 0}, 422, "seconds"),
        ({"name": "t", "seconds": 1e9}, 422, "seconds"),
        ({"name": "t", "user": "x" * 300}, 422, "user"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(
    standing: Served, wish: Any, status: int, field: str
) -> None:
    refused = standing.ask("POST", "/v1/tokens", wish)
    assert (refused.status, refused.json["field"]) == (status, field)
    assert standing.ask("GET", "/v1/tokens").json == []


def test_a_name_is_given_to_one_token_even_when_many_ask_at_once(served: Served) -> None:
    together = threading.Barrier(8)

    def add(_: int) -> int:
        together.wait(10.0)
        return served.ask("POST", "/v1/tokens", {"name": "one"}).status

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(add, range(8))) == [201] + [409] * 7


def test_a_token_cannot_make_one_that_may_do_more(served: Served, client: Client) -> None:
    new = client.add_token("manager", scopes=["read", "manage"])
    ask = {"token": new.secret, "network": True}
    fine = served.ask("POST", "/v1/tokens", {"name": "a", "scopes": ["read"]}, **ask)
    assert fine.status == 201
    for scopes in (["submit"], ["admin"], []):
        refused = served.ask("POST", "/v1/tokens", {"name": "b", "scopes": scopes}, **ask)
        assert (refused.status, refused.code) == (403, "forbidden")
    refused = served.ask("POST", "/v1/tokens", {"name": "c", "user": "somebody"}, **ask)
    assert refused.status == 403
    with pytest.raises(ConflictError, match="already a token called a"):
        client.add_token("a")


# --------------------------------------------------------------------------- the daemon itself


def test_status_tells_how_things_are(served: Served, client: Client) -> None:
    served.run("true")
    running = served.submit("sleep", "600", devices=2)
    served.until("Started", running.id)
    served.submit("true", devices=5)
    status = client.status()
    assert status.version == __version__
    assert (status.devices, status.free, status.taken, status.unhealthy) == (4, 2, 0, 0)
    assert (status.running, status.waiting, status.ended) == (1, 1, 1)
    assert status.seq == served.service.parts.store.seq
    assert status.notes == ()
    assert not status.system


def test_health_is_told_to_everybody(standing: Served) -> None:
    answer = standing.ask("GET", "/healthz", network=True)
    assert (answer.status, answer.json) == (200, {"ok": True})
    assert answer.headers["cache-control"] == "no-store"


def test_only_admins_end_the_daemon(served: Served, client: Client) -> None:
    new = client.add_token("t")
    refused = served.ask("POST", "/v1/shutdown", token=new.secret, network=True)
    assert refused.status == 403
    assert served.parked is None
    answer = served.ask("POST", "/v1/shutdown?park=true")
    assert (answer.status, answer.body) == (202, b"")
    assert served.ended.wait(10.0)
    assert served.parked is True


def test_metrics_are_what_prometheus_reads(served: Served, client: Client) -> None:
    served.run("true")
    client.drain(node_of(client))
    served.ask("GET", "/v1/jobs/99")
    with contextlib.closing(client.events(0)) as events:
        next(events)
        answer = served.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {each.name: each for each in text_string_to_metric_families(answer.body.decode())}

    def value(family: str, name: str = "", **labels: str) -> float:
        found = [
            sample.value
            for sample in families[family].samples
            if sample.name == (name or family) and labels.items() <= sample.labels.items()
        ]
        return sum(found)

    assert value("bough_build", version=__version__) == 1
    assert value("bough_jobs", state="ended") == 1
    assert value("bough_devices", state="drained") == 4
    assert value("bough_queue_running", queue="default") == 0
    assert value("bough_journal_seq") == client.status().seq
    requests = "bough_http_requests"
    assert value(requests, "bough_http_requests_total", operation="submit_job", status="201") == 1
    assert value(requests, "bough_http_requests_total", operation="get_job", status="404") == 1
    assert value("bough_http_streams") == 1
    assert value("bough_http_connections") >= 2
    assert value("bough_decision_seconds", "bough_decision_seconds_count") >= 3


# --------------------------------------------------------------------------- described


def test_every_route_is_in_the_document(standing: Served) -> None:
    document = standing.ask("GET", "/v1/openapi.json").json
    assert document["openapi"].startswith("3.1")
    described = {
        (method.upper(), path): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert described.keys() == {(each.method, each.path) for each in api.all}
    for each in api.all:
        found = described[each.method, each.path]
        assert found["operationId"] == each.name
        assert found["summary"]
        assert str(each.status) in found["responses"]
        places = {p["name"] for p in found["parameters"] if p["in"] == "path"}
        assert places == set(each.places)
        for status, answer in found["responses"].items():
            if int(status) >= 400:
                assert list(answer["content"]) == ["application/problem+json"]
    assert len({each["operationId"] for each in described.values()}) == len(described)


def test_every_reference_of_the_document_leads_somewhere(standing: Served) -> None:
    document = standing.ask("GET", "/v1/openapi.json").json
    schemas = document["components"]["schemas"]

    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        if isinstance(value, list):
            return set().union(*map(references, value))
        return set()

    found = references(document)
    assert {each.removeprefix("#/components/schemas/") for each in found} == set(schemas)
    assert "JobRecord" in schemas
    json.dumps(document, allow_nan=False)


def test_who_is_somebody_else_cannot_come_in_at_all(standing: Served) -> None:
    answer = standing.ask_as(Peer(uid=65534), "GET", "/v1/status")
    assert (answer.status, answer.code) == (403, "forbidden")
    assert "another user" in answer.json["detail"]

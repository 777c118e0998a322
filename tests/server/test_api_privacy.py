"""Who may see and do what: others see that a job is there and how large it is, and no more."""

from __future__ import annotations

import getpass
import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.server.served import Answer, Served, order, served_at

from bough.server.auth import Peer
from bough.server.operations import Operation
from bough.server.permissions import Caller, may_act
from bough.server.routes import api

ME = getpass.getuser()
ADMIN = Peer(uid=os.geteuid())
#: What no one but its owner may read.
SECRETS = (b"s3cret-argument", b"s3cret-variable", b"s3cret-folder")


def accounts() -> list[Peer]:
    """Two users of this machine who rule nothing."""
    found = [Peer(uid=each.pw_uid) for each in pwd.getpwall() if each.pw_uid not in (0, ADMIN.uid)]
    return found[:2]


PEOPLE = accounts()
pytestmark = pytest.mark.skipif(len(PEOPLE) < 2, reason="this machine has no two other accounts")
if len(PEOPLE) == 2:
    OWNER, OTHER = PEOPLE


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon for all users, with a job of one of them that waits."""
    with served_at(tmp_path_factory.mktemp("shared") / "home", system=True) as served:
        answer = served.ask_as(OWNER, "POST", "/v1/jobs", secret_job())
        assert (answer.status, answer.json["id"]) == (201, "1")
        yield served


def plain_job() -> dict[str, Any]:
    """One that waits, with nothing to hide."""
    job: dict[str, Any] = msgspec.to_builtins(order("true", devices=5))
    return job


def secret_job() -> dict[str, Any]:
    job: dict[str, Any] = msgspec.to_builtins(order("echo", "s3cret-argument", devices=5))
    job["recipe"] |= {"cwd": "/s3cret-folder", "env": {"HARMLESS": "s3cret-variable"}}
    return job


def name_of(peer: Peer) -> str:
    return pwd.getpwuid(peer.uid).pw_name


def test_the_owner_sees_and_does_all(shared: Served) -> None:
    detail = shared.ask_as(OWNER, "GET", "/v1/jobs/1").json
    assert detail["job"]["user"] == name_of(OWNER)
    assert detail["job"]["command"] == ["echo", "s3cret-argument"]
    assert detail["recipe"]["env"]["HARMLESS"] == "s3cret-variable"
    assert shared.ask_as(OWNER, "GET", "/v1/jobs/1/logs").status == 200
    for held in ("park", "unpark"):
        assert shared.ask_as(OWNER, "POST", f"/v1/jobs/1/{held}").status == 200


def test_whoever_submits_is_who_it_runs_as(shared: Served) -> None:
    account = pwd.getpwuid(OWNER.uid)
    env = shared.ask_as(OWNER, "GET", "/v1/jobs/1").json["recipe"]["env"]
    assert (env["HOME"], env["USER"]) == (account.pw_dir, account.pw_name)
    assert shared.service.parts.store.uid("1") == OWNER.uid
    job = plain_job()
    job["spec"]["user"] = ME  # nobody can say so of themselves
    id = shared.ask_as(OTHER, "POST", "/v1/jobs", job).json["id"]
    assert shared.ask_as(OTHER, "GET", f"/v1/jobs/{id}").json["job"]["user"] == name_of(OTHER)
    assert shared.service.parts.store.uid(id) == OTHER.uid


def test_others_see_that_it_is_there_and_its_shape(shared: Served) -> None:
    listed = shared.ask_as(OTHER, "GET", f"/v1/jobs?user={name_of(OWNER)}").json["jobs"]
    assert [(job["id"], job["sizes"]) for job in listed] == [("1", [5])]
    assert "command" not in listed[0]
    detail = shared.ask_as(OTHER, "GET", "/v1/jobs/1").json
    assert detail["job"]["state"] == "waiting"
    assert detail["spec"]["devices"] == {"min": 5, "max": 5}
    assert "recipe" not in detail
    assert shared.ask_as(OTHER, "GET", "/v1/jobs/1/why").json["code"] == "too-big"


READING = [each for each in api.all if each.method == "GET" and "follow" not in each.name]


@pytest.mark.parametrize("operation", READING, ids=lambda each: each.name)
def test_nothing_that_can_be_read_tells_others_what_is_private(
    shared: Served, operation: Operation
) -> None:
    path = operation.path.format(ref="1", attempt="1", rank="0")
    if operation.name == "wait_for_job":
        path += "?seconds=0"
    answer = shared.ask_as(OTHER, "GET", path)
    assert not any(secret in answer.body for secret in SECRETS)
    if "logs" in path:
        assert (answer.status, answer.code) == (403, "forbidden")
        assert answer.json["detail"].startswith(f"Job 1 is {name_of(OWNER)}'s")
    else:
        assert answer.status == 200


def test_what_happens_is_told_to_all_without_what_is_private(shared: Served) -> None:
    answer = shared.ask_as(OTHER, "GET", "/v1/events?after=0", enough=b"event: Submitted")
    assert b'"id":"1"' in answer.body
    assert not any(secret in answer.body for secret in SECRETS)


def test_others_do_nothing_with_it(shared: Served) -> None:
    before = shared.ask_as(OWNER, "GET", "/v1/jobs/1").json
    for what in ("stop", "park", "unpark", "retry"):
        answer = shared.ask_as(OTHER, "POST", f"/v1/jobs/1/{what}")
        assert (answer.status, answer.code) == (403, "forbidden")
    answer = shared.ask_as(OTHER, "PATCH", "/v1/jobs/1", {"priority": -5})
    assert answer.status == 403
    now = shared.ask_as(OWNER, "GET", "/v1/jobs/1").json
    for detail in (before, now):  # waiting goes on
        detail["job"].pop("reason")
    assert now == before


def test_a_name_means_ones_own_job_and_never_that_of_another(shared: Served) -> None:
    job = secret_job()
    job["spec"]["name"] = "only-mine"
    id = shared.ask_as(OWNER, "POST", "/v1/jobs", job).json["id"]
    assert shared.ask_as(OWNER, "POST", "/v1/jobs/only-mine/park").json[0]["id"] == id
    assert shared.ask_as(OTHER, "POST", "/v1/jobs/only-mine/park").status == 404
    assert shared.ask_as(ADMIN, "POST", "/v1/jobs/only-mine/unpark").status == 200


def test_keys_are_of_one_user(shared: Served) -> None:
    job = plain_job() | {"key": "same"}
    ids = [shared.ask_as(who, "POST", "/v1/jobs", job).json["id"] for who in (OWNER, OTHER, OWNER)]
    assert ids[0] == ids[2] != ids[1]


def test_admins_may_do_everything_for_all(shared: Served) -> None:
    body = shared.ask_as(ADMIN, "GET", "/v1/jobs/1").body
    assert all(secret in body for secret in SECRETS)
    assert shared.ask_as(ADMIN, "GET", "/v1/jobs/1/logs").status == 200
    assert shared.ask_as(ADMIN, "PATCH", "/v1/jobs/1", {"priority": 2}).status == 200
    job = plain_job()
    job["spec"]["user"] = name_of(OTHER)
    id = shared.ask_as(ADMIN, "POST", "/v1/jobs", job).json["id"]
    assert shared.ask_as(OTHER, "POST", f"/v1/jobs/{id}/stop").status == 200


def test_who_is_made_an_admin_is_one_until_it_is_taken_back(shared: Served) -> None:
    queue = {"name": "theirs"}
    assert shared.ask_as(OTHER, "PUT", "/v1/queues/theirs", queue).status == 403
    shared.ask_as(ADMIN, "PATCH", "/v1/config", {"admins": [name_of(OTHER)]})
    try:
        assert shared.ask_as(OTHER, "PUT", "/v1/queues/theirs", queue).status == 200
        assert shared.ask_as(OTHER, "GET", "/v1/jobs/1/logs").status == 200
    finally:
        shared.ask_as(ADMIN, "PATCH", "/v1/config", {"admins": []})
    assert shared.ask_as(OTHER, "PUT", "/v1/queues/theirs", queue).status == 403


def test_a_queue_that_is_not_there_is_made_by_admins_alone(shared: Served) -> None:
    job = secret_job()
    job["spec"]["queue"] = "brand-new"
    answer = shared.ask_as(OTHER, "POST", "/v1/jobs", job)
    assert (answer.status, answer.json["field"]) == (422, "spec.queue")
    mine = shared.ask_as(OTHER, "POST", "/v1/jobs", plain_job()).json["id"]
    moved = shared.ask_as(OTHER, "PATCH", f"/v1/jobs/{mine}", {"queue": "brand-new"})
    assert (moved.status, moved.json["field"]) == (422, "queue")


def test_an_account_that_is_not_there_runs_nothing(shared: Served) -> None:
    nobody = Peer(uid=2_000_000_001)
    assert shared.ask_as(nobody, "GET", "/v1/status").status == 200
    answer = shared.ask_as(nobody, "POST", "/v1/jobs", secret_job())
    assert (answer.status, answer.code) == (403, "forbidden")
    assert "no account" in answer.json["detail"]


def test_tokens_of_others_are_not_even_there(shared: Served) -> None:
    assert shared.ask_as(OWNER, "POST", "/v1/tokens", {"name": "mine"}).status == 201
    assert shared.ask_as(OTHER, "GET", "/v1/tokens").json == []
    assert shared.ask_as(OTHER, "DELETE", "/v1/tokens/mine").status == 404
    assert [each["name"] for each in shared.ask_as(ADMIN, "GET", "/v1/tokens").json] == ["mine"]
    for wish in ({"user": name_of(OWNER)}, {"scopes": ["admin"]}):
        answer = shared.ask_as(OTHER, "POST", "/v1/tokens", {"name": "x", **wish})
        assert (answer.status, answer.code) == (403, "forbidden")
    assert shared.ask_as(ADMIN, "DELETE", "/v1/tokens/mine").status == 204


def test_owners_and_admins_and_nobody_else_act() -> None:
    assert may_act(Caller(user="ann", uid=1000, admin=False), "ann")
    assert may_act(Caller(user="root", uid=0, admin=True), "ann")
    assert not may_act(Caller(user="bob", uid=1001, admin=False), "ann")


# --------------------------------------------------------------------------- what tokens allow

SCOPES = ("read", "submit", "manage", "admin")


@pytest.fixture(scope="module")
def secrets(shared: Served) -> dict[str, str]:
    """A token of an admin for each scope, and one of a user that claims them all."""
    found = {}
    for scope in SCOPES:
        wish = {"name": f"only-{scope}", "scopes": [scope]}
        found[scope] = shared.ask_as(ADMIN, "POST", "/v1/tokens", wish).json["secret"]
    wish = {"name": "a-user", "user": name_of(OTHER), "scopes": list(SCOPES)}
    found["user"] = shared.ask_as(ADMIN, "POST", "/v1/tokens", wish).json["secret"]
    return found


def try_out(served: Served, operation: Operation, headers: dict[str, str]) -> Answer:
    """With arguments that lead to nothing, should it be allowed."""
    places = {"attempt": "0", "rank": "0", "index": "0"}
    path = operation.path.format_map({name: places.get(name, "none") for name in operation.places})
    method = "HEAD" if operation.media == "text/event-stream" else operation.method
    body = b"{" if operation.body is not None else None
    peer = Peer(address="192.0.2.1")
    return served.ask_as(peer, method, path, body, {"host": "localhost", **headers})


@pytest.mark.parametrize("operation", api.all, ids=lambda each: each.name)
def test_a_token_allows_what_it_was_made_for_and_nothing_else(
    shared: Served, secrets: dict[str, str], operation: Operation
) -> None:
    answer = try_out(shared, operation, {})
    if operation.scope is None:
        assert answer.status == 200
        return
    assert (answer.status, answer.code) == (401, "unauthorized")
    for scope in SCOPES:
        answer = try_out(shared, operation, {"authorization": f"Bearer {secrets[scope]}"})
        if scope in ("admin", operation.scope):
            assert answer.status not in (401, 403), answer
        else:
            assert (answer.status, answer.code) == (403, "forbidden")
            assert f"scope {operation.scope!r}; yours allows {scope}" in answer.json["detail"]
    # A token that says so makes nobody an administrator.
    answer = try_out(shared, operation, {"authorization": f"Bearer {secrets['user']}"})
    assert (answer.status == 403) == (operation.scope == "admin")


@pytest.mark.parametrize(
    ("given", "hint"),
    [("Bearer nonsense", "is not known"), ("Basic YTpi", "Bearer TOKEN"), ("Bearer ", "Bearer"),
     ("", "Bearer"), ("Bearer \xff\xfe", "is not known")],
)  # fmt: skip
def test_a_token_that_is_none_lets_nobody_in(shared: Served, given: str, hint: str) -> None:
    for network in (True, False):  # not even where none is needed
        answer = shared.ask("GET", "/v1/status", headers={"Authorization": given}, network=network)
        assert (answer.status, answer.code) == (401, "unauthorized")
        assert hint in answer.json["detail"]


# --------------------------------------------------------------------------- for real


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_another_user_of_the_machine_is_known_by_the_kernel() -> None:
    other = pwd.getpwuid(OTHER.uid)
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o711)
        home = Path(place) / "home"
        with served_at(home, system=True) as served:
            home.chmod(0o711)

            def curl(*arguments: str) -> Any:
                base = ["curl", "-s", "--unix-socket", str(served.path)]
                json_ = ["-H", "Content-Type: application/json"]
                done = subprocess.run(
                    [*base, *json_, *arguments], user=other.pw_uid, group=other.pw_gid,
                    extra_groups=(), capture_output=True, check=True, timeout=20,
                )  # fmt: skip
                return json.loads(done.stdout)

            root = served.run("sh", "-c", "echo private")
            job = msgspec.json.encode(order("id", "-un")).decode()
            mine = curl("-d", job, "http://bough/v1/jobs")
            assert mine["user"] == other.pw_name
            with served.client() as client:
                over = client.wait(mine["id"], 20.0)
                printed = client.log_bytes(mine["id"], 1, 0)
            assert (over.state, printed.decode()) == ("done", f"{other.pw_name}\n")
            assert curl(f"http://bough/v1/jobs/{root.id}/logs")["status"] == 403
            assert curl("-X", "POST", f"http://bough/v1/jobs/{root.id}/retry")["status"] == 403
            assert "recipe" not in curl(f"http://bough/v1/jobs/{root.id}")

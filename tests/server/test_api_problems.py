"""What cannot be answered: each error is one status, one word and one sentence, as problem+json."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.served import Answer, Served, served_at

from bough.home import store_path
from bough.records import MIB
from bough.server.limits import Limits

JOB: dict[str, Any] = {"spec": {"name": "x"}, "recipe": {"argv": ["true"], "cwd": "/"}}


def submission(**changes: Any) -> dict[str, Any]:
    """A job with something else in its spec or its recipe."""
    spec = {name: value for name, value in changes.items() if name not in ("recipe", "key")}
    found = {"spec": JOB["spec"] | spec, "recipe": JOB["recipe"] | changes.get("recipe", {})}
    return found | ({"key": changes["key"]} if "key" in changes else {})


def refused(answer: Answer, status: int, code: str) -> Any:
    """One sentence and nothing of our insides."""
    assert (answer.status, answer.code) == (status, code), answer
    problem = answer.json
    detail = problem["detail"]
    assert detail
    assert "\n" not in detail
    assert "Traceback" not in detail
    assert len(detail) < 1000
    assert answer.headers["cache-control"] == "no-store"
    return problem


@pytest.fixture(autouse=True)
def unharmed(standing: Served) -> Iterator[None]:
    """Nothing of what is refused leaves a trace, and nobody else suffers."""
    before = standing.ask("GET", "/v1/jobs").json
    yield
    assert standing.ask("GET", "/v1/jobs").json == before
    assert standing.ask("GET", "/healthz").status == 200


# --------------------------------------------------------------------------- addresses and methods


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v1/", "/v2/jobs", "/v1/jobs/", "/v1/jobs/1/", "/v1/jobs/1/nothing", "/x" * 9000],
)
def test_there_is_nothing_at_other_addresses(standing: Served, path: str) -> None:
    refused(standing.ask("GET", path), 404, "not-found")


@pytest.mark.parametrize(
    "ref",
    [
        "..%2F..%2Fetc%2Fpasswd", "%2e%2e%2f", "..%5C..%5Cx", "%00", "1%00", "%0d%0aX:y", "99999",
        "9" * 30, "1.", "1.9", "0", "-1", "%F0%9F%8C%B3", "%ff%fe", "x" * 200, "'; DROP TABLE jobs",
    ],
)  # fmt: skip
def test_a_job_that_is_not_there_is_not_found_however_it_is_called(
    standing: Served, ref: str
) -> None:
    for path in ("", "/why", "/receipt", "/logs", "/logs/1/0", "/decisions", "/wait?seconds=0"):
        answer = standing.ask("GET", f"/v1/jobs/{ref.replace(' ', '%20')}{path}")
        assert answer.status in (404, 422), answer
        assert answer.code in ("not-found", "input")
    answer = standing.ask("POST", f"/v1/jobs/{ref.replace(' ', '%20')}/stop")
    assert answer.status in (404, 422), answer


def test_a_method_that_is_not_meant_is_told_those_that_are(standing: Served) -> None:
    answer = standing.ask("DELETE", "/v1/jobs")
    refused(answer, 405, "method")
    assert answer.headers["allow"] == "GET, HEAD, POST"
    refused(standing.ask("BREW", "/v1/jobs"), 400, "malformed")


def test_head_is_the_same_without_a_body(standing: Served) -> None:
    for path in ("/v1/status", "/v1/openapi.json", "/metrics", "/v1/jobs", "/v1/events"):
        got = standing.ask("HEAD", path)
        assert (got.status, got.body) == (200, b""), path
    head, get = (standing.ask(method, "/v1/openapi.json") for method in ("HEAD", "GET"))
    assert head.headers["content-length"] == get.headers["content-length"] == str(len(get.body))
    missing = standing.ask("HEAD", "/v1/jobs/99")
    assert (missing.status, missing.body) == (404, b"")


# --------------------------------------------------------------------------- queries


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("colour=red", 400, None),
        ("lmit=3", 400, None),
        ("limit=1&limit=2", 400, None),
        ("limit=0", 422, "limit"),
        ("limit=1001", 422, "limit"),
        ("limit=-1", 422, "limit"),
        ("limit=1e99", 422, "limit"),
        ("limit=many", 422, "limit"),
        ("limit=" + "9" * 5000, 422, "limit"),
        ("state=sleeping", 422, "state[0]"),
        ("user=", 422, "user"),
        ("user=a%2Fb", 422, "user"),
        ("name=%00", 422, "name"),
        ("before=77", 422, "before"),
        ("user=%ff", 400, None),
    ],
)
def test_a_query_that_cannot_be_understood_is_refused(
    standing: Served, query: str, status: int, field: str | None
) -> None:
    code = "malformed" if status == 400 else "input"
    problem = refused(standing.ask("GET", f"/v1/jobs?{query}"), status, code)
    assert problem.get("field") == field


def test_a_parameter_that_was_misspelt_is_guessed(standing: Served) -> None:
    problem = standing.ask("GET", "/v1/jobs?lmit=3").json
    assert problem["hint"] == "did you mean 'limit'?"
    assert standing.ask("GET", "/v1/queues?limit=3").json["hint"] == "there are none here"


# --------------------------------------------------------------------------- bodies


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"nothing", b"\xff\xfe\x00", b"\x00" * 100, b"\x1f\x8b\x08\x00junk",
        b'"\\ud800"', b'{"spec":{"name":"\\ud800"}}',
        b"NaN", b'\xef\xbb\xbf{"spec":{"name":"x"}}',
        b'{"spec":{"name":"x"},"recipe":{"argv":["true"],"cwd":"/"}}{}',
    ],
)  # fmt: skip
def test_what_is_no_json_is_malformed(standing: Served, body: bytes) -> None:
    refused(standing.ask("POST", "/v1/jobs", body), 400, "malformed")


@pytest.mark.parametrize(
    "body",
    [
        b'{"spec":' * 50_000,
        b'{"spec":{"name":"x","cpus":NaN}}',
        b'{"spec":{"name":"x","cpus":1e999}}',
    ],
)
def test_numbers_that_are_none_and_depths_without_end_are_refused(
    standing: Served, body: bytes
) -> None:
    answer = standing.ask("POST", "/v1/jobs", body)
    assert (answer.status, answer.code) in ((400, "malformed"), (422, "input"))


def test_nothing_in_a_body_may_be_said_twice(standing: Served) -> None:
    body = b'{"spec":{"name":"x","name":"y"},"recipe":{"argv":["true"],"cwd":"/"}}'
    problem = refused(standing.ask("POST", "/v1/jobs", body), 400, "malformed")
    assert "'name' stands twice" in problem["detail"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": 5}, "spec.name"),
        ({"name": "a/b"}, "spec.name"),
        ({"name": "a\x00b"}, "spec.name"),
        ({"name": "x" * 201}, "spec.name"),
        ({"colour": "red"}, "spec"),
        ({"devices": {"min": 3, "max": 2}}, "spec.devices"),
        ({"devices": {"min": 0, "max": 0}}, "spec"),
        ({"devices": {"min": 1, "max": 10**9}}, "spec.devices"),
        ({"devices": {"min": 1, "max": 2**21}}, "spec.devices"),
        ({"priority": 10**30}, "spec"),
        ({"priority": 10**7}, "spec"),
        ({"priority": 1.5}, "spec.priority"),
        ({"cpus": 1e300}, "spec"),
        ({"memory": -1}, "spec"),
        ({"memory": 2**60}, None),
        ({"deadline": 1.0}, "spec.deadline"),
        ({"deadline_after": 0}, "spec.deadline_after"),
        ({"estimate_seconds": 1e308}, None),
        ({"max_run_seconds": 0}, "spec"),
        ({"retries": -1}, "spec"),
        ({"array_of": "a"}, "spec.array_index"),
        ({"array_of": "a", "array_index": -1}, "spec.array_index"),
        ({"queue": "nowhere/at/all"}, "spec.queue"),
        ({"after": [{"job": "99999"}]}, "spec.after"),
        ({"service": "perhaps"}, "spec.service"),
        ({"key": "x" * 201}, "key"),
        ({"key": "a\nb"}, "key"),
        ({"recipe": {"argv": []}}, "recipe.argv"),
        ({"recipe": {"argv": [""]}}, "recipe.argv"),
        ({"recipe": {"argv": ["a\x00b"]}}, "recipe.argv"),
        ({"recipe": {"argv": "true"}}, "recipe.argv"),
        ({"recipe": {"argv": ["x" * (128 << 10)]}}, "recipe.argv"),
        ({"recipe": {"cwd": "relative"}}, "recipe.cwd"),
        ({"recipe": {"cwd": "/a\x00b"}}, "recipe.cwd"),
        ({"recipe": {"env": {"A=B": "x"}}}, "recipe.env"),
        ({"recipe": {"env": {"": "x"}}}, "recipe.env"),
        ({"recipe": {"env": {"A": "\x00"}}}, "recipe.env"),
        ({"recipe": {"env": {"A": 5}}}, "recipe.env[...]"),
        ({"recipe": {"grace_seconds": -1}}, "recipe.grace_seconds"),
        ({"recipe": {"log_bytes_max": 1}}, "recipe.log_bytes_max"),
        ({"recipe": {"roles": {"ps": ["x"]}}}, "recipe.roles"),
        ({"recipe": {"uid": 0}}, "recipe"),
        ({"roles": [{"name": "a"}, {"name": "a"}]}, "spec.roles"),
        ({"roles": [{"name": "a", "devices": 0}]}, "spec"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused_by_field(
    standing: Served, changes: dict[str, Any], field: str | None
) -> None:
    answer = standing.ask("POST", "/v1/jobs", submission(**changes))
    problem = refused(answer, 422, "input")
    if field is not None:
        assert problem.get("field") == field, problem


def test_the_environment_has_a_limit_and_up_to_it_all_is_well(
    tmp_path: Path, standing: Served
) -> None:
    def environment(total: int) -> dict[str, str]:
        words = {f"V{i:03d}": "x" * 100_000 for i in range(total // 100_006)}
        return words | {"REST": "x" * (total - 100_006 * len(words) - 6)}

    too_much = submission(recipe={"env": environment(2 * MIB + 1)})
    problem = refused(standing.ask("POST", "/v1/jobs", too_much), 422, "input")
    assert (problem["field"], problem["detail"]) == (
        "recipe.env",
        "has 2.0 MiB; at most 2 MiB are allowed",
    )
    one_word = submission(recipe={"env": {"V": "x" * (128 << 10)}})
    assert "V has more than 128 KiB" in standing.ask("POST", "/v1/jobs", one_word).json["detail"]
    with served_at(tmp_path / "other") as served, served.client() as client:
        for total, end in ((3 * MIB // 2, ("done", 0)), (2 * MIB, ("failed", 126))):
            most = submission(recipe={"env": environment(total)})
            id = served.ask("POST", "/v1/jobs", most).json["id"]
            over = client.wait(id, 20.0)
            assert (over.state, over.code) == end
        # With what bough adds to it, that is more than the kernel takes; it is said, not hidden.
        note = client.job(id).attempts[-1].note
        assert "Argument list too long" in note


def test_more_than_is_allowed_is_not_even_read(standing: Served) -> None:
    answer = standing.ask("POST", "/v1/jobs", b" " * (8 * MIB + 1))
    problem = refused(answer, 413, "too-large")
    assert problem["detail"] == "at most 8 MiB may come with this"
    for headers in ({}, {"Transfer-Encoding": "chunked"}):
        with contextlib.closing(standing.connection()) as connection:
            connection.putrequest("POST", "/v1/jobs/1/stop")
            if headers:
                connection.putheader("Transfer-Encoding", "chunked")
            else:
                connection.putheader("Content-Length", str(1 << 40))  # promised, never sent
            connection.endheaders()
            if headers:
                with contextlib.suppress(OSError):
                    connection.send(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            assert connection.getresponse().status == 413


def test_what_takes_nothing_is_given_nothing(standing: Served) -> None:
    refused(standing.ask("POST", "/v1/jobs/1/stop", {"now": True}), 400, "malformed")
    refused(standing.ask("POST", "/v1/jobs/1/stop", b"  {} "), 404, "not-found")


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "", "application/xml", "json"]
)
def test_only_json_is_taken(standing: Served, media: str) -> None:
    answer = standing.ask("POST", "/v1/jobs", JOB, {"Content-Type": media})
    problem = refused(answer, 415, "media-type")
    assert "application/json" in problem["hint"]


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_by_any_of_its_names_is_taken(standing: Served, media: str) -> None:
    answer = standing.ask("POST", "/v1/jobs", submission(name=""), {"Content-Type": media})
    assert answer.status == 422


# --------------------------------------------------------------------------- HTTP itself


def said(standing: Served, request: bytes, *, network: bool = False) -> tuple[int, Any]:
    """Whatever is said, until the other side hangs up."""
    with contextlib.closing(standing.raw(network=network)) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(1 << 16):
                answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50,
        b"nonsense\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /v1/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"POST /v1/jobs HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nA: b\x00c\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_and_hung_up_on(standing: Served, request_: bytes) -> None:
    status, problem = said(standing, request_)
    assert (status, problem["status"], problem["code"]) == (400, 400, "malformed")


@pytest.mark.parametrize("header", ["Authorization", "Idempotency-Key", "Content-Type", "Host"])
def test_a_header_that_decides_is_given_once(standing: Served, header: str) -> None:
    lines = f"{header}: a\r\n{header}: b\r\nConnection: close\r\n".encode()
    status, problem = said(standing, b"GET /v1/status HTTP/1.1\r\n" + lines + b"\r\n")
    assert (status, problem["code"]) == (400, "malformed")
    assert f"{header.lower()} is given twice" in problem["detail"]


def test_headers_have_a_limit(standing: Served) -> None:
    big = b"X: " + b"y" * (64 << 10)
    for end in (b"\r\n\r\n", b""):
        request = b"GET /v1/status HTTP/1.1\r\nHost: x\r\n" + big + end
        status, problem = said(standing, request)
        assert (status, problem["status"]) == (431, 431)
    many = b"".join(b"X-%d: y\r\n" % i for i in range(10_000))
    status, problem = said(standing, b"GET /v1/status HTTP/1.1\r\n" + many + b"\r\n")
    assert status == 431


def test_several_requests_on_one_connection_are_answered_in_order(standing: Served) -> None:
    with contextlib.closing(standing.connection()) as connection:
        for path, status in (("/healthz", 200), ("/v1/jobs/9", 404), ("/v1/status", 200)):
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status
    one = b"GET /v1/jobs/9 HTTP/1.1\r\nHost: x\r\n%b\r\n"
    with contextlib.closing(standing.raw()) as raw:
        raw.sendall(one % b"" + one % b"" + one % b"Connection: close\r\n")
        answer = b""
        while piece := raw.recv(1 << 16):
            answer += piece
    assert answer.count(b"HTTP/1.1 404") == 3


# --------------------------------------------------------------------------- too slow, too many


def test_a_request_that_comes_too_slowly_is_given_up(tmp_path: Path) -> None:
    limits = Limits(header_seconds=0.05, body_seconds=0.05, body_bytes_per_second=1 << 30)
    with served_at(tmp_path / "home", limits=limits) as served:
        for begun in (b"", b"GET /v1/sta", b"POST /v1/jobs HTTP/1.1\r\nContent-Le"):
            with contextlib.closing(served.raw()) as raw:
                raw.sendall(begun)
                assert b" 408 " in raw.recv(1 << 16)
                assert raw.recv(1) == b""
        with contextlib.closing(served.connection()) as connection:
            connection.putrequest("POST", "/v1/jobs")
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", "100")
            connection.endheaders(b"{")
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("connection")) == (408, "close")
            assert json.loads(answer.read())["code"] == "slow"


def test_who_asks_too_much_is_told_when_to_come_again(tmp_path: Path) -> None:
    limits = Limits(requests_per_second=4.0, requests_burst=3.0)
    with served_at(tmp_path / "home", limits=limits) as served:
        answers = [served.ask("GET", "/v1/status") for _ in range(4)]
        assert [each.status for each in answers] == [200, 200, 200, 429]
        problem = refused(answers[-1], 429, "too-many")
        assert 0 < problem["retry_after_seconds"] <= 0.25
        assert answers[-1].headers["retry-after"] == "1"
        # Somebody else is not kept from being heard.
        assert served.ask("GET", "/healthz", network=True).status == 200


def test_more_connections_than_there_is_room_for_are_refused(tmp_path: Path) -> None:
    with served_at(tmp_path / "home", limits=Limits(connections_each=2)) as served:
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                open_one = stack.enter_context(contextlib.closing(served.connection()))
                open_one.request("GET", "/healthz")
                open_one.getresponse().read()
            refused(served.ask("GET", "/healthz"), 503, "unavailable")
            assert served.ask("GET", "/healthz", network=True).status == 200
        with served.client() as client:  # they have left: there is room again
            assert client.status().devices == 4


def test_an_error_of_our_own_says_nothing_of_our_insides(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    job = served.run("true")
    with contextlib.closing(sqlite3.connect(store_path(served.wish.home))) as db, db:
        db.execute("UPDATE jobs SET record = ? WHERE id = ?", (b"junk", job.id))
    problem = refused(served.ask("GET", "/v1/jobs"), 500, "internal")
    assert problem["detail"] == "What happened is in the daemon's log."
    assert "an answer could not be given" in caplog.text


def test_when_the_daemon_ends_nobody_is_left_waiting(served: Served) -> None:
    job = served.submit("sleep", "600")
    with contextlib.closing(served.connection()) as connection:
        connection.request("GET", f"/v1/jobs/{job.id}/wait?seconds=60")
        with served.client() as client:
            client.status()
        served.stop()
        answer = connection.getresponse()
        problem = json.loads(answer.read())
    assert (answer.status, problem["code"]) == (503, "unavailable")

"""What cannot be answered: each error is one status, one word and one sentence, as problem+json."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.served import Served, refused, served_at

from bough.home import store_path
from bough.records import MIB

JOB: dict[str, Any] = {"spec": {"name": "x"}, "recipe": {"argv": ["true"], "cwd": "/"}}


def submission(**changes: Any) -> dict[str, Any]:
    """A job with something else in its spec or its recipe."""
    spec = {name: value for name, value in changes.items() if name not in ("recipe", "key")}
    found = {"spec": JOB["spec"] | spec, "recipe": JOB["recipe"] | changes.get("recipe", {})}
    return found | ({"key": changes["key"]} if "key" in changes else {})


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


def test_an_error_of_our_own_says_nothing_of_our_insides(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    job = served.run("true")
    with contextlib.closing(sqlite3.connect(store_path(served.wish.home))) as db, db:
        db.execute("UPDATE jobs SET record = ? WHERE id = ?", (b"junk", job.id))
    problem = refused(served.ask("GET", "/v1/jobs"), 500, "internal")
    assert problem["detail"] == "What happened is in the daemon's log."
    assert "an answer could not be given" in caplog.text

"""The API as a server of HTTP: what is no HTTP, too large, too slow or too much of it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.server.served import Served, refused, served_at

from bough.server.limits import Limits


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

"""The journal as it is followed: every entry once and in order, through whatever breaks."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.server.served import PATIENCE_SECONDS, Served, order, served_at

from bough.client import Client
from bough.core.model import Event
from bough.following import Happening
from bough.server import news
from bough.server.limits import Limits


class Told(NamedTuple):
    """One event as it came."""

    id: int
    name: str
    data: dict[str, Any]


@contextlib.contextmanager
def listening(
    served: Served, query: str = "", headers: dict[str, str] | None = None
) -> Iterator[http.client.HTTPResponse]:
    with contextlib.closing(served.connection()) as connection:
        connection.request("GET", f"/v1/events{query}", headers=headers or {})
        response = connection.getresponse()
        assert response.status == 200
        assert response.getheader("content-type") == "text/event-stream"
        assert response.readline() == b"retry: 1000\n"
        assert response.readline() == b"\n"
        yield response


def told(response: http.client.HTTPResponse) -> Told:
    """The next event."""
    fields: dict[str, str] = {}
    while line := response.readline().decode().rstrip("\n"):
        name, _, value = line.partition(": ")
        fields[name] = value
    return Told(int(fields["id"]), fields["event"], json.loads(fields["data"]))


def told_until(response: http.client.HTTPResponse, last: int) -> list[Told]:
    found = [told(response)]
    while found[-1].id < last:
        found.append(told(response))
    return found


def last_of(served: Served) -> int:
    with served.client() as client:
        return client.status().seq


def test_every_entry_of_the_journal_is_told_in_order(served: Served) -> None:
    served.run("true")
    last = last_of(served)
    with listening(served, "?after=0") as response:
        found = told_until(response, last)
    entries = list(served.service.parts.store.events())
    assert [each.id for each in found] == [entry.seq for entry in entries]
    assert [each.name for each in found] == [type(entry.what).__name__ for entry in entries]
    for each, entry in zip(found, entries, strict=True):
        assert (each.data["seq"], each.data["step"]) == (entry.seq, entry.step)
        if isinstance(entry.what, Event):
            assert each.data["at"] == entry.what.at
        else:
            assert each.data["at"] == entry.at
            assert each.data["reason"]["text"]
    names = [each.name for each in found if each.data.get("id") == "1"]
    assert names == ["Submitted", "Start", "Started", "Exited", "Ended"]


def test_without_a_beginning_it_is_what_is_yet_to_come(served: Served) -> None:
    served.run("true")
    with listening(served) as response:
        job = served.submit("true", devices=5)
        first = told(response)
    assert (first.name, first.data["id"]) == ("Submitted", job.id)


def test_who_comes_back_misses_nothing_and_hears_nothing_twice(served: Served) -> None:
    heard: list[int] = []
    headers: dict[str, str] = {"Last-Event-ID": "0"}
    for _ in range(6):
        served.run("true")
        with listening(served, "?after=999", headers) as response:
            heard += [told(response).id for _ in range(3)]
        headers = {"Last-Event-ID": str(heard[-1])}
    last = last_of(served)
    with listening(served, "", headers) as response:
        heard += [each.id for each in told_until(response, last)]
    assert heard == list(range(1, last + 1))


def test_the_client_goes_on_where_the_daemon_went_away(served: Served) -> None:
    served.run("true")
    found: list[Happening] = []
    begun, last = threading.Event(), threading.Event()

    def follow() -> None:
        with served.client() as client, contextlib.closing(client.events(0)) as events:
            for each in events:
                found.append(each)
                begun.set()
                if each.data.get("id") == "2" and each.type == "Ended":
                    break
        last.set()

    thread = threading.Thread(target=follow)
    thread.start()
    assert begun.wait(PATIENCE_SECONDS)
    served.stop()
    served.start()
    assert served.run("true").id == "2"
    assert last.wait(PATIENCE_SECONDS)
    thread.join()
    assert [each.seq for each in found] == list(range(1, found[-1].seq + 1))


def test_who_is_far_behind_is_told_from_the_store(
    served: Served, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        client.submit_all([order(devices=5) for _ in range(1000)])
    last = last_of(served)
    assert last > news.KEPT + 2 * news.PORTION
    assert served.service.parts.loop.news.near(0) is None
    with listening(served, "?after=0") as response:
        found = told_until(response, last)
    assert [each.id for each in found] == list(range(1, last + 1))
    # After a restart nothing is in memory.
    served.stop()
    served.start()
    with listening(served, f"?after={last - 10}") as response:
        assert [each.id for each in told_until(response, last)] == list(range(last - 9, last + 1))


def test_many_listen_at_once_while_much_happens(served: Served) -> None:
    heard: list[list[int]] = [[] for _ in range(5)]
    begun = threading.Barrier(6)

    def follow(ids: list[int]) -> None:
        with listening(served, "?after=0") as response:
            begun.wait(PATIENCE_SECONDS)
            ids += [each.id for each in told_until(response, last)]

    last = last_of(served) + 600
    threads = [threading.Thread(target=follow, args=(ids,)) for ids in heard]
    for thread in threads:
        thread.start()
    begun.wait(PATIENCE_SECONDS)
    with served.client() as client:
        for _ in range(30):
            client.submit_all([order(devices=5) for _ in range(20)])
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert all(ids[:last] == list(range(1, last + 1)) for ids in heard)


@pytest.mark.parametrize("id", ["x", "-1", "1.5", "9" * 17, "0" * 20 + "9" * 5000, "1e3", "\xb2"])
def test_a_last_event_that_is_no_number_is_refused(standing: Served, id: str) -> None:
    answer = standing.ask("GET", "/v1/events", headers={"Last-Event-ID": id})
    assert (answer.status, answer.json["field"]) == (422, "Last-Event-ID")


def test_an_entry_that_is_not_there_is_as_good_as_the_last(served: Served) -> None:
    """The end of a journal may be lost with a disk; who heard of it is not deaf for ever."""
    with listening(served, headers={"Last-Event-ID": "1000000"}) as response:
        job = served.submit("true", devices=5)
        assert told(response).data["id"] == job.id


def test_a_listener_that_is_gone_is_forgotten(served: Served) -> None:
    followers = served.service.parts.loop.news._followers
    with listening(served) as response:
        served.submit("true", devices=5)
        told(response)
        assert len(followers) == 1
    until = time.monotonic() + PATIENCE_SECONDS
    while followers and time.monotonic() < until:
        served.ask("GET", "/healthz")
    assert not followers


def test_one_who_takes_nothing_holds_nothing_up_and_is_given_up(tmp_path: Path) -> None:
    limits = Limits(stuck_seconds=1.0)
    with served_at(tmp_path / "home", limits=limits) as served, served.client() as client:
        for _ in range(20):
            client.submit_all([order(devices=5, name="x" * 190) for _ in range(500)])
        with contextlib.closing(served.raw()) as raw:
            raw.sendall(b"GET /v1/events?after=0 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert raw.recv(1000)
            (connection,) = [
                each
                for each in list(served.serving.state.connections)
                if each.cycle is not None and not each.cycle.response_complete
            ]
            # All that is kept for it is what one portion may need, whatever there is to tell.
            most = 0
            until = time.monotonic() + PATIENCE_SECONDS
            while connection in served.serving.state.connections:
                assert time.monotonic() < until
                most = max(most, connection.transport.get_write_buffer_size())
                assert client.status().devices == 4
            assert 0 < most < 1 << 20
            with contextlib.suppress(ConnectionResetError):
                while raw.recv(1 << 20):
                    pass


def test_it_ends_when_the_daemon_does(served: Served) -> None:
    with listening(served, "?after=0") as response:
        served.stop()
        assert response.read().count(b"\nevent: ") >= 1

"""Quotes through the API: nothing is submitted, nobody waits, and each mistake is told."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.server.served import Served, order

from bough.client import Client
from bough.core.model import After
from bough.core.prospects import Interval
from bough.errors import BoughError, ConflictError, InputError, NotFoundError, TooManyError
from bough.records import ConfigChange, JobRecord
from bough.server import foresight


def numbers(interval: Interval) -> tuple[float, float, float]:
    found = (interval.p10, interval.p50, interval.p90)
    assert None not in found
    return found  # type: ignore[return-value]


def running(served: Served, **spec: object) -> JobRecord:
    job = served.submit("sleep", "600", **spec)
    served.until("Started", job.id)
    return job


def test_on_a_free_machine_it_begins_at_once(served: Served, client: Client) -> None:
    given = order("true", devices=2, estimate_seconds=600.0)
    quote = client.quote(given)
    assert quote.verdict == "accept"
    assert quote.outlook.begins.p90 == quote.at
    soon, middle, late = (end - quote.at for end in numbers(quote.outlook.ends))
    assert soon < middle < late
    assert middle == pytest.approx(600.0, rel=0.02)
    assert quote.versions == 20
    assert client.jobs().jobs == ()  # nothing was submitted


def test_behind_others_it_waits_for_their_end(served: Served, client: Client) -> None:
    client.configure(ConfigChange(policy="fifo"))
    first = running(served, devices=4, estimate_seconds=600.0)
    quote = client.quote(order("true", devices=4, estimate_seconds=60.0))
    began = client.job(first.id).job.began
    assert began is not None
    assert numbers(quote.outlook.begins)[1] - began == pytest.approx(600.0, rel=0.05)
    assert quote.reason.facts["begins_in_seconds"] > 400.0
    assert "It would begin in" in quote.reason.text


def test_what_can_never_run_is_rejected_with_what_would_do(client: Client) -> None:
    quote = client.quote(order("true", devices=64, estimate_seconds=60.0))
    assert quote.verdict == "accept-if"
    assert quote.reason.code == "never"
    assert "the cluster has 4 in working order" in quote.reason.text
    best = next(one for one in quote.alternatives if one.accepted)
    assert best.spec.sizes()[-1] <= 4 or best.spec.sizes()[0] <= 4
    assert best.outlook.begins.p50 == quote.at


def test_live_jobs_have_intervals(served: Served, client: Client) -> None:
    client.configure(ConfigChange(policy="fifo"))
    first = running(served, devices=4, estimate_seconds=600.0)
    second = served.submit("true", devices=1, estimate_seconds=60.0)
    look = client.forecast(second.id)
    assert numbers(look.begins)[0] > time.time() + 300.0
    jobs = {job.id: job for job in client.jobs().jobs}
    assert jobs[first.id].begins is None
    assert jobs[first.id].ends is not None
    assert jobs[second.id].begins == look.begins
    assert client.job(second.id).job.ends == look.ends


def test_a_job_that_is_over_has_no_forecast(served: Served, client: Client) -> None:
    job = served.run("true")
    with pytest.raises(ConflictError, match=f"Job {job.id} is over"):
        client.forecast(job.id)
    with pytest.raises(NotFoundError):
        client.forecast("999")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"queue": "a/b"}, "spec.queue"),
        ({"deadline": 5.0}, "spec.deadline"),
        ({"after": (After(job="nobody"),)}, "spec.after"),
    ],
)
def test_it_is_checked_like_a_submission(
    client: Client, spec: dict[str, object], field: str
) -> None:
    with pytest.raises(InputError) as caught:
        client.quote(order("true", **spec))
    assert caught.value.field == field


@pytest.mark.parametrize("query", ["versions=0", "versions=101", "horizon_seconds=0", "speed=1"])
def test_how_far_it_looks_has_bounds(served: Served, query: str) -> None:
    answer = served.ask("POST", f"/v1/quote?{query}", order("true"))
    assert answer.status in (400, 422)


def test_nobody_waits_for_a_quote(
    served: Served, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one takes its time, jobs are submitted, run and end; too many at once are refused."""
    hold, asked = threading.Event(), threading.Event()
    ask = foresight.Prophet.ask

    def slowly(self: foresight.Prophet, errand: foresight.Errand) -> foresight.Answer:
        asked.set()
        assert hold.wait(20.0)
        return ask(self, errand)

    monkeypatch.setattr(foresight.Prophet, "ask", slowly)
    with ThreadPoolExecutor(2) as pool:
        quotes = [pool.submit(quoted, served) for _ in range(foresight.WAITING_EACH)]
        assert asked.wait(20.0)
        while served.service.foresight._waiting.total() < foresight.WAITING_EACH:
            time.sleep(0.01)
        with pytest.raises(TooManyError, match="as many quotes"):
            client.quote(order("true"))
        assert served.run("true").state == "done"
        hold.set()
        assert all(each.result() == "accept" for each in quotes)
    assert client.quote(order("true")).verdict == "accept"


def quoted(served: Served) -> str:
    with served.client() as client:
        return client.quote(order("true")).verdict


def test_one_that_takes_too_long_is_given_up(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foresight, "PATIENCE_SECONDS", 0.001)
    with pytest.raises(BoughError, match="ask for fewer versions"):
        client.quote(order("true"))
    monkeypatch.undo()
    assert client.quote(order("true")).verdict == "accept"


def test_the_process_that_looks_ahead_may_die(served: Served, client: Client) -> None:
    """The next quote starts another; and none is left when the daemon has ended."""
    assert client.quote(order("true")).verdict == "accept"
    prophet = served.service.foresight._quotes
    process = prophet._process
    assert process is not None
    process.kill()
    process.wait()
    assert client.quote(order("true")).verdict == "accept"
    second = prophet._process
    assert second is not None
    assert second.pid != process.pid
    served.stop()
    assert second.poll() is not None

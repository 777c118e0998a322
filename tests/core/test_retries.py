"""Which end is tried again, when, how often, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.driver import Commands, Driver, node, on

from bough.core import model as m
from bough.core.exits import CODES, NOTES, classify
from bough.core.retries import CALM_SECONDS, STORM_SECONDS, STORM_TRIES
from bough.core.scheduler import Scheduler, Settings
from bough.policies import find

ALL = on("n0", 0, 1, 2, 3)
#: A base so large that the jitter is seen, and a longest wait that is reached soon.
WAITS: dict[str, Any] = {"backoff_seconds": 8.0, "backoff_max_seconds": 100.0}
TRANSIENT, PERMANENT, UNKNOWN = 137, 127, 3


def running(retries: int = 0, **settings: Any) -> Driver:
    """One node, and a job `a` that runs on all of it."""
    d = Driver("fifo", node("n0"), **settings)
    d.submit("a", 4, retries=retries)
    d.settle()
    return d


def fails(d: Driver, code: int = UNKNOWN, after: float = 1.0, note: str = "") -> Commands:
    """The try fails after so many seconds."""
    d.now += after
    return d.exits("a", "failed", code=code, note=note)


def waits(d: Driver) -> float:
    """Let the wait after a failure pass, and start the next try; seconds it took."""
    begin, at = d.now, d.wake_at
    assert begin < at < m.INFINITY
    assert d.tick(at - 1e-3) == []
    [start] = d.tick(at)
    assert isinstance(start, m.Start)
    d.settle()
    return at - begin


# ---------------------------------------------------------------------- which are tried again


def test_what_passes_by_itself_costs_the_user_no_retry() -> None:
    d = running()
    for epoch in (2, 3, 4):
        assert fails(d, TRANSIENT, after=100.0) == [m.Start("a", epoch, ALL)]
        d.settle()
    assert d.scheduler.state.jobs["a"].failures == 0
    assert isinstance(fails(d, UNKNOWN)[0], m.Ended)


def test_what_never_passes_is_not_tried_again() -> None:
    d = running(retries=5)
    [ended] = fails(d, PERMANENT)
    assert isinstance(ended, m.Ended)
    assert ended.reason == (
        "its command was not found (exit code 127); another try would end the same way"
    )


def test_what_nobody_knows_is_tried_as_often_as_the_user_said() -> None:
    d = running(retries=1)
    assert fails(d) == [m.Start("a", 2, ALL)]
    d.settle()
    fails(d, TRANSIENT)  # in between, and not counted
    d.settle()
    assert fails(d) == [m.Ended("a", 3, "failed", "exit code 3, on the last of 2 tries")]


def test_a_word_of_the_body_says_more_than_the_code() -> None:
    d = running(retries=5)
    [ended] = fails(d, 137, note="it passed its memory limit of 4G")
    assert isinstance(ended, m.Ended)
    assert "more memory than it asked for" in ended.reason


def test_what_was_lost_is_never_the_jobs_fault() -> None:
    d = running(**WAITS)
    for epoch in range(2, 30):
        d.now += STORM_SECONDS
        assert d.exits("a", "lost", code=PERMANENT) == [m.Start("a", epoch, ALL)]
        d.settle()
    assert d.scheduler.state.jobs["a"].failures == 0


def test_who_is_lost_again_and_again_is_slowed_down_but_never_given_up() -> None:
    d = running(**WAITS)
    for epoch in range(2, STORM_TRIES + 2):
        assert d.exits("a", "lost") == [m.Start("a", epoch, ALL)]
        d.settle()
    waited = []
    for _ in range(10):
        assert d.exits("a", "lost", note="its watcher was killed") == []
        why = d.why("a")
        assert (why.code, why.facts["exit_kind"]) == ("retry", "transient")
        assert "(its watcher was killed)" in why.text
        waited.append(waits(d))
    assert waited[0] <= 8.0
    assert all(50.0 <= seconds <= 100.0 for seconds in waited[-4:])
    assert d.scheduler.state.jobs["a"].failures == 0
    d.now += STORM_SECONDS
    assert isinstance(d.exits("a", "lost")[0], m.Start), "it ran for a while"


@pytest.mark.parametrize("code", sorted({*CODES, 1, 255}))
@pytest.mark.parametrize("retries", [0, 2])
def test_each_kind_does_as_the_table_says(code: int, retries: int) -> None:
    d, tries = running(retries), 0
    while d.body.runs and tries < 5:
        tries += 1
        fails(d, code, after=STORM_SECONDS)
        d.settle()
    assert tries == {"transient": 5, "permanent": 1, "unknown": retries + 1}[classify(code)]


def test_a_job_that_fails_while_it_is_stopped_for_good_is_stopped() -> None:
    d = running(retries=3)
    d.cancel("a")
    assert d.exits("a", "failed", code=PERMANENT) == [m.Ended("a", 1, "cancelled", "by a user")]


def test_a_job_that_fails_for_good_while_it_is_parked_has_failed() -> None:
    d = running(retries=3)
    d.hold("a")
    [ended] = d.exits("a", "failed", code=PERMANENT)
    assert isinstance(ended, m.Ended)


def test_a_job_that_fails_while_it_is_parked_waits_only_for_its_user() -> None:
    d = running(retries=3, **WAITS)
    d.hold("a")
    assert d.exits("a", "failed", code=UNKNOWN) == []
    assert d.why("a").code == "held"
    assert d.release("a") == [m.Start("a", 2, ALL)]


# ---------------------------------------------------------------------------------- when


def test_without_a_backoff_the_next_try_comes_at_once() -> None:
    assert fails(running(retries=1)) == [m.Start("a", 2, ALL)]


def test_the_wait_doubles_up_to_the_longest() -> None:
    d = running(retries=9, **WAITS)
    for longest in (8.0, 16.0, 32.0, 64.0, 100.0, 100.0):
        assert fails(d) == []
        assert longest / 2 <= waits(d) <= longest


def test_after_a_long_run_the_wait_is_short_again() -> None:
    d = running(retries=9, **WAITS)
    for after in (1.0, 1.0, 1.0, CALM_SECONDS):
        fails(d, after=after)
        waited = waits(d)
    assert waited <= 8.0


def test_time_spent_parked_is_no_long_run() -> None:
    d = running(retries=9, **WAITS)
    fails(d)
    waits(d)
    d.hold("a")
    d.settle()
    d.now += 10 * CALM_SECONDS
    d.release("a")
    d.settle()
    fails(d)
    assert waits(d) > 8.0


def test_a_long_run_in_parts_is_a_long_run() -> None:
    d = running(retries=9, **WAITS)
    fails(d)
    waits(d)
    for _ in range(4):
        d.now += CALM_SECONDS / 3
        d.hold("a")
        d.settle()
        d.release("a")
        d.settle()
    fails(d)
    assert waits(d) <= 8.0


def test_jobs_that_failed_together_do_not_come_back_together() -> None:
    d = Driver("fifo", node("n0", 64), **WAITS)
    for i in range(64):
        d.submit(f"j{i}", 1)
    d.settle()
    for i in range(64):
        d.exits(f"j{i}", "failed", code=TRANSIENT)
    again = [job.trouble.again_at for job in d.scheduler.state.jobs.values() if job.trouble]
    assert len(set(again)) == 64
    assert min(again) >= 4.0
    assert max(again) <= 8.0
    assert max(again) - min(again) > 3.0


def test_the_wait_is_known_beforehand() -> None:
    """It depends on nothing but the job and its try: a replay comes to the same."""
    d = running(retries=1, **WAITS)
    fails(d)
    assert d.wake_at == pytest.approx(5.0 + 4.0 * JITTER, abs=1e-9)


#: crc32(b"a/1") as part of 2**32.
JITTER = 4120264786 * 2654435769 % 2**32 / 2**32


def test_nobody_takes_the_devices_of_who_waits_for_them_in_vain() -> None:
    d = running(retries=1, **WAITS)
    d.submit("b", 4)
    assert fails(d) == [m.Start("b", 1, ALL)]


def test_a_job_cancelled_while_it_waits_leaves_no_moment_behind() -> None:
    d = running(retries=1, **WAITS)
    fails(d)
    assert d.cancel("a") == [m.Ended("a", 1, "cancelled", "by a user")]
    assert d.wake_at == m.INFINITY


def test_a_job_held_while_it_waits_stays_held() -> None:
    d = running(retries=1, **WAITS)
    fails(d)
    at = d.wake_at
    d.hold("a")
    assert d.tick(at + 1.0) == []
    assert d.why("a").code == "held"
    assert d.release("a") == [m.Start("a", 2, ALL)]


def test_letting_it_go_on_does_not_shorten_the_wait() -> None:
    d = running(retries=1, **WAITS)
    fails(d)
    at = d.wake_at
    d.hold("a")
    assert d.release("a") == []
    assert d.wake_at == at
    assert waits(d)


def test_what_happens_to_nodes_does_not_shorten_the_wait() -> None:
    d = running(retries=1, **WAITS)
    fails(d)
    at = d.wake_at
    assert d.up(node("n1")) == []
    assert d.why("a").code == "retry"
    assert d.wake_at == at


def test_in_rounds_the_next_try_waits_for_the_round_after_it() -> None:
    d = Driver("fifo", node("n0"), round_seconds=60.0, **WAITS)
    d.submit("a", 4, retries=1)
    d.settle()
    fails(d)
    while d.wake_at < m.INFINITY and not d.tick(d.wake_at):
        pass
    assert d.now == 60.0


def test_a_wait_survives_a_restart_to_the_byte() -> None:
    d = running(retries=9, **WAITS)
    fails(d)
    waits(d)
    fails(d, TRANSIENT)
    fresh = Scheduler(find("fifo"), settings=Settings(**WAITS))
    fresh.from_bytes(d.scheduler.to_bytes())
    assert fresh.to_bytes() == d.scheduler.to_bytes()
    assert fresh.wake_at == d.wake_at
    assert fresh.why("a") == d.why("a")
    tick = m.Tick(at=d.wake_at)
    assert fresh.handle([tick]) == d.say(tick) != []
    assert fresh.to_bytes() == d.scheduler.to_bytes()


# -------------------------------------------------------------------------------- storms


def storm(d: Driver, tries: int) -> Commands:
    """So many tries end soon, by something that would pass."""
    commands: Commands = []
    for _ in range(tries):
        commands = fails(d, TRANSIENT, after=STORM_SECONDS / 2)
        if d.wake_at < m.INFINITY:
            commands = d.tick(d.wake_at)
        d.settle()
    return commands


@pytest.mark.parametrize("settings", [{}, WAITS], ids=["at once", "after waits"])
def test_a_storm_is_broken_and_explained(settings: dict[str, Any]) -> None:
    d = running(retries=100, **settings)
    assert isinstance(storm(d, STORM_TRIES)[0], m.Start)
    [ended] = storm(d, 1)
    assert isinstance(ended, m.Ended)
    assert ended.state == "failed"
    reason = d.why("a")
    assert reason.text == (
        "It failed: somebody else killed it (SIGKILL), "
        "as did 6 tries in a row that ran less than a minute."
    )
    assert reason.facts["tries_in_a_row"] == STORM_TRIES + 1


def test_a_try_that_runs_a_while_calms_the_storm() -> None:
    d = running()
    storm(d, STORM_TRIES)
    fails(d, TRANSIENT, after=STORM_SECONDS)
    d.settle()
    assert isinstance(storm(d, STORM_TRIES)[0], m.Start)


def test_the_users_own_retries_are_no_storm() -> None:
    d = running(retries=50)
    for _ in range(50):
        fails(d, UNKNOWN)
        d.settle()
    assert isinstance(fails(d, TRANSIENT)[0], m.Start)


# --------------------------------------------------------------------------- any history

CODE = st.sampled_from([0, 1, 2, 3, 126, 127, 134, 137, 139, 143, 223, 255])
NOTE = st.sampled_from(["", "", *(words for words, _ in NOTES)])


@given(
    history=st.lists(st.tuples(CODE, NOTE, st.floats(0, 2000)), min_size=1, max_size=30),
    retries=st.integers(0, 5),
    base=st.sampled_from([0.0, 0.5, 8.0]),
)
def test_any_history_ends_or_goes_on(
    history: list[tuple[int, str, float]], retries: int, base: float
) -> None:
    """No try is forgotten, none comes too late, and every bound on tries holds."""
    d = running(retries, backoff_seconds=base, backoff_max_seconds=50.0)
    counted = 0
    for tries, (code, note, after) in enumerate(history, 1):
        kind = classify(code, "failed", note)
        counted += kind != "transient"
        fails(d, code, after, note)
        text = d.why("a").text
        assert text.endswith(".")
        if d.scheduler.state.ended:
            assert kind != "unknown" or counted == retries + 1
            assert kind != "transient" or tries > STORM_TRIES
            return
        assert kind != "permanent"
        assert counted <= retries
        if base:
            assert 0 < d.wake_at - d.now <= 50.0
            at = d.wake_at
            fresh = Scheduler(find("fifo"), settings=d.scheduler.settings)
            fresh.from_bytes(d.scheduler.to_bytes())
            assert fresh.wake_at == at
            d.tick(at)
        d.settle()
        assert set(d.body.runs) == {"a"}

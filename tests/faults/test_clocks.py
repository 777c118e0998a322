"""The machine's clock is set, while a daemon runs and while none does: no job minds."""

from __future__ import annotations

import pytest
from tests.faults.victims import Victims

HOUR, YEAR = 3600.0, 365 * 86400.0
JUMPS = [HOUR, -HOUR, YEAR, -YEAR]


@pytest.mark.parametrize("by", JUMPS)
def test_a_job_runs_as_long_as_it_may_and_is_charged_what_it_ran(
    victims: Victims, by: float
) -> None:
    """Set under a daemon that runs, and once more between two daemons."""
    limited, _ = victims.run(max_run_seconds=60.0)
    free, _ = victims.run()
    victims.mortal.set_clock(by)
    for job in (limited, free):
        found = victims.until(job.id, "running").job
        assert 0 <= found.device_seconds < 60
    victims.mortal.kill()
    victims.mortal.set_clock(by)
    victims.mortal.start()
    for job in (limited, free):
        found = victims.detail(job).job
        assert (found.state, found.epoch) == ("running", 1)
        assert 0 <= found.device_seconds < 60
    for job in (limited, free):
        assert victims.stop(job).state == "cancelled"
        (attempt,) = victims.attempts(job)
        assert attempt.began is not None
        assert attempt.ended is not None
        assert 0 <= attempt.ended - attempt.began < 60
    victims.sound()


def test_a_limit_is_kept_though_the_clock_goes_back(victims: Victims) -> None:
    job, _ = victims.run(max_run_seconds=1.0, grace_seconds=0.1)
    victims.mortal.set_clock(-YEAR)
    over = victims.end_of(job)
    assert over.state == "timed-out"
    victims.sound()


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_with_nothing_that_runs_the_clock_is_believed_but_never_goes_back(
    victims: Victims, by: float
) -> None:
    first = victims.end_of(victims.submit("true"))
    victims.mortal.kill()
    victims.mortal.set_clock(by)
    victims.mortal.start()
    second = victims.end_of(victims.submit("true"))
    later = second.submitted - first.submitted
    assert later > HOUR if by > 0 else 0 <= later < 600
    notes = victims.ask(lambda client: client.status()).notes
    assert any("clock is 1h behind" in note for note in notes) == (by < 0)
    victims.sound()


def test_who_waits_for_another_try_waits_no_longer(victims: Victims) -> None:
    """A retry is due in a moment, whatever o'clock that is."""
    job = victims.submit('echo "$$ $BOUGH_EPOCH" > "$BELL"; exit 3', retries=3)
    assert victims.told()[1] == 1
    victims.mortal.set_clock(-YEAR)
    assert [victims.told()[1] for _ in range(3)] == [2, 3, 4]
    over = victims.end_of(job)
    assert (over.state, over.code, over.epoch) == ("failed", 3, 4)
    victims.sound()

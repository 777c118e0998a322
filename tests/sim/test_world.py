"""The simulated world told in small cases: how fast jobs go, what costs them time, what is lost."""

from __future__ import annotations

import pytest
from tests.sim.replays import LINEAR, found, job, replay

from bough.core.cluster import parse_short
from bough.core.speedup import Curve, SpeedBook, SpeedRow
from bough.errors import InputError
from bough.policies import find
from bough.sim.engine import Engine
from bough.sim.options import Failures, Options, Tools
from bough.sim.trace import Trace

SATURATING = Curve(sizes=(1, 2, 4), speed=(1.0, 1.5, 2.0))


# --------------------------------------------------------------------------- speed


@pytest.mark.parametrize(("devices", "seconds"), [(1, 150.0), (2, 100.0), (4, 75.0)])
def test_a_job_progresses_at_its_true_speed_up(devices: int, seconds: float) -> None:
    # 100 seconds on two devices at speed 1.5 are 150 units of work.
    traced = job("a", 0, 100, 2, least=devices, most=devices, curve=SATURATING)
    assert found(replay([traced]))["a"].end == pytest.approx(seconds)


def test_an_elastic_job_adds_up_what_it_did_at_each_size() -> None:
    # 100 units of work: 4 devices for 10 s, 2 while the other is there (10 s), then 4 again.
    jobs = [job("a", 0, 100, 1, most=4), job("b", 10, 10, 2)]
    a = found(replay(jobs, policy="max_min"))["a"]
    assert a.sizes == [(0, 4), (10, 2), (20, 4), (30, 0)]
    assert a.device_seconds == pytest.approx(100)


def test_ideals_are_those_of_the_true_curve() -> None:
    a = found(replay([job("a", 0, 100, 2, least=1, most=4, curve=SATURATING)]))["a"]
    assert (a.ideal_seconds, a.fastest_seconds, a.least_device_seconds) == (100, 75, 150)


def test_a_scattered_place_is_slower_by_what_the_curve_says() -> None:
    spread = Curve(sizes=(1, 2), speed=(1.0, 2.0), span_factor=(0.5, 0.25))
    fill = [job("a", 0, 1000), job("b", 0, 10), job("c", 0, 1000)]
    wide = job("wide", 11, 100, 2, curve=spread)
    # One device is left on each node, and it does not insist on being compact.
    one_level = found(replay([*fill, wide], "2x2xv100", locality_seconds=0.0))["wide"]
    assert one_level.end == pytest.approx(11 + 100 / 0.5)
    two_levels = found(replay([*fill, wide], "2 racks of 1x2xv100", locality_seconds=0.0))["wide"]
    assert two_levels.end == pytest.approx(11 + 100 / 0.25)


def test_spanning_nodes_costs_nothing_where_no_node_is_wide_enough() -> None:
    spread = Curve(sizes=(1, 4), speed=(1.0, 4.0), span_factor=(0.5,))
    wide = found(replay([job("wide", 0, 100, 4, curve=spread)], "2x2xv100"))["wide"]
    assert wide.end == pytest.approx(100)


def test_another_kind_of_device_has_its_own_speed() -> None:
    rows = [SpeedRow("bert", 0, kind, 1, rate) for kind, rate in (("v100", 10.0), ("a100", 25.0))]
    book = SpeedBook("v100")
    book.add_rows(rows)
    jobs = [job(name, 0, 100, curve=None, model="bert") for name in "ab"]
    ran = found(replay(jobs, "1xv100 + 1xa100", tools=Tools(speedups=book)))
    assert {(one.kind, one.end) for one in ran.values()} == {("v100", 100.0), ("a100", 40.0)}


def test_a_job_that_can_run_on_none_of_its_sizes_is_an_error() -> None:
    wide = Curve(sizes=(1, 2, 4), speed=(0.0, 0.0, 1.0))
    with pytest.raises(InputError, match=r"job a cannot run on any of its sizes \[1, 2\]"):
        replay([job("a", 0, 100, 4, least=1, most=2, curve=wide)])


def test_a_job_that_could_not_have_run_as_the_trace_says_is_an_error() -> None:
    never = Curve(sizes=(1, 2), speed=(0.0, 1.0))
    with pytest.raises(InputError, match="job a ran on 1 devices in the trace, but its speed-up"):
        replay([job("a", 0, 100, 1, most=2, curve=never)])


# --------------------------------------------------------------------------- costs


def test_a_start_costs_time_on_devices_that_are_held() -> None:
    a = found(replay([job("a", 5, 100, 2)], start_seconds=30))["a"]
    assert (a.begin, a.end, a.device_seconds) == (5, 135, 260)


def test_growing_costs_time_on_the_new_devices_too() -> None:
    jobs = [job("a", 0, 100, 1, most=4), job("b", 0, 10, 2)]
    a = found(replay(jobs, policy="max_min", resize_seconds=7))["a"]
    # 20 units by 10 s; from 17 s on the other 80 at speed 4.
    assert a.sizes == [(0, 2), (10, 4), (37, 0)]
    assert (a.resizes, a.device_seconds) == (1, 20 + 27 * 4)


def test_what_a_shrinking_job_leaves_it_holds_until_it_has_left() -> None:
    jobs = [job("a", 0, 1000, 1, most=4), job("b", 100, 95, 2)]
    ran = found(replay(jobs, policy="max_min", resize_seconds=5))
    # 400 units by 100 s; 190 more on 2 devices from 105 s to 200 s; 410 at 4, from 205 s.
    assert ran["a"].sizes == [(0, 4), (105, 2), (200, 4), (307.5, 0)]
    assert ran["a"].device_seconds == pytest.approx(105 * 4 + 95 * 2 + 107.5 * 4)
    assert (ran["b"].begin, ran["b"].end) == (105, 200)
    assert ran["b"].waits == {"moving": 5.0}


def test_a_parked_job_holds_its_devices_until_it_has_left() -> None:
    jobs = [job("long", 0, 100, 4), job("short", 10, 10, 4)]
    ran = found(replay(jobs, policy="srtf", start_seconds=7, park_seconds=5))
    # Parked at 10 with 3 s done; gone at 15; the short one runs 17..32 after its start.
    long, short = ran["long"], ran["short"]
    assert long.sizes == [(0, 4), (15, 0), (32, 4), (32 + 7 + 97, 0)]
    assert (long.preemptions, long.device_seconds) == (1, 15 * 4 + 104 * 4)
    assert sum(long.waits.values()) == 17
    assert (short.begin, short.end, short.waits) == (15, 32, {"moving": 5.0})


def test_a_parked_job_that_is_not_replaced_goes_on_where_it_was_in_its_work() -> None:
    jobs = [job("long", 0, 100, 4), job("short", 10, 10, 4), job("brief", 12, 2, 4)]
    ran = found(replay(jobs, policy="srtf"))
    assert [ran[id].end for id in ("long", "short", "brief")] == [112, 22, 14]
    assert ran["long"].device_seconds == 400


def test_a_move_costs_leaving_and_starting_and_no_work() -> None:
    # Packed anew when the first ends, the second moves to the first device.
    jobs = [job("first", 0, 10), job("second", 0, 100)]
    record = replay(jobs, "2xv100", "srtf", repack="best", start_seconds=5, park_seconds=3)
    second = found(record)["second"]
    assert (second.migrations, second.preemptions) == (1, 0)
    # It had done 10 s of work by 15 s, left at 18, and went on at 23.
    assert second.sizes == [(0, 1), (18, 0), (18, 1), (113, 0)]
    assert second.device_seconds == 113


# --------------------------------------------------------------------------- neighbours, luck


def test_neighbours_slow_each_other_down_and_speed_up_again() -> None:
    # Half of the node is the other's: both lose a tenth while they share it.
    ran = found(replay([job("a", 0, 100, 2), job("b", 50, 100, 2)], interference=0.2))
    assert ran["a"].end == pytest.approx(50 + 50 / 0.9)
    alone = 100 - (ran["a"].end - 50) * 0.9
    assert ran["b"].end == pytest.approx(ran["a"].end + alone)


def test_jobs_on_other_nodes_do_not_interfere() -> None:
    ran = found(replay([job("a", 0, 100, 2), job("b", 0, 100, 2)], "2x2xv100", interference=0.9))
    assert [one.end for one in ran.values()] == [100, 100]


def test_a_neighbour_that_is_leaving_still_interferes_until_it_has_left() -> None:
    jobs = [job("kept", 0, 100, 2), job("long", 0, 1000, 2), job("short", 50, 10, 2)]
    ran = found(replay(jobs, policy="srtf", interference=0.4, park_seconds=5))
    # The other half of the node is never empty before the end: the same speed throughout.
    assert ran["kept"].end == pytest.approx(100 / 0.8)


def test_a_gang_with_a_slow_device_is_slow_as_a_whole() -> None:
    a = found(replay([job("a", 0, 70, 4)], straggler_share=1.0))["a"]
    assert a.end == pytest.approx(100)


def test_so_many_starts_catch_a_slow_device_as_was_asked_for() -> None:
    jobs = [job(str(i), 0, 70) for i in range(400)]
    ends = [one.end for one in replay(jobs, "400xv100", straggler_share=0.25, seed=3).jobs]
    assert {round(end, 6) for end in ends} == {70.0, 100.0}
    assert 0.18 < sum(end > 99 for end in ends) / 400 < 0.32  # three standard deviations


# --------------------------------------------------------------------------- wrong beliefs


def test_wrong_estimates_mislead_the_policy_but_not_the_job() -> None:
    jobs = [job("now", 0, 5, 4), job("long", 1, 100, 4), job("short", 2, 80, 4)]
    right = found(replay(jobs, policy="srtf"))
    assert (right["short"].begin, right["long"].begin) == (5, 85)
    first = set()
    for seed in range(12):
        ran = found(replay(jobs, policy="srtf", speed_error=0.5, seed=seed))
        assert {one.id: one.device_seconds for one in ran.values()} == pytest.approx(
            {"now": 20, "long": 400, "short": 320}
        )
        first.add(min(("long", "short"), key=lambda id: ran[id].begin))
    assert first == {"long", "short"}


def test_what_a_running_job_reports_is_learnt() -> None:
    other = job("other", 40, 10, 4)
    trace = Trace(name="t", jobs=(job("a", 0, 1000, 1, most=4, curve=SATURATING), other))
    options = Options(speed_error=0.5, seed=5, until=50.0)
    engine = Engine(trace, parse_short("4xv100"), find("fifo"), options, Tools())
    engine.run()
    state, truth = engine.scheduler.state, engine.world.jobs["a"]
    row = state.table.row(state.jobs["a"])
    true_speed = truth.rate * truth.believed / truth.work
    learnt = state.classes.speed(int(state.table.cls[row]), 4)
    assert abs(SATURATING.at(4) / true_speed - 1) > 0.3, "the seed draws too small an error"
    assert abs(learnt / true_speed - 1) < 0.05, "what was believed before weighs a little"
    assert state.table.rate[row] == true_speed
    # It was last told of events at 40 s.
    state.table.now = 50.0
    left = (truth.work - truth.done) / truth.rate
    assert state.table.left()[row] / state.table.rate[row] == pytest.approx(left)


def test_jobs_are_the_same_under_every_policy_whatever_happens_to_them() -> None:
    """Draws that depend on what a policy does must not change what later jobs are like."""
    jobs = [job(str(i), 10.0 * i, 100, 1, most=4, curve=SATURATING) for i in range(20)]
    runs = [
        replay(jobs, policy=policy, speed_error=0.4, straggler_share=0.5, seed=2)
        for policy in ("fifo", "srtf", "max_min")
    ]
    truths = [[one.fastest_seconds for one in run.jobs] for run in runs]
    assert truths[0] == truths[1] == truths[2]
    assert len(set(truths[0])) == 20


# --------------------------------------------------------------------------- checkpoints


def test_only_what_was_done_since_the_last_checkpoint_is_lost() -> None:
    traced = job("a", 0, 100, 2, fails_at=0.5, retries=1)
    a = found(replay([traced], checkpoint_seconds=20))["a"]
    assert (a.restarts, a.lost_device_seconds, a.end) == (1, 20, 110)


@pytest.mark.parametrize(
    ("every", "lost"), [(0.0, 0.0), (60.0, 50.0), (float("inf"), 50.0), (49.0, 1.0), (50.0, 0.0)]
)
def test_checkpoints_may_be_rare_or_at_all_times(every: float, lost: float) -> None:
    a = found(replay([job("a", 0, 100, fails_at=0.5, retries=1)], checkpoint_seconds=every))["a"]
    assert a.lost_device_seconds == pytest.approx(lost)
    assert a.end == pytest.approx(100 + lost)


def test_the_clock_of_checkpoints_begins_with_progress() -> None:
    traced = job("a", 0, 100, fails_at=0.5, retries=1)
    a = found(replay([traced], start_seconds=30, checkpoint_seconds=40))["a"]
    # 40 s of work are safe at 70 s; it crashes at 80 s and starts again: 30 s, then 60 s.
    assert (a.lost_device_seconds, a.end) == (10, 80 + 30 + 60)


def test_a_planned_stop_saves_everything_and_the_clock_begins_anew() -> None:
    jobs = [job("a", 0, 100, 4, fails_at=0.5, retries=1), job("short", 10, 10, 4)]
    a = found(replay(jobs, policy="srtf", checkpoint_seconds=25))["a"]
    # Parked with 10 s done, on again at 20 s; saved at 45 s (35 s of work); crashed at 60 s.
    assert (a.lost_device_seconds, a.end) == (15 * 4, 60 + 65)


def test_a_resize_in_place_saves_nothing() -> None:
    jobs = [job("a", 0, 1000, 1, most=4, fails_at=0.5, retries=1), job("b", 100, 20, 2)]
    a = found(replay(jobs, policy="max_min", checkpoint_seconds=300))["a"]
    # 400 units by 100 s, 440 by 120 s, the crash at 500 units comes at 135 s: all of it is lost.
    assert a.resizes == 2
    assert a.lost_device_seconds == pytest.approx(500)
    assert a.end == pytest.approx(135 + 250)


def test_a_checkpoint_before_a_resize_stays() -> None:
    jobs = [job("a", 0, 1000, 1, most=4, fails_at=0.5, retries=1), job("b", 100, 20, 2)]
    a = found(replay(jobs, policy="max_min", checkpoint_seconds=90))["a"]
    # Saved at 90 s: 360 units. Lost: 10 s on 4 devices, 20 s on 2, 15 s on 4.
    assert a.lost_device_seconds == pytest.approx(140)
    assert a.end == pytest.approx(135 + 640 / 4)


def test_what_is_lost_was_done_at_the_speeds_of_the_time() -> None:
    jobs = [job("a", 0, 1000, 2, fails_at=0.7, retries=1), job("b", 500, 100, 2)]
    a = found(replay(jobs, interference=0.5, checkpoint_seconds=400))["a"]
    # Saved at 400 s. Half of the node is b's from 500 s to 633 s: three quarters of the speed.
    crash = 500 + 100 / 0.75 + 100
    assert a.lost_device_seconds == pytest.approx((crash - 400) * 2)
    assert a.end == pytest.approx(crash + 600)


def test_a_second_crash_loses_nothing_twice() -> None:
    traced = job("a", 0, 1000, retries=100)
    failures = Failures(job_mtbf_seconds=130.0)
    a = found(replay([traced], failures=failures, checkpoint_seconds=50, seed=1))["a"]
    assert a.restarts > 3
    assert 0 < a.lost_device_seconds < a.restarts * 50
    assert a.end == pytest.approx(1000 + a.lost_device_seconds)


def test_jobs_crash_by_device_time_at_the_size_of_the_trace() -> None:
    def crashes(devices: int) -> int:
        jobs = [job(str(i), 0, 100, devices, curve=LINEAR, retries=99) for i in range(50)]
        failures = Failures(job_mtbf_seconds=400.0)
        ran = replay(jobs, f"50x{devices}xv100", failures=failures, checkpoint_seconds=0, seed=4)
        return sum(one.restarts for one in ran.jobs)

    # 50 jobs x 100 s are 12.5 mean times on one device each and 50 on four: Poisson.
    assert 3 <= crashes(1) <= 24
    assert 28 <= crashes(4) <= 72

"""Every trace format on a few rows of ours: what becomes of each column, and of what is wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.sim.samples import (
    CHRONUS,
    ELASTICFLOW,
    GAIA,
    GAVEL,
    HELIOS,
    ITP,
    LUCID,
    MURI,
    OPENB,
    PAI_JOBS,
    PAI_SIMULATOR,
    PAI_TASKS,
    PHILLY_TABLE,
    POLLUX,
    SACCT,
    SHOCKWAVE,
    SYNERGY,
    TIRESIAS,
    Rates,
    profile,
    read,
)

from bough.core.model import JobSpec, Range
from bough.errors import InputError
from bough.sim.trace import Reading, read_trace

#: Where a job fails that failed in the trace.
AT_THE_END = pytest.approx(1.0)


def test_elasticflow_jobs_with_a_deadline_ask_for_a_guarantee(tmp_path: Path) -> None:
    trace = read(tmp_path, ELASTICFLOW)
    assert trace.format == "elasticflow"
    second, first = trace.jobs[0], trace.jobs[1]
    assert (first.id, first.submit, first.seconds, first.devices) == ("7", 100.0, 500.0, 4)
    assert first.spec == JobSpec(
        name="bert",
        model="bert",
        batch=64,
        devices=Range(min=4, max=4),
        deadline=900.0,
        service="guaranteed",
        estimate_seconds=500.0,
        estimate_devices=4,
    )
    assert (second.spec.deadline, second.spec.service) == (None, "best-effort")


def test_itp_traces_are_elasticflow_with_other_names(tmp_path: Path) -> None:
    trace = read(tmp_path, ITP)
    assert (trace.format, trace.jobs[0].id, trace.jobs[0].spec.deadline) == (
        "elasticflow", "a-b", 900.0,
    )  # fmt: skip


def test_elasticflow_iterations_over_a_measured_rate(tmp_path: Path) -> None:
    trace = read(tmp_path, ELASTICFLOW, rates=Rates())
    assert [job.seconds for job in trace.jobs] == [10 / 2, 2000 / 8]


def test_elastic_jobs_take_the_sizes_that_were_measured(tmp_path: Path) -> None:
    rigid = read(tmp_path, ELASTICFLOW)
    elastic = read(tmp_path, ELASTICFLOW, elastic_limit=64)
    measured = read(tmp_path, ELASTICFLOW, elastic_limit=64, rates=Rates())
    assert [job.spec.sizes() for job in rigid.jobs] == [(1,), (4,)]
    assert {job.spec.sizes() for job in elastic.jobs} == {(1, 2, 4, 8, 16, 32, 64)}
    assert {job.spec.sizes() for job in measured.jobs} == {(1, 2, 4, 8, 16)}


def test_muri_counts_milliseconds_exactly(tmp_path: Path) -> None:
    trace = read(tmp_path, MURI)
    assert trace.format == "muri"
    assert (trace.jobs[0].submit, trace.jobs[0].seconds) == (201694.001, 4472936.007)
    assert trace.notes == ("times are read as milliseconds",)


def test_tiresias_counts_seconds(tmp_path: Path) -> None:
    trace = read(tmp_path, TIRESIAS)
    assert trace.format == "muri"
    assert (trace.jobs[0].submit, trace.jobs[0].seconds, trace.jobs[0].devices) == (30, 147, 8)


def test_the_unit_of_time_can_be_forced(tmp_path: Path) -> None:
    trace = read(tmp_path, TIRESIAS, unit_seconds=60.0)
    assert (trace.jobs[0].submit, trace.jobs[0].seconds, trace.notes) == (1800, 147 * 60, ())


def test_chronus_mixes_strict_soft_and_no_deadlines(tmp_path: Path) -> None:
    trace = read(tmp_path, CHRONUS)
    assert trace.format == "chronus"
    assert [(j.spec.deadline, j.spec.service) for j in trace.jobs] == [
        ((10 + 15) * 60, "guaranteed"),
        ((11 + 20) * 60, "best-effort"),
        (None, "best-effort"),
    ]
    assert [j.spec.queue for j in trace.jobs] == ["vc_1", "vc_2", "vc_2"]
    assert "1 row left out: asked for no device" in trace.notes


def test_shockwave_rows_have_durations(tmp_path: Path) -> None:
    trace = read(tmp_path, SHOCKWAVE)
    assert (trace.format, trace.kind) == ("gavel", "v100")
    assert [(j.seconds, j.devices, j.submit) for j in trace.jobs] == [(1418, 1, 0), (200, 2, 55)]
    assert [(j.spec.model, j.spec.batch) for j in trace.jobs] == [("lm", 10), ("cyclegan", 0)]
    assert [j.spec.deadline for j in trace.jobs] == [None, 655]
    assert trace.notes == ("1 jobs change their batch size in the original and keep it here",)


def test_gavel_steps_need_speeds(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trace:1: counts steps, not seconds \(.*--speedups"):
        read(tmp_path, GAVEL)
    trace = read(tmp_path, GAVEL, rates=Rates())
    assert [(j.id, j.submit, j.seconds) for j in trace.jobs] == [
        ("1", 5, 3000 / 4), ("2", 6, 500 / 2), ("3", 7, 500 / 2),
    ]  # fmt: skip


def test_a_job_without_a_known_speed_is_a_problem(tmp_path: Path) -> None:
    wide = GAVEL.partition("\n")[0].replace("\t2\t", "\t99\t")
    trace = read(tmp_path, GAVEL + wide, rates=Rates())
    assert len(trace.jobs) == 3
    assert trace.problems[0].endswith(
        "trace:4: no speed is known for resnet-50, batch 64, on 99 × v100"
    )


def test_pollux_run_times_follow_from_a_profile(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not say how long its jobs run"):
        read(tmp_path, POLLUX)
    trace = read(tmp_path, POLLUX, profiles=profile(tmp_path))
    # 32 samples on each of 2 devices: 1.5 s a step; a batch twice as large is worth
    # (3 + 1) / (3 / 2 + 1) = 1.6 steps of the smallest.
    assert trace.jobs[0].seconds == pytest.approx(3000 * 1.5 / 1.6)
    assert (trace.format, trace.kind) == ("pollux", "t4")


def test_pollux_names_what_was_not_measured(tmp_path: Path) -> None:
    rows = "x-1,1,../cifar10,2,64\nx-2,1,gpt,2,64\nx-3,1,cifar10,3,64\nx-4,1,cifar10,2,4096\n"
    trace = read(tmp_path, POLLUX + rows, profiles=profile(tmp_path))
    assert [problem.split(": ", 1)[1] for problem in trace.problems] == [
        "application: '../cifar10' has no profile",
        "application: 'gpt' has no profile",
        "cifar10 was not measured on 3 devices",
        "cifar10 was not measured with a batch of 4096",
    ]


def test_philly_table_dates_become_seconds_since_the_first(tmp_path: Path) -> None:
    trace = read(tmp_path, PHILLY_TABLE)
    assert trace.format == "philly"
    assert [(j.id, j.submit, j.seconds, j.devices) for j in trace.jobs] == [
        ("2", 0.0, 2951.5, 8), ("1", 2932.0, 66.0, 1),
    ]  # fmt: skip
    assert trace.epoch == 1507529583.0


def philly_job(**changes: object) -> dict[str, object]:
    def attempt(start: str | None, end: str | None, gpus: int) -> dict[str, object]:
        detail = [{"ip": "m1", "gpus": [f"gpu{i}" for i in range(gpus)]}]
        return {"start_time": start, "end_time": end, "detail": detail}

    return {
        "status": "Failed",
        "vc": "ee9e8c",
        "jobid": "application_1",
        "user": "ce2f4c",
        "submitted_time": "2017-10-07 01:00:00",
        "attempts": [
            attempt("2017-10-07 01:01:00", "2017-10-07 01:02:00", 4),
            attempt(None, None, 8),
            attempt("2017-10-07 02:00:00", "2017-10-07 02:10:00", 8),
        ],
        **changes,
    }


def test_philly_log_counts_the_time_of_all_attempts(tmp_path: Path) -> None:
    late = philly_job(jobid="application_2", submitted_time="2017-10-07 02:00:00")
    trace = read(tmp_path, json.dumps([late, philly_job()], indent=4), failures=True)
    assert trace.format == "philly"
    job = trace.jobs[0]
    # A minute on four devices is half a minute on eight.
    assert (job.id, job.devices, job.seconds) == ("application_1", 8, 630.0)
    assert (job.spec.user, job.spec.queue, job.fails_at) == ("ce2f4c", "ee9e8c", AT_THE_END)
    assert trace.jobs[1].submit == 3600.0


def test_philly_log_leaves_out_what_did_not_run_and_reports_what_is_malformed(
    tmp_path: Path,
) -> None:
    entries = [
        philly_job(),
        philly_job(jobid="a2", attempts=[]),
        philly_job(jobid="a3", attempts=[{"start_time": "2017-10-07 01:01:00", "end_time": None}]),
        philly_job(jobid="a4", submitted_time="None"),
        philly_job(jobid="a5", submitted_time="yesterday"),
        philly_job(jobid=6),
        philly_job(),
    ]
    trace = read(tmp_path, json.dumps(entries))
    assert len(trace.jobs) == 1
    assert set(trace.notes) == {
        "1 row left out: never ran",
        "1 row left out: still running when the trace was taken",
        "1 row left out: has no submitted_time",
    }
    assert [problem.split("/")[-1] for problem in trace.problems] == [
        "trace: job 5.submitted_time: 'yesterday' is not a date like 2020-04-08 11:23:44",
        "trace: job 6: Expected `str`, got `int` - at `$.jobid`",
        "trace: job 7: job 'application_1' appears twice",
    ]


def test_helios_keeps_users_and_virtual_clusters(tmp_path: Path) -> None:
    trace = read(tmp_path, HELIOS, failures=True)
    assert trace.format == "helios"
    assert [(j.id, j.submit, j.seconds, j.devices) for j in trace.jobs] == [
        ("11", 0.0, 36848.0, 1), ("12", 26.0, 249.0, 4),
    ]  # fmt: skip
    assert [(j.spec.user, j.spec.queue, j.fails_at) for j in trace.jobs] == [
        ("uX", "vcA", None), ("uV", "vcB", AT_THE_END),
    ]  # fmt: skip


def test_failures_are_replayed_only_when_asked(tmp_path: Path) -> None:
    assert all(job.fails_at is None for job in read(tmp_path, HELIOS).jobs)


def test_lucid_adds_models_and_counts_seconds(tmp_path: Path) -> None:
    trace = read(tmp_path, LUCID)
    assert trace.format == "helios"
    job = trace.jobs[0]
    assert (job.submit, job.spec.model, job.spec.batch, job.devices) == (3600, "resnet18", 64, 2)


@pytest.mark.parametrize(
    ("slots", "sizes"), [(0, [1, 8]), (1, [1, 8]), (4, [2, 32]), (100, [46, 800])]
)
def test_openb_parts_of_a_device(tmp_path: Path, slots: int, sizes: list[int]) -> None:
    trace = read(tmp_path, OPENB, slots=slots)
    assert trace.format == "openb"
    assert [j.devices for j in trace.jobs] == sizes
    assert [(j.submit, j.seconds) for j in trace.jobs] == [(10, 90), (30, 100)]
    assert {note for note in trace.notes if "left out" in note} == {
        "1 row left out: asked for no device",
        "1 row left out: was never scheduled",
    }


def test_pai_folder_joins_jobs_and_tasks(tmp_path: Path) -> None:
    (tmp_path / "pai_job_table.csv").write_text(PAI_JOBS)
    (tmp_path / "pai_task_table.csv.gz").write_bytes(gzip.compress(PAI_TASKS.encode()))
    trace = read_trace(tmp_path, Reading(failures=True))
    assert trace.format == "pai"
    job = trace.jobs[0]
    # Three workers of one and a half devices each; from the first task's start to the last's end.
    assert (job.id, job.submit, job.seconds, job.devices) == ("j1", 100.0, 750.0, 6)
    assert (job.spec.user, job.fails_at) == ("alice", AT_THE_END)
    assert trace.notes == ("1 row left out: has a task without start or end",)
    assert read_trace(tmp_path, Reading(slots=2)).jobs[0].devices == 9


def test_pai_tasks_alone_are_submitted_when_they_start(tmp_path: Path) -> None:
    trace = read(tmp_path, PAI_TASKS)
    assert (trace.format, trace.jobs[0].submit) == ("pai", 150.0)
    assert trace.notes[0] == "without the job table, jobs are submitted when they start"


def test_pai_job_table_alone_is_not_enough(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give the folder that holds pai_job_table"):
        read(tmp_path, PAI_JOBS, format="pai")


def test_pai_simulator_input_counts_instances(tmp_path: Path) -> None:
    job = read(tmp_path, PAI_SIMULATOR).jobs[0]
    assert (job.submit, job.seconds, job.devices, job.spec.user) == (77, 300, 4, "carol")


def test_gaia_extracts_count_hours_or_seconds(tmp_path: Path) -> None:
    hours = read(tmp_path, GAIA)
    seconds = read(tmp_path, GAIA.replace("0.25", "68.0"))
    assert [(j.submit, j.seconds, j.devices) for j in hours.jobs] == [
        (0.0, 25.5 * 3600, 1), (900.0, 3600.0, 12),
    ]  # fmt: skip
    assert (hours.notes, seconds.notes) == (
        ("times are read as hours",), ("times are read as seconds",),
    )  # fmt: skip
    assert seconds.jobs[1].submit == 68.0


def test_sacct_counts_jobs_and_not_their_steps(tmp_path: Path) -> None:
    trace = read(tmp_path, SACCT, failures=True)
    assert trace.format == "sacct"
    assert [(j.id, j.submit, j.seconds, j.devices) for j in trace.jobs] == [
        ("17", 0.0, 90001.0, 4), ("19_7", 120.0, 600.0, 3),
    ]  # fmt: skip
    assert [(j.spec.user, j.spec.queue, j.fails_at) for j in trace.jobs] == [
        ("ann", "gpu", None), ("bob", "gpu", AT_THE_END),
    ]  # fmt: skip
    assert set(trace.notes) == {
        "1 row left out: steps of jobs",
        "1 row left out: ran for 0 seconds",
        "1 row left out: had not ended",
        "1 row left out: asked for no device",
    }


def test_sacct_needs_resources_and_times(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lacks AllocTRES or ReqTRES"):
        read(tmp_path, "JobID|State|Submit|Elapsed\n1|COMPLETED|2024-01-02T03:04:05|1:00\n")
    with pytest.raises(InputError, match="lacks ElapsedRaw, or Elapsed, or Start and End"):
        read(tmp_path, "JobID|State|Submit|AllocTRES\n1|COMPLETED|2024-01-02T03:04:05|gpu=1\n")


def test_synergy_has_no_header(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="counts iterations, not seconds"):
        read(tmp_path, SYNERGY)
    trace = read(tmp_path, SYNERGY, rates=Rates())
    assert [(j.id, j.submit, j.seconds, j.devices) for j in trace.jobs] == [
        ("0", 8, 750, 2), ("1", 126.5, 26435 / 2, 1),
    ]  # fmt: skip

"""The house policy's targets are judged as they are written, and runs are done once."""

from __future__ import annotations

from pathlib import Path

from bough.sim.reproduce.house import (
    JUDGES,
    Case,
    Result,
    measure,
    sized,
    sweep_of,
    with_effort,
)
from bough.sim.reproduce.housepage import page, summaries
from bough.sim.synthetic import Mix, generate


def small(best_effort: float = 0.0) -> Case:
    trace = generate(25, 16, 1.2, 0.7, 3, Mix(best_effort=best_effort))
    return Case("deadlines", "drawn", sweep_of(trace, "2x8xa100"), ("bough", "elasticflow"), (0,))


def quietly(share: float) -> None:
    """Nobody looks."""


def test_runs_are_done_once_and_judged(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    first = measure([small()], file, 1, quietly)
    assert [result.target for result in first] == [
        "deadline ratio >= ElasticFlow's", "promises kept, exact curves",
    ]  # fmt: skip
    assert first[1].held
    kept = file.read_bytes()
    assert measure([small()], file, 1, quietly) == first
    assert file.read_bytes() == kept


def test_peers_of_one_size_get_the_sizes_of_the_trace(tmp_path: Path) -> None:
    base = with_effort(small().common, 0.5, 0)
    every = sized("effort", "drawn", base, ("gandiva", "tiresias", "elasticflow"), (0,))
    assert [case.policies for case in every] == [
        ("bough", "gandiva", "elasticflow"), ("gandiva", "tiresias"),
    ]  # fmt: skip
    results = measure(every, tmp_path / "runs.jsonl", 1, quietly)
    assert [result.target for result in results] == [
        "best-effort JCT < best peer's, as published",
        "best-effort JCT < best peer's, Gandiva elastic",
    ]


def test_a_share_of_jobs_loses_its_deadlines() -> None:
    changed = with_effort(small().common, 0.4, 0).source
    assert sum(job.spec.deadline is None for job in changed.jobs) == 10  # type: ignore[union-attr]


def run(**numbers: float) -> dict[str, float]:
    return {
        "deadline_ratio_submitted": 0.9, "deadline_ratio_admitted": 1.0, "completed": 10,
        "best_effort_mean_jct_seconds": 100.0, "mean_jct_seconds": 100.0,
        "mean_jct_over_bound": 1.5, "worst_fairness": 2.0, "p99_fairness": 1.5,
        "most_of_a_budget": 1.0, **numbers,
    }  # fmt: skip


def test_every_target_is_missed_when_it_is() -> None:
    fine = {
        "deadlines": {"elasticflow": run()},
        "wrong": {"elasticflow": run()},
        "effort": {"tiresias in one size": run(best_effort_mean_jct_seconds=101.0)},
        "mean": {"las": run(mean_jct_seconds=96.0), "themis": run(mean_jct_seconds=50.0)},
        "carbon": {"powerflow": run(mean_jct_seconds=101.0)},
    }
    for target, peers in fine.items():
        assert all(result.held for result in JUDGES[target]("x", {"bough": run(), **peers}))
    bad = run(
        deadline_ratio_submitted=0.8, deadline_ratio_admitted=0.98, mean_jct_seconds=102.0,
        best_effort_mean_jct_seconds=102.0, worst_fairness=2.3, p99_fairness=1.7,
        most_of_a_budget=1.1,
    )  # fmt: skip
    for target, peers in fine.items():
        results = JUDGES[target]("x", {"bough": bad, **peers})
        assert not any(r.held for r in results if "lower bound" not in r.target)


def test_a_peer_that_did_not_finish_is_no_measure() -> None:
    """Whoever leaves the long jobs undone has a fine mean."""
    peers = {"las": run(mean_jct_seconds=10.0, completed=9), "afs": run(), "themis": run()}
    found = JUDGES["mean"]("x", {"bough": run(), **peers})
    assert found[0].whose == "afs"


def test_the_page_tells_the_worst_miss() -> None:
    target = "mean JCT <= 1.05 best"
    results = [
        Result(target, "here", 100.0, 100.0, "afs", held=True),
        Result(target, "there", 120.0, 100.0, "las", held=False),
        Result(target, "elsewhere", 110.0, 100.0, "las", held=False),
    ]
    (summary,) = summaries(results)
    assert (summary.held, summary.places, summary.worst.where) == (1, 3, "there")
    assert summaries(results[:1])[0].worst.where == "here"
    text = page(results)
    assert f"| {target} | 1 of 3 | there | 120 | 100 `las` | +20.0% |" in text
    assert text.count("missed |") == 2

"""Whole replays end the same whether or not the policy is asked while all are content."""

from __future__ import annotations

import msgspec
import pytest

from bough.core.cluster import parse_short
from bough.policies import find
from bough.sim.engine import Engine
from bough.sim.options import Failures, Options, Tools
from bough.sim.synthetic import generate

POLICIES = ("fifo", "fifo:skip=true", "backfill", "srtf", "srsf", "las", "max_min", "greedy")
ROUGH = Options(
    start_seconds=20.0, resize_seconds=10.0, park_seconds=5.0, damp_seconds=30.0,
    failures=Failures(node_mtbf_seconds=3e5, job_mtbf_seconds=1e6),
)  # fmt: skip


def replay(policy: str, load: float, options: Options, asks: bool) -> tuple[int, bytes]:
    """How many plans were made, and everything that became of the jobs."""
    engine = Engine(
        generate(250, 64, load, 0.5, 3), parse_short("8x8xa100"), find(policy), options, Tools()
    )
    brain = engine.scheduler
    brain.settings = msgspec.structs.replace(brain.settings, always_asks=asks)
    brain.state.content = False
    plans, decide = [], brain._decide

    def counted() -> None:
        plans.append(1)
        decide()

    brain._decide = counted  # type: ignore[method-assign]
    record = engine.run()
    return len(plans), msgspec.json.encode([(j.id, j.begin, j.end, j.sizes) for j in record.jobs])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("load", [0.3, 1.0])
@pytest.mark.parametrize("options", [Options(), ROUGH], ids=["smooth", "rough"])
def test_the_replay_is_the_same(policy: str, load: float, options: Options) -> None:
    fewer, found = replay(policy, load, options, asks=False)
    all_plans, expected = replay(policy, load, options, asks=True)
    assert found == expected
    assert fewer <= all_plans


def test_a_cluster_that_is_not_full_is_hardly_ever_planned_for() -> None:
    fewer, _ = replay("max_min", 0.3, Options(), asks=False)
    all_plans, _ = replay("max_min", 0.3, Options(), asks=True)
    assert fewer < all_plans / 2

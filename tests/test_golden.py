"""What simulations came to when it was last looked at: nothing changes without somebody noticing.

Small traces under every policy; kept are the commands, as a hash, and the numbers people compare.
After a change that is meant to change them, look at the differences, and then renew what is kept:

    BOUGH_RENEW_GOLDEN=1 .venv/bin/pytest tests/test_golden.py

The traces were made by `bough trace generate`; tests/golden/README.md says with which options.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.recorder import recorded

from bough.core.cluster import parse_short
from bough.core.model import Command, Ended, Queue
from bough.policies import builtin
from bough.sim.engine import encode_commands
from bough.sim.options import Failures, Options
from bough.sim.results import summarise
from bough.sim.trace import read_trace

FOLDER = Path(__file__).parent / "golden"
ANSWERS = FOLDER / "answers.json"
RENEW = "BOUGH_RENEW_GOLDEN"

#: Numbers are equal up to this: other machines add and take logarithms a little differently.
SAME = 1e-6
NUMBERS = (
    "completed", "failed", "unfinished", "mean_jct_seconds", "p99_jct_seconds", "makespan_seconds",
    "lower_bound_mean_jct_seconds", "mean_wait_seconds", "worst_fairness", "utilisation",
    "useful_utilisation", "fragmentation", "preemptions", "resizes", "migrations", "restarts",
    "lost_device_hours", "events", "decisions",
)  # fmt: skip

#: Trace -> cluster, and the world in which it is replayed.
WORLDS: dict[str, tuple[str, Options]] = {
    "rigid": ("4x8xv100", Options()),
    "elastic": ("4x8xv100", Options(start_seconds=60.0, resize_seconds=20.0, park_seconds=10.0)),
    "deadlines": (
        "2 racks of 2x4xv100 + 1 rack of 2x8xa100",
        Options(
            queues=(
                Queue(name="research", guarantee=8, half_life_seconds=7200.0),
                Queue(name="product", weight=2.0, limit=24),
            ),
            interference=0.1,
            damp_seconds=120.0,
        ),
    ),
    "rough": (
        "8x4xv100",
        Options(
            seed=7,
            speed_error=0.3,
            straggler_share=0.1,
            park_seconds=5.0,
            checkpoint_seconds=600.0,
            failures=Failures(
                node_mtbf_seconds=2e5,
                device_mtbf_seconds=1e6,
                device_repair_seconds=7200.0,
                job_mtbf_seconds=1e6,
            ),
        ),
    ),
}
#: Knobs other than usual: with slices as short as a start takes, nothing would ever get done.
KNOBS: dict[str, dict[str, Any]] = {"gandiva": {"slice_seconds": 900.0}}


def replayed(trace: str, policy: str) -> dict[str, Any]:
    """What is kept of one simulation."""
    cluster, options = WORLDS[trace]
    chosen = builtin()[policy](**KNOBS.get(policy, {}))
    record, brain = recorded(
        read_trace(FOLDER / f"{trace}.jsonl"), parse_short(cluster), chosen, options
    )
    digest = hashlib.sha256()
    for _, commands in brain.steps:
        digest.update(encode_commands(list(map(without_words, commands))))
    row = summarise(record) | {"decisions": len(brain.steps)}
    numbers = {name: row[name] for name in NUMBERS}
    return {"commands": digest.hexdigest()[:16], **numbers}


def without_words(command: Command) -> Command:
    """Sentences may be put better at any time."""
    return msgspec.structs.replace(command, reason="") if isinstance(command, Ended) else command


@cache
def answers() -> dict[str, Any]:
    """What is kept, by trace and policy."""
    found: dict[str, Any] = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return found


def is_same(kept: object, now: object) -> bool:
    """Equal, and numbers nearly so."""
    if isinstance(kept, float) and isinstance(now, float | int):
        return math.isclose(kept, now, rel_tol=SAME, abs_tol=SAME)
    return kept == now


@pytest.mark.parametrize("policy", sorted(builtin()))
@pytest.mark.parametrize("trace", WORLDS)
def test_simulations_come_to_what_they_came_to(trace: str, policy: str) -> None:
    now = replayed(trace, policy)
    if os.environ.get(RENEW):
        everything = answers() if ANSWERS.exists() else {}
        everything.setdefault(trace, {})[policy] = now
        ANSWERS.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
        answers.cache_clear()
        return
    kept = answers()[trace][policy]
    # Numbers first: that only the commands differ says less.
    differing = [name for name in (*NUMBERS, "commands") if not is_same(kept[name], now[name])]
    assert not differing, (
        f"{policy} on {trace}: {differing[0]} was {kept[differing[0]]}, is {now[differing[0]]} "
        f"(in all {len(differing)} differ); if that is meant, renew with {RENEW}=1 as told above"
    )


def test_nothing_is_kept_that_is_not_compared() -> None:
    assert set(answers()) == set(WORLDS)
    assert all(set(kept) == set(builtin()) for kept in answers().values())
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(WORLDS)


@pytest.mark.parametrize("trace", WORLDS)
def test_the_traces_stay_small(trace: str) -> None:
    assert (FOLDER / f"{trace}.jsonl").stat().st_size <= 30_000

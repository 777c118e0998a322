"""Every built-in policy keeps the contract, at its defaults and at other values of its knobs."""

from __future__ import annotations

import importlib
from pathlib import Path

from bough.policies import builtin
from bough.policies.afs import Afs
from bough.policies.backfill import Backfill
from bough.policies.bough import Bough
from bough.policies.chronus import Chronus
from bough.policies.dragon import Dragon
from bough.policies.drf import Drf
from bough.policies.edf import Edf
from bough.policies.fair import Fair
from bough.policies.fifo import Fifo
from bough.policies.gai import Gai
from bough.policies.gandiva import Gandiva
from bough.policies.greedy import Greedy
from bough.policies.hived import Hived
from bough.policies.las import Las
from bough.policies.lucid import Lucid
from bough.policies.max_min import MaxMin
from bough.policies.oasis import Oasis
from bough.policies.optimus import Optimus
from bough.policies.qssf import Qssf
from bough.policies.shockwave import Shockwave
from bough.policies.srsf import Srsf
from bough.policies.srtf import Srtf
from bough.policies.themis import Themis
from bough.policies.tiresias import Tiresias
from bough.testing.policies import PolicyContract


class TestAfs(PolicyContract):
    policies = (Afs(), Afs(blind=True))
    drifts = True


class TestBackfill(PolicyContract):
    policies = (Backfill(), Backfill(unknown_seconds=3600.0))
    at_wish = True


class TestBough(PolicyContract):
    policies = (Bough(), Bough(reserve=0.0, caution=2.0))
    drifts = True
    passes_over = True


class TestChronus(PolicyContract):
    policies = (Chronus(), Chronus(lease_seconds=1000.0, margin=0.2))
    at_wish = True
    passes_over = True
    drifts = True


class TestDragon(PolicyContract):
    policies = (Dragon(), Dragon(wait_seconds=1000.0, idle_seconds=1000.0))


class TestDragonOfTheFirstGeneration(PolicyContract):
    policies = (Dragon(generation=1), Dragon(generation=1, wait_seconds=0.0, idle_seconds=1.0))
    passes_over = True


class TestDrf(PolicyContract):
    policies = (Drf(), Drf(preempt=True))
    at_wish = True
    passes_over = True


class TestEdf(PolicyContract):
    policies = (Edf(), Edf(greedy=True), Edf(admission=True))
    passes_over = True


class TestFair(PolicyContract):
    policies = (Fair(), Fair(margin=0.5))


class TestFifo(PolicyContract):
    policies = (Fifo(),)
    at_wish = True


class TestFifoPassingOver(PolicyContract):
    policies = (Fifo(skip=True),)
    at_wish = True
    passes_over = True


class TestGai(PolicyContract):
    policies = (Gai(), Gai(promote_seconds=1.0, size_seconds=-600.0))
    passes_over = True
    drifts = True


class TestGandiva(PolicyContract):
    policies = (Gandiva(), Gandiva(slice_seconds=1000.0))
    passes_over = True


class TestGreedy(PolicyContract):
    policies = (Greedy(), Greedy(weighted=True))


class TestHived(PolicyContract):
    policies = (Hived(), Hived(node_devices=2))
    passes_over = True


class TestHivedWithoutSpill(PolicyContract):
    policies = (Hived(spill=False),)
    work_conserving = False


class TestLas(PolicyContract):
    policies = (Las(), Las(limits=(100.0, 3250.0, 7200.0)), Las(promote=2.0))
    at_wish = True
    passes_over = True


class TestLucid(PolicyContract):
    policies = (Lucid(), Lucid(trial_seconds=1e4, trial_share=0.5), Lucid(trial_devices=2))
    at_wish = True
    passes_over = True


class TestMaxMin(PolicyContract):
    policies = (MaxMin(), MaxMin(weighted=True))


class TestOasis(PolicyContract):
    policies = (Oasis(), Oasis(urgency=0.0, idle_price=1.0))
    passes_over = True
    drifts = True


class TestOptimus(PolicyContract):
    policies = (Optimus(), Optimus(interval_seconds=60.0))
    drifts = True


class TestQssf(PolicyContract):
    policies = (Qssf(), Qssf(estimates="given"))
    at_wish = True


class TestQssfPassingOver(PolicyContract):
    policies = (Qssf(skip=True),)
    at_wish = True
    passes_over = True


class TestShockwave(PolicyContract):
    policies = (Shockwave(), Shockwave(window_rounds=1, latest=2.0), Shockwave(round_seconds=1000))
    at_wish = True
    passes_over = True
    drifts = True


class TestSrsf(PolicyContract):
    policies = (Srsf(),)
    at_wish = True
    passes_over = True


class TestSrtf(PolicyContract):
    policies = (Srtf(),)
    at_wish = True
    passes_over = True


class TestThemis(PolicyContract):
    policies = (Themis(), Themis(fairness=0.0, exact_cells=100), Themis(lease_seconds=1000.0))
    passes_over = True
    drifts = True


class TestTiresias(PolicyContract):
    policies = (Tiresias(), Tiresias(rule="las", promote=2.0))
    at_wish = True
    passes_over = True
    drifts = True


def test_every_policy_is_tested() -> None:
    """Here or in a file of its own."""
    for file in Path(__file__).parent.glob("test_*.py"):
        importlib.import_module(f"tests.policies.{file.stem}")
    tested = {type(p) for kit in PolicyContract.__subclasses__() for p in kit.policies}
    assert set(builtin().values()) <= tested

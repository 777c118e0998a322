"""Why a job is where it is: the right word, true numbers, one good sentence, remedies that work."""

from __future__ import annotations

import re

import msgspec
import pytest
from tests.core.stories import STORIES, cluster

from bough.core import model as m
from bough.core.reason import CODES, Reason


def reason_of(name: str) -> Reason:
    return STORIES[name]().why("it")


# ------------------------------------------------------------------- what holds for all of them


@pytest.mark.parametrize("name", STORIES)
def test_the_reason_has_the_right_word(name: str) -> None:
    code = reason_of(name).code
    assert name == code or re.match(rf"{code}-(behind|of|in)-", name)


def test_every_code_of_waiting_has_its_story() -> None:
    told = {reason_of(name).code for name in STORIES}
    assert set(CODES) - told == {"none"}


@pytest.mark.parametrize("name", STORIES)
def test_the_reason_is_one_good_sentence(name: str) -> None:
    text = reason_of(name).text
    assert text.endswith(".")
    assert text[0].isupper()
    assert "  " not in text
    assert not re.search(r"\b1 (?:[a-z0-9]+ )?(?:devices|jobs|nodes|CPUs are|seconds)\b", text)
    assert not re.search(r"\b(?:0|[2-9]|\d\d+) (?:[a-z0-9]+ )?(?:device|job|node)\b", text)
    assert not re.search(r"(?<!of )\b(?:1 (?:of \d+ )?are|(?:0|[2-9]) (?:of \d+ )?is)\b", text)
    assert not re.search(r"only ;|\b0 jobs|\(0 CPUs|nan|None|inf\b|[{}]", text)


@pytest.mark.parametrize("name", STORIES)
def test_the_numbers_are_those_of_the_state(name: str) -> None:
    driver = STORIES[name]()
    reason, state = driver.why("it"), driver.scheduler.state
    job = state.jobs.get("it")
    tree = state.topology
    if job is None or "free" not in reason.facts:
        return
    pool = tree.kinds.index(str(reason.facts["kind"]))
    held = sum(other.place != () for other in state.jobs.values())
    assert reason.facts["needs"] == job.spec.sizes()[0]
    assert reason.facts["free"] == sum(
        mask.bit_count() for i, mask in enumerate(tree.free_masks) if tree.pools[i] == pool
    )
    largest = max(mask.bit_count() for mask in tree.free_masks)
    assert reason.facts["largest_block"] == largest
    assert 0 <= int(reason.facts["ahead"]) <= len(state.jobs) - 1 - held


@pytest.mark.parametrize("name", STORIES)
def test_numbers_of_the_sentence_are_among_the_facts(name: str) -> None:
    reason = reason_of(name)
    names = r"\bn\d+\b|\b[ha]100\b|\bcode 3\b|\b\d+(?:ms|[smhd])+\b|\b3 CPUs\b"
    told = re.findall(r"\b\d+\b", re.sub(names, "", reason.text))
    assert {float(n) for n in told} <= {
        float(v) for v in reason.facts.values() if isinstance(v, int | float)
    }


# -------------------------------------------------------------------------------- one by one


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("busy", "It needs 2 gpu devices and 1 of 4 is free."),
        (
            "busy-behind-another",
            "It needs 1 gpu device and 0 of 4 are free; 1 job submitted earlier waits too.",
        ),
        ("too-big", "It needs 5 gpu devices; the cluster has 4 in working order."),
        ("paused", "Queue q is paused."),
        ("budget", "Queue q has used up its budget."),
        ("dependency", "It waits for earlier, later to end."),
        ("kind", "It accepts only h100, a100; the cluster has gpu."),
        ("kind-in-an-empty-cluster", "The cluster has no devices."),
        ("running", "It runs on 1 device of n0."),
        ("stopping", "It is being stopped: cancelled."),
        ("done", "It finished its work."),
        ("failed", "It failed: exit code 3."),
        ("too-late", "It cannot be done by its deadline."),
        ("unknown", "No job is called it."),
    ],
)
def test_the_sentence(name: str, text: str) -> None:
    assert reason_of(name).text == text


def test_a_sentence_names_who_took_the_devices() -> None:
    reason = reason_of("preempted")
    assert reason.facts["by"] == "important"
    assert "Job important, of higher priority, took its devices" in reason.text


def test_a_sentence_says_since_when_a_job_is_parked() -> None:
    reason = reason_of("parked")
    assert reason.facts["waited_seconds"] == 60.0
    assert "parked 1m ago" in reason.text


def test_a_quota_names_the_queue_and_what_it_may_have() -> None:
    reason = reason_of("quota")
    assert reason.facts["queue"] == "q"
    assert (reason.facts["queue_uses"], reason.facts["allowed"]) == (1, 1)
    assert "queue q may use 1" in reason.text


def test_a_deadline_is_told_in_seconds_from_now() -> None:
    assert reason_of("deadline").facts["deadline_in_seconds"] == 70.0


def test_a_rejection_carries_what_the_policy_said() -> None:
    assert reason_of("too-late") == Reason(
        code="too-late",
        facts={"late_seconds": 60.0},
        text="It cannot be done by its deadline.",
        remedy="Ask for an hour more",
    )


def test_a_queue_above_that_is_paused_is_named() -> None:
    queues = [m.Queue(name="top", paused=True), m.Queue(name="q", parent="top")]
    driver = cluster(queues=queues)
    driver.submit("it", 1, queue="q")
    assert driver.why("it").text == "Queue top is paused."


def test_a_job_held_back_by_the_share_of_its_queue_says_so() -> None:
    driver = cluster("fifo", 8, queues=[m.Queue(name="a"), m.Queue(name="b")])
    driver.submit("x", 4, queue="a")
    driver.submit("y", 4, queue="b")
    driver.settle()
    driver.submit("it", 2, queue="a")
    reason = driver.why("it")
    assert reason.code == "quota"
    assert reason.facts["rule"] == "share"
    assert reason.facts["allowed"] == 4


def test_asking_why_changes_nothing() -> None:
    for tell in STORIES.values():
        driver = tell()
        before = driver.scheduler.to_bytes()
        first = driver.why("it")
        assert driver.why("it") == first
        assert driver.scheduler.to_bytes() == before


# ---------------------------------------------------------------------------------- remedies


def changed(spec: m.JobSpec, remedy: str) -> m.JobSpec:
    """The job after the advice was followed."""
    replace = msgspec.structs.replace
    if found := re.match(r"Accept (\d+) devices?\b", remedy):
        devices = m.Range(min=int(found[1]), max=spec.devices.max, steps=spec.devices.sizes())
        return replace(spec, devices=devices)
    if found := re.match(r"Accept (\w+) too", remedy):
        return replace(spec, kinds=(*spec.kinds, found[1]))
    if found := re.match(r"Submit it to queue (\w+)", remedy):
        return replace(spec, queue=found[1])
    if found := re.match(r"Ask for only ([\d.]+) CPUs", remedy):
        return replace(spec, cpus=float(found[1]))
    assert remedy.startswith("Ask for `prefer`"), remedy
    return replace(spec, topology=m.Wish(mode="prefer", level=spec.topology.level))


ADVISED = {
    "busy-of-elastic": "Accept 1 device, and it starts now",
    "fragmentation-of-elastic": "Accept 1 device, and it starts now",
    "resources": "Ask for only 1.5 CPUs with each device, and it starts now",
    "quota": "Submit it to queue default, and it starts now",
    "paused": "Submit it to queue default, and it starts now",
    "budget": "Submit it to queue default, and it starts now",
    "kind": "Accept gpu too, and it starts now",
    "too-big": "Accept 4 devices, and it starts now",
}


@pytest.mark.parametrize("name", ADVISED)
def test_a_remedy_is_named_and_works(name: str) -> None:
    driver = STORIES[name]()
    remedy = driver.why("it").remedy
    assert remedy == ADVISED[name]
    spec = changed(driver.scheduler.state.jobs["it"].spec, remedy)
    driver.cancel("it")
    [start] = driver.submit_spec("again", spec)
    assert isinstance(start, m.Start)


@pytest.mark.parametrize("name", ["running", "moving", "done", "failed", "unknown", "dependency"])
def test_where_nothing_is_to_be_done_nothing_is_advised(name: str) -> None:
    assert reason_of(name).remedy == ""


def test_letting_a_held_job_go_on_starts_it() -> None:
    driver = STORIES["held"]()
    assert driver.why("it").remedy == "Let it go on"
    assert [c.id for c in driver.release("it")] == ["it"]


def test_nothing_is_advised_that_the_one_at_the_head_would_prevent() -> None:
    driver = cluster()
    driver.submit("other", 3)
    driver.submit("earlier", 4)
    driver.settle()
    driver.submit("it", 2)
    assert driver.why("it").remedy == "", "fifo passes over nobody, however small"

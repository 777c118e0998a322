"""A policy is found by what people type, or they are told what they could have typed."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

import bough.policies
from bough.core.policy import Policy
from bough.policies import builtin, find, parse
from bough.policies.edf import Edf
from bough.policies.elasticflow import ElasticFlow
from bough.policies.fifo import Fifo
from bough.policies.las import Las
from bough.policies.max_min import MaxMin


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("fifo", Fifo()),
        (" FIFO ", Fifo()),
        ("max-min", MaxMin()),
        ("las", Las()),
        ("las(limits=[3250,7200])", Las(limits=(3250.0, 7200.0))),
        ("las(limits=[3250, 7200], promote=8)", Las(limits=(3250.0, 7200.0), promote=8.0)),
        ("las:promote=inf", Las()),
        ("edf:greedy=true", Edf(greedy=True)),
        ("fifo()", Fifo()),
        ("edf+admission", Edf(admission=True)),
        ("EDF+elastic", ElasticFlow(admission=False)),
    ],
)
def test_names_and_knobs(text: str, policy: Policy) -> None:
    assert find(text) == policy


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lass", "unknown policy 'lass'; did you mean 'las'?"),
        ("las(limit=[3])", "policy 'las' has no knob 'limit'; did you mean 'limits'?"),
        ("srtf(x=1)", "policy 'srtf' has no knob 'x'; it has none"),
        ("las(limits=3)", "policy 'las': limits: expected array, got int"),
        ("las(limits=[2,1])", "policy 'las': limits [2.0, 1.0] must be positive and ascending"),
        ("las(limits=[])", "policy 'las': there must be 1 to 100 limits"),
        ("las(promote=-1)", "policy 'las': promote must be positive"),
        ("fifo(skip=maybe)", "policy 'fifo': skip: expected bool, got str"),
        ("fifo(skip)", "policy 'fifo': 'skip' is no knob=value"),
        ("fifo(=1)", "policy 'fifo': '=1' is no knob=value"),
        ("", "'' is no policy: write NAME, NAME(knob=value) or NAME:knob=value"),
        ("a b", "'a b' is no policy: write NAME, NAME(knob=value) or NAME:knob=value"),
    ],
)
def test_mistakes_are_told_in_one_line(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as told:
        find(text)
    assert str(told.value) == says


def test_knobs_are_read_as_people_write_them() -> None:
    assert parse("p(a=1.5, b=[1, 2], c=word, d=none)") == (
        "p",
        {"a": 1.5, "b": [1, 2], "c": "word", "d": None},
    )


def test_built_in_policies_say_where_they_come_from() -> None:
    for name, policy in builtin().items():
        text = policy.__doc__ or ""
        assert "Citation:" in text, name
        assert "Faithful:" in text, name


def test_others_come_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "mine": EntryPoint("mine", "bough.policies.fifo:Fifo", "bough.policies"),
        "broken": EntryPoint("broken", "bough.policies.fifo:in_order", "bough.policies"),
    }
    monkeypatch.setattr(bough.policies, "_others", lambda: points)
    assert find("mine(skip=true)") == Fifo(skip=True)
    with pytest.raises(ValueError, match="is not a bough Policy"):
        find("broken")
    with pytest.raises(ValueError, match="did you mean 'mine'"):
        find("mime")

"""`bough policies` says what the classes say, and how to write what it names."""

from __future__ import annotations

import json

import pytest

from bough.cli import main
from bough.cli.policies import knobs
from bough.policies import builtin, find


def test_every_policy_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in builtin() if f"{name} " not in shown] == []


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == sorted(builtin())
    assert all(row["summary"] for row in rows)


@pytest.mark.parametrize("name", sorted(builtin()))
def test_one_is_shown_with_its_knobs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "show", name]) == 0
    shown = capsys.readouterr().out
    for knob in knobs(builtin()[name]):
        assert f"  {knob.name}: {knob.type} = {knob.default}" in shown
        assert knob.meaning


@pytest.mark.parametrize("name", sorted(builtin()))
def test_the_example_can_be_used(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "show", name]) == 0
    shown = capsys.readouterr().out
    example = shown.partition("--policy '")[2].partition("'")[0]
    assert isinstance(find(example), builtin()[name])


def test_a_mistyped_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "show", "fiffo"]) == 2
    assert capsys.readouterr().err == "bough: unknown policy 'fiffo'; did you mean 'fifo'?\n"

"""Queue files: nested or flat, and the one line each mistake is answered with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.writings import ROOT, damaged, one_line_or_fine, texts, trees, why, yaml_blocks

from bough.core.model import Queue
from bough.core.queues import QueueTree
from bough.errors import InputError
from bough.queuefile import DEPTH_MAX, FIELDS, parse_queues, read_queues

EXAMPLE = ROOT / "examples" / "queues.yaml"


def queues(text: str) -> tuple[Queue, ...]:
    return parse_queues(text, "q.yaml")


def planted(found: tuple[Queue, ...]) -> QueueTree:
    """The tree made of what was read: it must find nothing wrong."""
    tree = QueueTree()
    for queue in found:
        tree.set(queue)
    return tree


# ------------------------------------------------------------------------------- good forms


def test_nested_and_flat_are_the_same() -> None:
    nested = queues("queues:\n  a: {weight: 2, queues: {b: {limit: 4}, c: }}\n  d: {}")
    flat = queues("- {name: a, weight: 2}\n- {name: b, parent: a, limit: 4}\n"
                  "- {name: c, parent: a}\n- name: d")  # fmt: skip
    listed = queues("queues:\n- {name: a, weight: 2, queues: [{name: b, limit: 4}, {name: c}]}\n"
                    "- {name: d}")  # fmt: skip
    assert nested == flat == listed == (
        Queue(name="a", weight=2),
        Queue(name="b", parent="a", limit=4),
        Queue(name="c", parent="a"),
        Queue(name="d"),
    )  # fmt: skip


def test_every_field() -> None:
    (found,) = queues(
        "- {name: a, guarantee: 4, limit: 8, weight: 0.5, borrow: no, kind_limits: {H100: 2},"
        " half_life: 7d, budget_device_hours: 1e3, paused: yes, dominant: yes}"
    )
    assert found == Queue(
        name="a", guarantee=4, limit=8, weight=0.5, borrow=False, kind_limits={"h100": 2},
        half_life_seconds=604_800, budget_device_hours=1000, paused=True, dominant=True,
    )  # fmt: skip


def test_parents_come_before_children() -> None:
    found = queues("- {name: c, parent: b}\n- {name: b, parent: a}\n- {name: a}\n- {name: d}")
    assert [queue.name for queue in found] == ["a", "b", "c", "d"]


def test_the_default_queue_is_always_there() -> None:
    assert planted(queues("- {name: a, parent: default}")).names == ["default", "a"]
    found = queues("- {name: a, parent: default}\n- {name: default, limit: 4}")
    assert [queue.name for queue in found] == ["default", "a"]


def test_the_example() -> None:
    found = read_queues(EXAMPLE)
    assert [q.name for q in found] == ["production", "research", "vision", "language", "students"]
    planted(found)


# --------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "q.yaml: has no queues (write queues: and a name below it)"),
        ("- {name: a}\n---\n- {name: b}",
         "q.yaml: has more than one document (write queues: and a name below it)"),
        ("a: {}", "q.yaml:1: no field is called 'a' (one of: queues)"),
        ("queues: ", "q.yaml:1: queues is missing"),
        ("queues: {}", "q.yaml:1: queues: has no queues (write a name below it)"),
        ("queues: a", "q.yaml:1: queues: must be queues: names with fields below, or a list"),
        ("queues: {a: 3}", "q.yaml:1: queues.a: must be fields with names, not the text '3'"),
        ("queues: {a: {limt: 3}}",
         "q.yaml:1: queues.a: no field is called 'limt' (did you mean 'limit'?)"),
        ("queues: {a: {name: b}}",
         "q.yaml:1: queues.a: no field is called 'name' (one of: borrow, budget_device_hours, "
         "dominant, guarantee, half_life, kind_limits, limit, parent, paused, queues, weight)"),
        ("- {parent: a}", "q.yaml:1: name is missing"),
        ("- {name: a}\n- {name: a}", "q.yaml:2: a queue called 'a' stands on line 1 already"),
        ("queues:\n  a:\n    queues: {a: }",
         "q.yaml:3: queues.a.queues.a: a queue called 'a' stands on line 3 already"),
        ("- {name: reserch}\n- {name: b, parent: research}",
         "q.yaml:2: parent: no queue is called 'research' (did you mean 'reserch'?)"),
        ("- {name: a, parent: b}\n- {name: b, parent: c}\n- {name: c, parent: b}",
         "q.yaml:2: parent: queues form a circle: b in c in b"),
        ("- {name: a, parent: a}", "q.yaml:1: parent: queues form a circle: a in a"),
        ("queues: {a: {queues: {b: {parent: c}}}, c: }",
         "q.yaml:1: queues.a.queues.b.parent: contradicts that it is written below 'a'"),
        ("- {name: a, guarantee: -1}",
         "q.yaml:1: guarantee: '-1' must be a whole number from 0 to 1000000000"),
        ("- {name: a, weight: 0}", "q.yaml:1: weight: '0' must be a number above 0"),
        ("- {name: a, weight: .nan}", "q.yaml:1: weight: '.nan' must be a number above 0"),
        ("- {name: a, half_life: week}", "q.yaml:1: half_life: 'week' is not a duration; write it "
         "like 90s, 2h30m, 1d12h or 2:30:00"),
        ("- {name: a, kind_limits: {h100: x}}",
         "q.yaml:1: kind_limits.h100: 'x' must be a whole number from 0 to 1000000000"),
        ("- {name: a, borrow: 2}", "q.yaml:1: borrow: '2' must be true or false"),
        ("queues: {a: {guarantee: 4, queues: {b: {guarantee: 3}, c: {guarantee: 2}}}}",
         "q.yaml:1: queues.a.guarantee: 4 devices are less than the 5 guaranteed to queues below"),
        ("queues: {a: {limit: 4, queues: {b: {guarantee: 3}, c: {guarantee: 2}}}}",
         "q.yaml:1: queues.a.limit: 4 devices are less than the 5 that are guaranteed"),
        ("\n".join(f"- {{name: q{i}, parent: q{i + 1}}}" for i in range(50)) + "\n- {name: q50}",
         f"q.yaml:21: parent: is more than {DEPTH_MAX} queues below the root"),
    ],
)  # fmt: skip
def test_mistakes(text: str, message: str) -> None:
    assert why(queues, text) == message


# ---------------------------------------------------------------------- documentation and fuzz


@pytest.mark.parametrize("block", yaml_blocks("queue-file.md"))
def test_examples_of_the_documentation(block: str) -> None:
    planted(queues(block))


def test_every_field_has_an_example() -> None:
    text = "\n".join(yaml_blocks("queue-file.md"))
    assert [name for name in FIELDS if f"{name}:" not in text] == []


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 6), st.none() | st.integers(0, 12)),
        max_size=8,
    )
)
def test_what_is_accepted_the_tree_accepts_and_what_is_refused_it_refuses(
    rows: list[tuple[int, int, int | None]],
) -> None:
    """Flat lists of queues with random parents, guarantees and limits."""
    lines = []
    for index, (parent, guarantee, limit) in enumerate(rows):
        up = f"q{parent}" if parent < 8 else "null"
        lines.append(
            f"- {{name: q{index}, parent: {up}, guarantee: {guarantee}, "
            f"limit: {'null' if limit is None else limit}}}"
        )
    text = "\n".join(lines)
    try:
        found = queues(text)
    except InputError as error:
        message = str(error)
        refused = ("no queue is called", "circle", "devices are less than", "has no queues")
        assert any(word in message for word in refused)
        return
    planted(found)


@given(st.one_of(texts(), trees((*FIELDS, "name")), trees(FIELDS).map("queues: {}".format)))
def test_whatever_is_written_is_read_or_refused_in_one_line(text: str) -> None:
    one_line_or_fine(lambda written: planted(queues(written)), text)


@given(damaged([*yaml_blocks("queue-file.md"), EXAMPLE.read_text("utf-8")]))
def test_damaged_files_are_read_or_refused_in_one_line(text: str) -> None:
    one_line_or_fine(lambda written: planted(queues(written)), text)

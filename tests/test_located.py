"""YAML and JSON with places: what is read is what was written, and errors say where."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.writings import one_line_or_fine, texts, why

from bough.located import (
    BYTES_MAX,
    DEPTH_MAX,
    NODES_MAX,
    Field,
    near,
    parse_documents,
    read_documents,
)


def one(text: str) -> Field:
    (document,) = parse_documents(text, "f.yaml")
    return document


def said(text: str) -> str:
    return why(lambda written: parse_documents(written, "f.yaml"), text)


def plain(field: Field) -> object:
    """What a field holds, without places."""
    if field.is_mapping:
        return {name: plain(value) for name, value in field.entries().items()}
    if field.is_list:
        return [plain(item) for item in field.items()]
    return None if field.empty else field.text()


def test_scalars_stay_what_was_written() -> None:
    text = "a: 18:00\non: no\nb: 2..8\nc: 0x10\nd: '~'\ne: ~\nf: 2026-11-20"
    assert plain(one(text)) == {
        "a": "18:00", "on": "no", "b": "2..8", "c": "0x10", "d": "~", "e": None, "f": "2026-11-20",
    }  # fmt: skip


def test_every_value_knows_its_line_and_path() -> None:
    found = one("a: 1\nb:\n  - x\n  - c: 2\n")
    item = found.entries()["b"].items()[1].entries()["c"]
    assert (item.node.line, item.path) == (4, "b[1].c")
    assert str(item.error("is odd", "even ones only")) == (
        "f.yaml:4: b[1].c: is odd (even ones only)"
    )


def test_documents_that_hold_nothing_are_left_out() -> None:
    assert [plain(d) for d in parse_documents("---\n---\na: 1\n---\n~\n...\n")] == [{"a": "1"}]
    assert parse_documents("# only a remark\n") == []


def test_merged_fields_give_way_to_written_ones() -> None:
    text = "- &x {a: 1, b: 2}\n- &y {c: 3}\n- {b: 4, <<: [*x, *y]}\n- <<: *x\n  d: 5"
    assert plain(one(text)) == [
        {"a": "1", "b": "2"},
        {"c": "3"},
        {"c": "3", "a": "1", "b": "4"},
        {"a": "1", "b": "2", "d": "5"},
    ]


@given(
    st.recursive(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.text("abc \U0001f600", max_size=4), inner, max_size=3),
        ),
        max_leaves=8,
    )
)
def test_json_is_read_like_json(tree: object) -> None:
    """Also its escapes, which YAML knows in part only."""
    assert [plain(d) for d in parse_documents(json.dumps([tree]))] == [[tree]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "f.yaml:2: the field 'a' is written twice"),
        ("a: 1\n\tb: 2", "f.yaml:2: is indented by a tab (use spaces)"),
        ("a: @b", "f.yaml:1: a value cannot begin with '@' (put it in quotes)"),
        (
            "run: python a: b",
            "f.yaml:1: has a second ':' where no field begins "
            "(a value with ': ' in it needs quotes)",
        ),
        ("a: [1\nb: 2", "f.yaml:2: is not YAML: did not find expected ',' or ']'"),
        ("a: 'b", "f.yaml:1: is not YAML: found unexpected end of stream"),
        ("a: !!set b", "f.yaml:1: the tag 'tag:yaml.org,2002:set' means nothing here"),
        ("a: \x00", "f.yaml:1: has the unreadable character '\\x00'"),
        ("a: 1\nb: \ud800", "f.yaml:2: has the unreadable character '\\ud800'"),
        ("? [a]\n: b", "f.yaml:1: a field's name must be text"),
        ("a: *b", "f.yaml:1: no value above is marked &b"),
        ("a: &a [*a]", "f.yaml:1: no value above is marked &a"),
        ("<<: 3", "f.yaml:1: '<<' takes the fields of another mapping"),
        ("[" * 5000, f"f.yaml:1: is nested deeper than {DEPTH_MAX} levels"),
        ("- " * 5000, f"f.yaml:1: is nested deeper than {DEPTH_MAX} levels"),
        (" " * (BYTES_MAX + 1), "f.yaml: is larger than 16 MiB"),
    ],
)  # fmt: skip
def test_texts_that_are_no_yaml(text: str, message: str) -> None:
    assert said(text) == message


def test_aliases_cannot_blow_up() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
    assert said("\n".join(rows)) == "f.yaml:6: grows too large through its aliases"
    chain = "\n".join(["a0: &a0 x"] + [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 100)])
    assert said(chain) == f"f.yaml:{DEPTH_MAX}: grows too large through its aliases"


@pytest.mark.parametrize(
    "text", ["[" * 10**6, "{a: " * 10**5, "? " * 10**5, "&a " * 10**5, "- a\n" * 10**5]
)
def test_large_nonsense_is_refused_soon(text: str) -> None:  # fmt: skip
    started = time.process_time()
    one_line_or_fine(parse_documents, text)
    assert time.process_time() - started < 5


def test_too_many_values() -> None:
    assert (
        said("a: [" + "," * 10 + "]") == "f.yaml:1: is not YAML: did not find expected node content"
    )
    assert said("[" + "1," * NODES_MAX + "]") == f"f.yaml:1: has more than {NODES_MAX} values"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"a: 1\nb: \xe9\n")
    assert why(read_documents, str(latin)) == f"{latin}:2: is not UTF-8 text"
    assert why(read_documents, str(tmp_path / "none")) == (
        f"{tmp_path / 'none'}: cannot be read: No such file or directory"
    )
    assert why(read_documents, str(tmp_path)) == f"{tmp_path}: cannot be read: Is a directory"
    assert why(read_documents, "a\0b") == "'a\\x00b': cannot be read: embedded null byte"


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    marked = tmp_path / "marked.yaml"
    marked.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert [plain(d) for d in read_documents(marked)] == [{"a": "1", "b": "2"}]


def test_readers_of_single_values() -> None:
    found = one("{a: ' x ', b: 12, c: -1.5e3, d: YES, e: [p, q], f: 'p, q', g: off}").entries()
    assert found["a"].label() == "x"
    assert found["b"].whole() == 12
    assert found["c"].number(-1e9) == -1500
    assert (found["d"].flag(), found["g"].flag()) == (True, False)
    assert found["e"].labels() == found["f"].labels() == ["p", "q"]
    assert found["b"].choice(("12", "13")) == "12"


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        ("label", "''", "must be one line of 1 to 200 printable characters"),
        ("label", '"a\\nb"', "must be one line of 1 to 200 printable characters"),
        ("label", "{a: 1}", "must be a single value, not fields with names"),
        ("labels", "a,,b", "each name must be one line of 1 to 200 printable characters"),
        ("labels", "[a, b, a]", "names 'a' twice"),
        ("flag", "maybe", "'maybe' must be true or false"),
        ("whole", "1.5", "'1.5' must be a whole number from 0 to 1000000000"),
        ("whole", "-1", "'-1' must be a whole number from 0 to 1000000000"),
        ("number", ".nan", "'.nan' must be a number of at least 0"),
        ("number", "1e999", "'1e999' must be a number of at least 0"),
        ("number", "1.2.3", "'1.2.3' must be a number of at least 0"),
        ("text", "[1]", "must be a single value, not a list"),
        ("entries", "[1]", "must be fields with names, not a list"),
        ("entries", "''", "must be fields with names, not the text ''"),
    ],
)
def test_values_that_are_not_what_they_should_be(read: str, text: str, message: str) -> None:
    field = one(f"x: {text}").entries()["x"]
    assert why(lambda _: getattr(field, read)(), "") == f"f.yaml:1: x: {message}"


def test_names_that_do_not_exist_are_told_with_the_nearest() -> None:
    document = one("devicse: 1")
    assert why(lambda _: document.fields(("devices", "name")), "") == (
        "f.yaml:1: no field is called 'devicse' (did you mean 'devices'?)"
    )
    assert why(lambda _: document.fields(("devicse", "name"), required=["name"]), "") == (
        "f.yaml:1: name is missing"
    )
    assert near("x", (f"name-{i}" for i in range(1000))) is None


@given(texts())
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    one_line_or_fine(lambda written: [plain(d) for d in parse_documents(written)], text)

"""Things people could write into a file: random texts, random trees, and good files gone wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from pathlib import Path

from hypothesis import strategies as st

from bough.errors import InputError

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)

#: Letters and marks that mean something in YAML or in our units, and a few that must not.
MARKS = st.sampled_from(
    [*"{}[]:,-#&*!|>'\"%@`?\n\t \\", *"0123456789.+", *"abnz~<", "é", "\x00", "\ud800", "\u2028",
     ": ", "\n  ", "- ", "---\n", "<<: ", "&a ", "*a", "1e9", ".inf", "null", "2..8", "\x85"]
)  # fmt: skip


def yaml_blocks(page: str) -> list[str]:
    """The YAML of a page of the documentation, block by block."""
    return BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


def texts() -> st.SearchStrategy[str]:
    """Any text, rather often one that looks like YAML."""
    return st.one_of(st.lists(MARKS, max_size=40).map("".join), st.text(max_size=60))


def trees(names: Collection[str]) -> st.SearchStrategy[str]:
    """A random tree as JSON (which is YAML) that uses the names of real fields."""
    words = st.sampled_from([*names, "a", "", "4", "2..8", "0-3", "1h", "node", "rack", "10GiB"])
    leaves = st.one_of(
        words, st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)
    )
    values = st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(words, inner, max_size=4)
        ),
        max_leaves=12,
    )
    return st.dictionaries(words, values, max_size=6).map(json.dumps)


@st.composite
def damaged(draw: st.DrawFn, good: Collection[str]) -> str:
    """A good file in which something was cut, doubled, moved or put in."""
    text = draw(st.sampled_from(sorted(good)))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 20)))
        put = draw(st.one_of(st.just(""), MARKS, st.just(text[start:end] * 2)))
        text = text[:start] + put + text[end:]
    return text


def one_line_or_fine(
    read: Callable[[str], object], text: str, refusal: type[Exception] = InputError
) -> None:
    """Reading either works or says in one line what is wrong."""
    try:
        read(text)
    except refusal as error:
        message = str(error)
        assert message.isprintable(), message
        assert len(message) < 1000, message


def why(read: Callable[[str], object], text: str) -> str:
    """The one line that is said about a bad text."""
    try:
        read(text)
    except InputError as error:
        return str(error)
    raise AssertionError(f"was taken for good: {text!r}")

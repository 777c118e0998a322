"""The house rules a linter does not know: sizes, names, and why each file exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for room in ("src", "tests", "bench", "docs")
    for path in (ROOT / room).rglob("*.py")
)
SOURCES = [file for file in FILES if file.startswith("src/")]

FILE_LINES_AIM, FILE_LINES_MAX = 400, 600
FUNCTION_LINES_AIM, FUNCTION_LINES_MAX = 40, 70

#: Files longer than the aim, and how long each may be. A file that became short again must go.
LONG_FILES: dict[str, int] = {}
LONG_FILES_MAX = 6
#: The same for functions, as "file::Class.function".
LONG_FUNCTIONS: dict[str, int] = {"src/bough/core/topology.py::Topology.find": 45}
LONG_FUNCTIONS_MAX = 12

#: Names that say nothing about what is inside.
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~}-])/(?:work|tmp|root|home|Users|mnt|scratch)/")


@cache
def text_of(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def tree_of(file: str) -> ast.Module:
    return ast.parse(text_of(file), filename=file)


def functions_of(node: ast.AST, owner: str = "") -> Iterator[tuple[str, int]]:
    """Every function with its qualified name and its length, decorators left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            assert child.end_lineno is not None
            yield owner + child.name, child.end_lineno - child.lineno + 1
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from functions_of(child, f"{owner}{child.name}." if named else owner)


def over(lengths: dict[str, int], aim: int, hard_stop: int, allowed: dict[str, int]) -> list[str]:
    """What is wrong with these lengths, given those that are allowed to pass the aim."""
    wrong = [
        f"{name}: {length} lines, limit {min(allowed.get(name, aim), hard_stop)}"
        for name, length in lengths.items()
        if length > min(allowed.get(name, aim), hard_stop)
    ]
    stale = [
        f"{name}: no longer over {aim} lines, take it off the list"
        for name in allowed
        if lengths.get(name, 0) <= aim
    ]
    return wrong + stale


def test_files_are_short() -> None:
    lengths = {file: len(text_of(file).splitlines()) for file in FILES}
    assert over(lengths, FILE_LINES_AIM, FILE_LINES_MAX, LONG_FILES) == []
    assert len(LONG_FILES) <= LONG_FILES_MAX


def test_functions_are_short() -> None:
    lengths = {
        f"{file}::{name}": length for file in FILES for name, length in functions_of(tree_of(file))
    }
    assert over(lengths, FUNCTION_LINES_AIM, FUNCTION_LINES_MAX, LONG_FUNCTIONS) == []
    assert len(LONG_FUNCTIONS) <= LONG_FUNCTIONS_MAX


def test_names_say_what_is_inside() -> None:
    assert [file for file in FILES if VAGUE_NAMES & set(Path(file).with_suffix("").parts)] == []


@pytest.mark.parametrize("file", FILES)
def test_first_line_says_why_the_file_exists(file: str) -> None:
    docstring = ast.get_docstring(tree_of(file))
    assert docstring, "a module starts with a docstring that says why it exists"
    first_line = docstring.splitlines()[0]
    assert len(first_line) >= 20, f"says too little: {first_line!r}"
    assert first_line[-1] in ".:;,", f"is no sentence: {first_line!r}"


def test_nothing_is_left_for_later() -> None:
    assert [file for file in FILES if UNFINISHED.search(text_of(file))] == []


def test_no_path_of_one_machine() -> None:
    found = {file: MACHINE_PATH.findall(text_of(file)) for file in SOURCES}
    assert {file: paths for file, paths in found.items() if paths} == {}


def test_core_and_policies_draw_no_numbers() -> None:
    """A seeded generator is the simulator's; a decision has nothing to draw for."""
    drawn = re.compile(r"\b(?:default_rng|SeedSequence|PCG64|Philox)\b")
    rooms = ("src/bough/core/", "src/bough/policies/")
    assert [f for f in SOURCES if f.startswith(rooms) and drawn.search(text_of(f))] == []


def test_each_policy_has_its_page() -> None:
    from bough.policies import builtin

    pages = {page.stem for page in (ROOT / "docs" / "policies").glob("*.md")} - {"index"}
    assert pages == set(builtin())

"""What stands in the code beside a field: its type as written, and the comment that explains it."""

from __future__ import annotations

import ast
import inspect
import textwrap

MARK = "#:"


def declarations(owner: type) -> dict[str, tuple[str, str]]:
    """Of every field written in this class: its type and its comment, above it or behind it."""
    source = textwrap.dedent(inspect.getsource(owner))
    lines = source.splitlines()
    found = {}
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            assert node.end_lineno is not None
            behind = lines[node.end_lineno - 1].partition(f"  {MARK}")[2].strip()
            words = behind or comment_above(lines, node.lineno)
            found[node.target.id] = ast.unparse(node.annotation), words
    return found


def comment_above(lines: list[str], lineno: int) -> str:
    """The `#:` lines that end above this one."""
    words: list[str] = []
    for line in reversed(lines[: lineno - 1]):
        if not line.strip().startswith(MARK):
            break
        words.insert(0, line.strip().removeprefix(MARK).strip())
    return " ".join(words)

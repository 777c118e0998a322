"""The documentation is true where a machine can tell: pages are generated, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bough.core.reason import CODES, ENDINGS

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)")


def test_policy_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_a_file(page: str) -> None:
    path = ROOT / page
    links = LINK.findall(path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_every_knob_says_what_it_does() -> None:
    undocumented = {
        page: re.findall(r"^\| `(\w+)` .*\|  \|$", (ROOT / page).read_text(encoding="utf-8"), re.M)
        for page in PAGES
        if page.startswith("docs/policies/")
    }
    assert {page: knobs for page, knobs in undocumented.items() if knobs} == {}


def test_architecture_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = text.partition("## The rooms")[2].partition("```\n\n")[0]
    present = {path.name for path in (ROOT / "src").rglob("*.py")}
    assert set(re.findall(r"\b\w+\.py\b", rooms)) - present == set()


def test_commands_named_first_exist() -> None:
    """`make run` and `make test` open the README, and the Makefile has them."""
    named = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert named[:2] == ["run", "test"]
    targets = re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert set(named) <= set(targets)


def test_every_reason_is_explained() -> None:
    page = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"`([\w-]+)`", page))
    assert {*CODES, *ENDINGS} - {"none"} <= explained

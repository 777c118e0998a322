"""The documentation is true where a machine can tell: pages are generated, links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bough.cli import SECTIONS, cli
from bough.core.reason import CODES, ENDINGS

ROOT = Path(__file__).parent.parent
ROOMS = ("docs", "src", "tests", "bench", "examples")
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *(p for d in ROOMS for p in (ROOT / d).rglob("*.md"))]
)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)")
#: The page, if it is another, and the heading in it.
ANCHOR = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)#([^)]+)\)")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
#: A call in a line of the shell, up to where another command begins.
COMMENT = re.compile(r"(?:^|\s)#.*")
CALL = re.compile(r"(?:^|(?<=[ (]))bough ((?:'[^']*'|\"[^\"]*\"|[^|&;<>)#'\"])+)")


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_generated_pages_are_up_to_date() -> None:
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


@pytest.mark.parametrize("page", PAGES)
def test_links_within_a_page_lead_to_a_heading(page: str) -> None:
    for link, anchor in ANCHOR.findall((ROOT / page).read_text(encoding="utf-8")):
        target = (ROOT / page).parent / link if link else ROOT / page
        titles = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.M)
        assert anchor in {slug(title) for title in titles}, f"{link}#{anchor}"


def slug(title: str) -> str:
    """As the sites that show these pages name a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_every_knob_and_field_says_what_it_is() -> None:
    undocumented = {
        page: re.findall(r"^\| `(\w+)` .*\|  \|$", (ROOT / page).read_text(encoding="utf-8"), re.M)
        for page in PAGES
        if page.startswith("docs/policies/") or page == "docs/json.md"
    }
    assert {page: knobs for page, knobs in undocumented.items() if knobs} == {}


def test_what_every_command_prints_as_json_is_told() -> None:
    """The simulator's commands have pages of their own."""
    told = set(re.findall(r"^\| `bough ([\w -]+)` ", read("docs/json.md"), re.M))
    printing = {
        " ".join(words)
        for words, command in commands_below(cli)
        if words[0] not in SECTIONS["Simulator"]
        and any(parameter.name == "as_json" for parameter in command.params)
    }
    assert {words.removesuffix(" --detach") for words in told} == printing


def commands_below(group: click.Group, *words: str) -> Iterator[tuple[list[str], click.Command]]:
    """Every command with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield [*words, name], command
        if isinstance(command, click.Group):
            yield from commands_below(command, *words, name)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/commands.md"])
def test_commands_in_a_page_can_be_typed(page: str) -> None:
    """Names, options and values are those there are; nothing is carried out."""
    text = read(page)
    lines = {line: fault_of(line) for line in typed(text)}
    mentions = {line: fault_of(line, whole=False) for line in mentioned(text)}
    assert {line: fault for line, fault in (lines | mentions).items() if fault} == {}


def typed(text: str) -> Iterator[str]:
    """Command lines in blocks of code, and after a prompt in screens."""
    for kind, block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            shell = line if kind == "sh" else line[2:] if line.startswith("$ ") else ""
            yield from ("bough " + each for each in CALL.findall(COMMENT.sub("", shell)))


def mentioned(text: str) -> Iterator[str]:
    """Commands in sentences, where they may stand without all they need."""
    for inline in re.findall(r"`(bough [^`]+)`", BLOCK.sub("", text)):
        if "…" not in inline:
            yield inline


def fault_of(line: str, whole: bool = True) -> str:
    """Why it cannot be typed, or nothing; only `whole` lines need all arguments."""
    command: click.Command = cli
    words = shlex.split(line, comments=True)[1:]
    context = click.Context(cli, info_name="bough")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        found = command.get_command(context, name)
        if found is None:
            return f"{context.command_path} has no command {name}"
        command, context = found, click.Context(found, info_name=name, parent=context)
    if {"--help", "--version"} & set(words):
        return ""
    try:
        command.make_context(context.info_name, words, parent=context.parent)
    except click.exceptions.NoArgsIsHelpError:
        return ""
    except (click.MissingParameter, click.BadOptionUsage) as error:
        return error.format_message() if whole else ""
    except click.BadParameter as error:
        return "" if "does not exist" in error.format_message() else error.format_message()
    except click.UsageError as error:
        return error.format_message()
    return ""


@pytest.mark.parametrize("page", PAGES)
def test_screens_fit_a_terminal(page: str) -> None:
    """What is shown as a screen is no wider than 80 columns."""
    blocks = [block for kind, block in BLOCK.findall(read(page)) if kind == "text"]
    assert [line for block in blocks for line in block.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("bough lss", "bough has no command lss"),
        ("bough queue put", "bough queue has no command put"),
        ("bough ls --everything", "No such option '--everything'"),
        ("bough run -g 2..8 -- python train.py --what", ""),
        ("bough logs", "Missing argument 'JOB'."),
        ("bough up", ""),
    ],
)
def test_a_line_that_cannot_be_typed_is_noticed(line: str, fault: str) -> None:
    assert fault_of(line).startswith(fault)
    assert bool(fault_of(line)) == bool(fault)


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

"""The makers' tools as they look from outside: real programs on a search path of their own."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

RECORDED = Path(__file__).parent / "recorded"
_CAT = shutil.which("cat") or "cat"


def recorded(name: str, *pids: int) -> str:
    """What a tool printed, with these processes where the text says `@1@`, `@2@` …"""
    text = (RECORDED / name).read_text(encoding="utf-8")
    for number, pid in enumerate(pids, start=1):
        text = text.replace(f'"@{number}@"', str(pid)).replace(f"@{number}@", str(pid))
    return text


class Tools:
    """A directory of programs that print what they are told to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def script(self, name: str, body: str) -> None:
        """A program; whoever runs it at this moment goes on with the old one."""
        new = self.directory / f".{name}.new"
        new.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        new.chmod(0o755)
        os.replace(new, self.directory / name)

    def prints(self, name: str, *answers: tuple[str, str]) -> None:
        """A program that prints a text where its arguments match a pattern of the shell."""
        cases = []
        for number, (pattern, text) in enumerate(answers):
            file = self.directory / f"{name}.{number}.txt"
            new = file.with_suffix(".new")
            new.write_text(text, encoding="utf-8")
            os.replace(new, file)
            plain = pattern.replace(" ", "\\ ")
            cases.append(f"{plain}) exec {shlex.quote(_CAT)} {shlex.quote(str(file))};;")
        lines = "\n".join(cases)
        self.script(
            name, f'case "$*" in\n{lines}\n*) echo "unknown option: $*" >&2; exit 2;;\nesac'
        )

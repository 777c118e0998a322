"""The keys of `bough top`, what they do, and how its screen is parted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

KEYS: Final[dict[str, Sequence[tuple[str, str]]]] = {
    "Jobs": (
        ("j k ↓ ↑", "choose a job; g and G the first and the last"),
        ("enter", "all of it: why, what would help, attempts, last lines"),
        ("l", "follow what it prints"),
        ("s", "stop it for good, once you said y"),
        ("p", "park it, or let it go on"),
        ("r", "run it once more, when it is over"),
    ),
    "What is shown": (
        ("/", "search as you type: words of id, name, user, queue, state"),
        ("f", "only mine, or everybody's"),
        ("d", "all devices"),
        ("space", "look at once"),
        ("esc", "back"),
        ("? q", "this list; quit"),
    ),
    "Signs": (
        ("■ ·", "a device that a job holds, in that job's colour; one that is free"),
        ("▒ ✗ –", "taken by somebody outside of bough; unhealthy; drained"),
        ("█ ░ │", "what a queue uses; what it may count on; its guarantee"),
    ),
}
FOOT: Final = "? keys  enter job  l logs  s stop  p park  / search  f mine  d devices  q quit"
FOOT_OF_VIEW: Final = "esc back  ? keys  enter job  l logs  s stop  p park  j k up, down  q quit"

#: Keys, and what each calls.
BINDINGS: Final = (
    ("q", "quit", ""),
    ("j,down", "move(1)", ""),
    ("k,up", "move(-1)", ""),
    ("pagedown,ctrl+f", "page(1)", ""),
    ("pageup,ctrl+b", "page(-1)", ""),
    ("g,home", "end(-1)", ""),
    ("G,end", "end(1)", ""),
    ("enter", "open('job')", ""),
    ("l", "open('log')", ""),
    ("d", "open('devices')", ""),
    ("question_mark,h", "open('keys')", ""),
    ("escape", "close", ""),
    ("s", "stop", ""),
    ("p", "park", ""),
    ("r", "retry", ""),
    ("y", "answer(True)", ""),
    ("n", "answer(False)", ""),
    ("f", "mine", ""),
    ("slash", "search", ""),
    ("space", "look", ""),
    ("ctrl+z", "suspend_process", ""),
)

STYLE: Final = """
Screen { background: ansi_default; color: ansi_default; layout: vertical; overflow: hidden; }
#body { height: 1fr; }
#listing { width: 1fr; height: 100%; }
#pane, #log { display: none; width: 1fr; height: 100%; background: ansi_default; padding: 0;
              color: ansi_default; scrollbar-size-vertical: 1; border: none; }
.beside #pane, .beside #log { border-left: solid ansi_bright_black; padding: 0 0 0 1; }
#page { width: 1fr; height: auto; }
#foot { height: 1; }
#box { display: none; height: 1; }
#slash { width: 1; }
#search { width: 1fr; height: 1; border: none; padding: 0; background: ansi_default; }
"""

"""What an exit says of another try: what passes by itself, what never will, and what nobody knows.

The kinds are those of OpenPAI's exit specification; its codes are kept where it has one. Batch
systems and shells tell a signal as 128 and its number, and so do we.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

#: transient: tried again without asking the user's count; permanent: never tried again;
#: unknown: tried again as often as the user said.
Kind = Literal["transient", "permanent", "unknown"]


class Exit(NamedTuple):
    """One line of the table."""

    kind: Kind
    #: In words that follow "it ended: ".
    text: str


#: Notes of a body that say more than a code: words in them, and what they mean. First match.
NOTES: Final[tuple[tuple[str, Exit], ...]] = (
    ("memory limit", Exit("permanent", "it used more memory than it asked for")),
    ("out of memory on a device", Exit("permanent", "the memory of its devices was too small")),
    ("module could not be imported", Exit("permanent", "a Python module could not be imported")),
    ("syntax error", Exit("permanent", "its program has a syntax error")),
    ("does not begin", Exit("permanent", "its command could not be started")),
    ("uncorrectable memory error", Exit("transient", "a device had a memory error")),
    ("fell off the bus", Exit("transient", "a device stopped answering")),
)

#: What a code means by custom.
CODES: Final[dict[int, Exit]] = {
    2: Exit("permanent", "its command was used wrongly (exit code 2)"),
    64: Exit("permanent", "its command was used wrongly (exit code 64)"),
    75: Exit("transient", "it asked to be tried again (exit code 75)"),
    78: Exit("permanent", "its configuration is wrong (exit code 78)"),
    125: Exit("transient", "bough could not start it"),
    126: Exit("permanent", "its command cannot be run (exit code 126)"),
    127: Exit("permanent", "its command was not found (exit code 127)"),
    134: Exit("unknown", "it aborted (SIGABRT)"),
    137: Exit("transient", "somebody else killed it (SIGKILL)"),
    138: Exit("transient", "it asked to be tried again (exit code 138)"),
    139: Exit("unknown", "it touched memory that is not its own (SIGSEGV)"),
    143: Exit("transient", "somebody else asked it to end (SIGTERM)"),
    220: Exit("permanent", "its command is wrong (exit code 220)"),
    223: Exit("transient", "a device had a memory error (exit code 223)"),
    226: Exit("permanent", "the memory of its devices was too small (exit code 226)"),
    231: Exit("permanent", "its program has a syntax error (exit code 231)"),
    232: Exit("permanent", "a Python module could not be imported (exit code 232)"),
}

LOST: Final = Exit("transient", "its processes were lost with their machine or their devices")


def explain(code: int, why: str = "failed", note: str = "") -> Exit:
    """Which kind of end this was, and what is known of it."""
    if why == "lost":
        return LOST
    for words, found in NOTES:
        if words in note:
            return found
    return CODES.get(code) or Exit("unknown", f"exit code {code}")


def classify(code: int, why: str = "failed", note: str = "") -> Kind:
    """Whether another try is worth it."""
    return explain(code, why, note).kind

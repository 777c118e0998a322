"""Every error a user may see has one root, so that each surface can turn it into one line.

    BoughError
    ├── InputError      what a user wrote cannot be used: where, what, and how to put it right
    ├── NotFoundError   there is nothing of that name
    ├── ForbiddenError  somebody else's, or an administrator's business
    ├── ConflictError   it cannot be done as things are now
    ├── TooManyError    more than is allowed at once; later it will do
    ├── FullError       there is no room to write it down
    └── DaemonError     no daemon answers

A class's docstring is its default message.
"""

from __future__ import annotations

from collections.abc import Iterable


class BoughError(Exception):
    """Something went wrong in bough."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or _first_line(type(self)))


class InputError(BoughError):
    """The input cannot be used.

    Shown as one line, `file:line: field: what (hint)`, leaving out the parts that are not known.
    """

    def __init__(
        self,
        what: str | None = None,
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what: str = self.args[0]
        self.file = file
        self.line = line
        self.field = field
        self.hint = hint

    def at(
        self, *, file: str | None = None, line: int | None = None, field: str | None = None
    ) -> InputError:
        """Add what the caller knows of the place; `field` goes before the one already there.

        A parser knows the field, its caller the line, and the caller of that the file:
        `raise error.at(file=path) from None`.
        """
        self.file = self.file if self.file is not None else file
        self.line = self.line if self.line is not None else line
        self.field = ".".join(part for part in (field, self.field) if part) or None
        return self

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        hint = f"({self.hint})" if self.hint else None
        located = ": ".join(part for part in (place, self.field, self.what) if part)
        return " ".join(part for part in (located, hint) if part)


class NotFoundError(BoughError):
    """There is nothing of that name."""


class ForbiddenError(BoughError):
    """That is not yours to do."""


class ConflictError(BoughError):
    """It cannot be done as things are now."""


class TooManyError(BoughError):
    """That is more than is allowed at once."""

    def __init__(self, message: str | None = None, retry_after_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class FullError(BoughError):
    """There is no room to write it down; nothing of it was done."""


class DaemonError(BoughError):
    """No bough runs here; `bough up` starts it."""


def nearest(name: str, allowed: Iterable[str]) -> str:
    """The hint for a name that does not exist: the one probably meant, or else all there are."""
    from difflib import get_close_matches  # slow to import, and only mistakes need it

    names = sorted(allowed)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(names)}"


def _first_line(error: type[BoughError]) -> str:
    """The default message; a class without a docstring speaks through its parent."""
    documented = next((c for c in error.__mro__ if c.__dict__.get("__doc__")), None)
    text = documented.__doc__ if documented else None
    return text.strip().splitlines()[0] if text else error.__name__

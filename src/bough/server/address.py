"""Where a PostgreSQL server is, and how to speak of it without telling a password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple
from urllib.parse import quote, quote_plus

from bough.errors import InputError

FORM = "postgresql://user:password@host/database"
#: Names of parameters with what may never be shown.
SECRET = re.compile("pass|secret|token", re.IGNORECASE)


class Address(NamedTuple):
    """A connection string that can be understood."""

    dsn: str
    #: What errors begin with.
    label: str
    #: Names of the parameters in it.
    given: AbstractSet[str]
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, dsn: str, found: Mapping[str, object]) -> Address:
        """With the parameters that libpq found in it."""
        said = {key: str(value) for key, value in found.items()}
        port = f":{said['port']}" if "port" in said else ""
        place = said.get("host", "").partition(",")[0]
        place = "" if place.startswith("/") else place
        label = f"postgresql://{place}{port}/{said.get('dbname', '')}"
        plain = [value for key, value in said.items() if SECRET.search(key) and value]
        secrets = {each for value in plain for each in (value, quote(value, ""), quote_plus(value))}
        return cls(dsn, label, said.keys(), tuple(sorted(secrets, key=len, reverse=True)))

    def clean(self, text: str) -> str:
        """The first line of what a server or a library says."""
        line = next(iter(text.strip().splitlines()), "")
        for secret in self.secrets:
            line = line.replace(secret, "…")
        return line.strip()


def not_understood(field: str = "store") -> InputError:
    """Without a word of what was given: it may hold a password."""
    hint = f"{FORM}; in a password, @ is written %40, / %2F and : %3A"
    return InputError("the address of the database cannot be understood", field=field, hint=hint)


def is_ambiguous(dsn: str) -> bool:
    """An @ where none belongs is one of a password, of which libpq would take a part for a host."""
    place = dsn.partition("://")[2].partition("?")[0]
    return place.count("@") > 1 or "@" in place.partition("/")[2]

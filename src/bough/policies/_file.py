"""A policy from a file of one's own: named by its path, found as its only class."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType, TracebackType

from bough.core.policy import Policy

ENDING = ".py"


def is_file(name: str) -> bool:
    """Whether a policy is named by a path."""
    return name.endswith(ENDING)


@cache
def load(path: str) -> type[Policy]:
    """The policy that is defined there; ValueError with the place of what is wrong."""
    # A name that no other module has, under which another process finds it again.
    name = "bough_policy_" + "".join(c if c.isalnum() else f"_{ord(c)}_" for c in path)
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError as error:
        if error.filename != spec.origin:
            raise ValueError(f"policy {path!r}: {error}") from error
        raise ValueError(f"policy {path!r}: there is no such file") from None
    except SyntaxError as error:
        raise ValueError(f"policy {path!r}, line {error.lineno}: {error.msg}") from None
    except Exception as error:
        line = line_in(str(spec.origin), error.__traceback__)
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"policy {path!r}{line}: {said}") from error
    return only(path, module)


def only(path: str, module: ModuleType) -> type[Policy]:
    """The one policy of this module that it does not merely import."""
    found = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, Policy)
        and kind.__module__ == module.__name__
        and not kind.__name__.startswith("_")
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ValueError(f"policy {path!r} has no class that is a bough Policy")
    names = ", ".join(kind.__name__ for kind in found)
    raise ValueError(f"policy {path!r} has several policies ({names}); give each its own file")


def line_in(path: str, trace: TracebackType | None) -> str:
    """Where in the file it went wrong, if it was there."""
    found = ""
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            found = f", line {trace.tb_lineno}"
        trace = trace.tb_next
    return found

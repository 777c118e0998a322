"""The public names of bough, each imported when it is first used.

`import bough` must cost nothing: a command line that only prints a list, or a training script
that only reports progress, should not wait for numpy.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # type checkers know this name; importing typing for it would cost 10 ms
__version__ = "0.1.0"

if TYPE_CHECKING:
    from bough.client import Client as Client
    from bough.core.model import JobSpec as JobSpec
    from bough.core.policy import Plan as Plan
    from bough.core.policy import Policy as Policy
    from bough.core.policy import View as View
    from bough.core.scheduler import Scheduler as Scheduler
    from bough.errors import BoughError as BoughError
    from bough.errors import InputError as InputError
    from bough.sdk import Job as Job
    from bough.sdk import JobFailedError as JobFailedError
    from bough.sdk import job as job
    from bough.sdk import quote as quote
    from bough.sdk import run as run
    from bough.sim.engine import simulate as simulate

#: Public name: the module that defines it. Names not listed here carry no promise.
_HOMES: dict[str, str] = {
    "BoughError": "bough.errors",
    "Client": "bough.client",
    "InputError": "bough.errors",
    "Job": "bough.sdk",
    "JobFailedError": "bough.sdk",
    "JobSpec": "bough.core.model",
    "Plan": "bough.core.policy",
    "Policy": "bough.core.policy",
    "Scheduler": "bough.core.scheduler",
    "View": "bough.core.policy",
    "job": "bough.sdk",
    "quote": "bough.sdk",
    "run": "bough.sdk",
    "simulate": "bough.sim.engine",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - the table is the list


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'bough' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value  # the next use does not come through here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

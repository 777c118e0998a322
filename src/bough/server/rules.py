"""What the daemon decides by: what a user set, as the conditions under which decisions are made."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from bough.core.scheduler import Settings
from bough.errors import InputError
from bough.hardware.probe import Machine
from bough.policies import find
from bough.records import Config, ConfigChange
from bough.server.anystore import AnyStore
from bough.server.rows import Conditions

#: Under which name it is kept.
SETTING: Final = "config"
YEAR_SECONDS: Final = 365 * 86400.0


def known_config(store: AnyStore) -> Config:
    """As it was set last; what is not understood any more is as it is for everybody."""
    try:
        return store.setting(SETTING, Config) or Config()
    except msgspec.MsgspecError:
        store.notes.append("The configuration could not be read; it is as in the beginning.")
        return Config()


def changed(config: Config, wish: ConfigChange) -> Config:
    """With the wish granted, if it makes sense."""
    given = {name: getattr(wish, name) for name in wish.__struct_fields__}
    config = msgspec.structs.replace(config, **{k: v for k, v in given.items() if v is not None})
    check(config)
    return config


def check(config: Config) -> None:
    """Every value is one that can be meant."""
    try:
        find(config.policy)
    except ValueError as error:
        raise InputError(str(error), field="policy") from None
    times = ("locality_seconds", "damp_seconds", "backoff_seconds", "backoff_max_seconds")
    for name, most in (*((name, YEAR_SECONDS) for name in times), ("keep_days", 36500.0)):
        if not 0 <= getattr(config, name) <= most:
            raise InputError(f"must lie within 0 and {most:g}", field=name)
    if not 0 < config.moving_share <= 1:
        raise InputError("must be more than 0 and at most 1", field="moving_share")
    if config.backoff_max_seconds < config.backoff_seconds:
        raise InputError("is less than backoff_seconds", field="backoff_max_seconds")
    if any(not name or len(name) > 100 for name in config.admins):
        raise InputError("has a name that is none", field="admins")


def conditions_of(config: Config, machine: Machine) -> Conditions:
    """Everything that decisions depend on, beside what happens."""
    settings = Settings(
        locality_seconds=config.locality_seconds,
        damp_seconds=config.damp_seconds,
        moving_share=config.moving_share,
        backoff_seconds=config.backoff_seconds,
        backoff_max_seconds=config.backoff_max_seconds,
    )
    return Conditions(
        policy=config.policy,
        settings=settings,
        levels=machine.levels,
        inner=machine.inner,
        bandwidth={level: speed for level, speed in machine.bandwidth.items() if finite(speed)},
        reference_kind=first(node.kind for node in machine.nodes),
    )


def finite(value: float) -> bool:
    return math.isfinite(value)


def first(values: Iterable[str]) -> str:
    """The first of them; nothing of none."""
    return next(iter(values), "")

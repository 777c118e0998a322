"""Workloads of Pollux (OSDI '21) and Sia (SOSP '23): an application, its devices and its batch.

They say neither how long a job runs nor how many iterations it has: that follows from measured
profiles of the applications, which come with Pollux' simulator and are read from the folder that
`--speedups` names.
"""

from __future__ import annotations

from bough.errors import InputError
from bough.sim.formats.pollux_profile import Profile
from bough.sim.formats.rows import BadRow, Collector, Row, header, shown, table
from bough.sim.trace import Reading, Source, Trace, TraceJob

REQUIRED = ("name", "time", "application", "num_replicas", "batch_size")
#: The profiles were measured on it.
KIND = "t4"


def recognises(source: Source) -> bool:
    """By applications with replicas."""
    return set(header(source)).issuperset(REQUIRED)


def read(source: Source, reading: Reading) -> Trace:
    """Read it."""
    collector = Collector(source, reading)
    if reading.profiles is None or not reading.profiles.is_dir():
        raise InputError(
            "does not say how long its jobs run",
            file=source.file,
            hint="give the folder of the applications' profiles with --speedups DIR",
        )
    known = {path.name: path for path in reading.profiles.iterdir() if path.is_dir()}
    profiles: dict[str, Profile] = {}
    unit = reading.unit_seconds or 1.0

    def job(row: Row) -> TraceJob:
        application = row.text("application")
        devices = row.devices("num_replicas")
        batch = row.whole("batch_size", least=1)
        profile = profiles.get(application)
        if profile is None:
            if application not in known:
                raise BadRow(f"{shown(application)} has no profile", "application")
            profile = profiles[application] = Profile.read(known[application])
        try:
            seconds = profile.seconds(devices, batch)
        except ValueError as error:
            raise BadRow(str(error)) from None
        return collector.job(
            row.text("name"),
            row.moment("time", unit),
            seconds,
            devices,
            model=application.lower(),
            batch=batch,
        )

    collector.each(table(collector, REQUIRED), job)
    return collector.trace("pollux", reading.kind or KIND)

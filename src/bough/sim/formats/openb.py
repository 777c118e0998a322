"""Alibaba's cluster of shared GPUs (ATC '23, `openb_pod_list_*.csv`): pods with parts of a device.

A pod asks for whole devices, or for `gpu_milli` thousandths of a single one. As whole devices a
part counts as one. With slots, every device is that many of ours, and a part becomes as many
slots as hold it: describe the cluster with slots instead of devices then.
"""

from __future__ import annotations

from bough.sim.formats.rows import BadRow, Collector, LeftOut, Row, header, table, whole_devices
from bough.sim.trace import Reading, Source, Trace, TraceJob

REQUIRED = (
    "name", "num_gpu", "gpu_milli", "qos", "pod_phase", "creation_time", "deletion_time",
    "scheduled_time",
)  # fmt: skip
MILLI = 1000


def recognises(source: Source) -> bool:
    """By thousandths of GPUs."""
    return set(header(source)).issuperset(REQUIRED)


def read(source: Source, reading: Reading) -> Trace:
    """Read it."""
    collector = Collector(source, reading)
    unit = reading.unit_seconds or 1.0
    if reading.slots:
        collector.notes.append(f"a device is {reading.slots} slots, and sizes count slots")
    else:
        collector.notes.append("parts of a device count as whole devices")

    def job(row: Row) -> TraceJob:
        count = row.devices("num_gpu")
        milli = row.whole("gpu_milli", least=1, most=MILLI)
        if not row.text("scheduled_time"):
            raise LeftOut("was never scheduled")
        if not row.text("deletion_time"):
            raise LeftOut("has no deletion_time")
        seconds = row.moment("deletion_time", unit) - row.moment("scheduled_time", unit)
        if seconds < 0:
            raise BadRow("ends before it is scheduled", "deletion_time")
        if seconds == 0:
            raise LeftOut("ran for 0 seconds")
        return collector.job(
            row.text("name"),
            row.moment("creation_time", unit),
            seconds,
            count * whole_devices(milli / MILLI, reading.slots),
            queue=row.text("qos"),
            failed=row.text("pod_phase") == "Failed",
        )

    collector.each(table(collector, REQUIRED), job)
    return collector.trace("openb", reading.kind)

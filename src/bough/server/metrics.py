"""What a Prometheus server may fetch: numbers of this daemon, in a registry of its own."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from bough import __version__
from bough.records import StatusRecord

if TYPE_CHECKING:
    from bough.server.permissions import Caller
    from bough.server.service import Service

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counts requests and decisions as they come; the rest is looked up when it is asked for."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "bough_http_requests",
            "Requests that were answered.",
            ["operation", "status"],
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "bough_http_request_seconds",
            "From a request's headers to its answer; streams are left out.",
            ["operation"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.connections = Gauge(
            "bough_http_connections", "Connections that are open.", registry=self.registry
        )
        self.streams = Gauge(
            "bough_http_streams", "Answers that are followed.", registry=self.registry
        )
        self.decision_seconds = Histogram(
            "bough_decision_seconds",
            "From taking events to having decided, written down and ordered what follows.",
            buckets=_SECONDS,
            registry=self.registry,
        )

    def text(self, service: Service, caller: Caller) -> bytes:
        """Everything, as it is now."""
        found = CollectorRegistry(auto_describe=False)
        found.register(Looked(service, caller))
        return generate_latest(self.registry) + generate_latest(found)


class Looked(Collector):
    """What the daemon knows anyway."""

    def __init__(self, service: Service, caller: Caller) -> None:
        self._service, self._caller = service, caller

    def collect(self) -> Iterator[Metric]:
        """All of it, looked up once."""
        service, caller = self._service, self._caller
        status = service.status(caller)
        yield from _of_daemon(status)
        jobs = {"running": status.running, "waiting": status.waiting, "ended": status.ended}
        yield _family("bough_jobs", "Jobs by state.", "state", jobs)
        devices = service.devices(caller)
        states = Count[str](device.state for device in devices)
        yield _family("bough_devices", "Devices by state.", "state", states)
        watts = {f"{each.node}/{each.index}": each.watts for each in devices}
        known = {name: value for name, value in watts.items() if value is not None}
        yield _family("bough_device_watts", "Power that a device draws.", "device", known)
        queues = service.queues(caller)
        for what, help in (
            ("used", "Devices that jobs of a queue and those below it hold."),
            ("entitled", "Devices that a queue may count on now."),
            ("running", "Jobs of a queue that run."),
            ("waiting", "Jobs of a queue that wait."),
        ):
            values = {each.queue.name: getattr(each, what) for each in queues}
            yield _family(f"bough_queue_{what}", help, "queue", values)


def _of_daemon(status: StatusRecord) -> Iterator[Metric]:
    build = GaugeMetricFamily("bough_build", "Which bough this is.", labels=["version", "policy"])
    build.add_metric([__version__, status.policy], 1.0)
    yield build
    for name, help, value in (
        ("bough_journal_seq", "The last entry of the journal.", status.seq),
        ("bough_start_time_seconds", "When the daemon began.", status.since),
        ("bough_notes", "Things that a user should know.", len(status.notes)),
    ):
        yield GaugeMetricFamily(name, help, value=value)


def _family(name: str, help: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, help, labels=[label])
    for each, value in sorted(values.items()):
        family.add_metric([each], value)
    return family

"""One trace under several policies: the unit of work of `bough simulate` and of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bough.core import share
from bough.core.cluster import Cluster
from bough.errors import InputError
from bough.policies import find
from bough.sim import parallel
from bough.sim.engine import simulate
from bough.sim.options import Options, Tools
from bough.sim.record import RunRecord
from bough.sim.trace import Trace, TraceJob


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of a run but its policy."""

    trace: Trace
    cluster: Cluster
    #: As the user wrote it.
    cluster_name: str
    options: Options = Options()
    tools: Tools = Tools()


#: Loading compiled code takes longer than it saves on shorter traces.
COMPILED_JOBS = 20_000


def run(setting: Setting, policy: str, tell: parallel.Tell) -> RunRecord:
    """One policy on the trace; `tell` hears the share of jobs that have ended."""
    if len(setting.trace.jobs) >= COMPILED_JOBS:
        share.use_compiled()
    tools = msgspec.structs.replace(setting.tools, on_progress=tell)
    return simulate(
        setting.trace,
        setting.cluster,
        find(policy),
        setting.options,
        tools,
        policy_name=policy,
        cluster_name=setting.cluster_name,
    )


def compare(
    setting: Setting, policies: Sequence[str], processes: int, tell: parallel.Tell
) -> list[RunRecord]:
    """A run for each policy, in their order, in so many processes."""
    found = dict(parallel.each(run, setting, policies, processes, tell))
    return [found[number] for number in range(len(policies))]


def misfits(trace: Trace, cluster: Cluster) -> list[tuple[TraceJob, str]]:
    """Jobs that could never start, each with what stands against it."""
    size: dict[str, int] = {}
    for node in cluster.nodes:
        size[node.kind] = size.get(node.kind, 0) + node.devices
    found = []
    for job in trace.jobs:
        least = job.spec.sizes()[0]
        kinds = [kind for kind in size if not job.spec.kinds or kind in job.spec.kinds]
        most = max((size[kind] for kind in kinds), default=0)
        if not kinds:
            wanted, there = ", ".join(job.spec.kinds), ", ".join(size)
            found.append((job, f"accepts only {wanted}; the cluster has {there}"))
        elif least > most:
            of_kind = f" of kind {kinds[0]}" if len(size) > 1 and len(kinds) == 1 else ""
            found.append((job, f"needs at least {least} devices, the cluster has {most}{of_kind}"))
    return found


def keep(trace: Trace, wanted: Callable[[TraceJob], bool]) -> Trace:
    """The trace with these jobs only."""
    jobs = tuple(job for job in trace.jobs if wanted(job))
    if not jobs:
        raise InputError(f"trace {trace.name} has no job that could run on this cluster")
    return msgspec.structs.replace(trace, jobs=jobs)

"""An experiment from a YAML file: what is simulated, and what is compared.

The format is explained in docs/experiments.md.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bough.clusterfile import find_cluster
from bough.core.units import parse_duration, shown
from bough.errors import InputError, nearest
from bough.located import Field, parse_documents, read_text, shown_path
from bough.policies import find
from bough.sim.experiment import METRICS, Cell, Experiment
from bough.sim.options import Options, Tools
from bough.sim.runs import misfits
from bough.sim.sweep import Drawn, Sweep
from bough.sim.synthetic import Mix
from bough.sim.tables import read_speedups
from bough.sim.trace import Reading, Trace, read_trace

if TYPE_CHECKING:
    from bough.core.cluster import Cluster

FIELDS: Final = (
    "name", "traces", "clusters", "policies", "loads", "seeds", "world", "baseline", "metrics",
)  # fmt: skip
#: Field of `world` -> that of the options, and how it is read.
WORLD: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "start_cost": ("start_seconds", parse_duration),
    "resize_cost": ("resize_seconds", parse_duration),
    "park_cost": ("park_seconds", parse_duration),
    "checkpoint": ("checkpoint_seconds", parse_duration),
    "locality": ("locality_seconds", parse_duration),
    "damp": ("damp_seconds", parse_duration),
    "round": ("round_seconds", parse_duration),
    "speed_error": ("speed_error", float),
    "interference": ("interference", float),
    "stragglers": ("straggler_share", float),
    "moving": ("moving_share", float),
    "jobs": ("jobs", int),
}
SEEDS_MAX: Final = 10_000


def read_experiment(path: str | Path) -> Experiment:
    """The experiment of a file; what it names is looked up from the file's folder."""
    text, file = read_text(path), shown_path(path)
    documents = parse_documents(text, file)
    if len(documents) != 1:
        what = "is empty" if not documents else "has more than one document"
        raise InputError(what, file=file, hint="docs/experiments.md shows one")
    top = documents[0].fields(FIELDS, required=("traces", "clusters", "policies"))
    folder = Path(path).parent
    policies = read_policies(top["policies"], folder)
    baseline = top["baseline"].text().strip() if "baseline" in top else policies[0]
    if baseline not in policies:
        raise top["baseline"].error("is not among the policies", nearest(baseline, policies))
    return Experiment(
        name=top["name"].text() if "name" in top else Path(path).stem,
        cells=tuple(cells(top, folder)),
        loads=tuple(f.number(above=True) for f in top["loads"].items()) if "loads" in top
        else (None,),
        policies=tuple(policies),
        seeds=read_seeds(top.get("seeds")),
        baseline=baseline,
        metrics=read_metrics(top.get("metrics")),
    )  # fmt: skip


def cells(top: dict[str, Field], folder: Path) -> list[Cell]:
    """Every trace on every cluster in every world."""
    clusters = [(field, field.text().strip()) for field in top["clusters"].items()]
    found = []
    for field, (where, written) in product(top["traces"].items(), clusters):
        try:
            place = find_cluster(str(folder / written) if is_path(written) else written)
        except InputError as error:
            raise where.error(str(error)) from None
        name, source, tools = read_source(field, place, folder)
        for said, options in read_worlds(top.get("world")):
            common = Sweep(
                source=source, cluster=place, cluster_name=written, options=options, tools=tools
            )
            found.append(Cell(name, written, said, common))
    labels = [(cell.trace, cell.cluster, cell.world) for cell in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise top["traces"].error(f"two are called {shown(twice[0])}", "give them a name each")
    return found


def is_path(text: str) -> bool:
    """Whether a cluster is named by its file."""
    return text.endswith((".yaml", ".yml"))


# ------------------------------------------------------------------ traces


def read_source(field: Field, cluster: Cluster, folder: Path) -> tuple[str, Trace | Drawn, Tools]:
    """A trace of a file or how to draw one, and the speed-ups it comes with."""
    if not field.is_mapping:
        return from_file(field, {"file": field}, cluster, folder)
    if "draw" not in field.entries():
        allowed = ("file", "name", "elastic", "speedups", "kind", "first", "too_big")
        given = field.fields(allowed, required=("file",))
        return from_file(given["file"], given, cluster, folder)
    given = field.fields(("draw", "name", "elastic", "best_effort"))
    jobs = given["draw"].whole(1)
    share = given["elastic"].number() if "elastic" in given else 0.5
    mix = Mix(best_effort=given["best_effort"].number()) if "best_effort" in given else Mix()
    name = given["name"].label() if "name" in given else f"drawn-{jobs}"
    return name, Drawn(jobs=jobs, elastic=share, mix=mix), Tools()


def from_file(
    field: Field, given: dict[str, Field], cluster: Cluster, folder: Path
) -> tuple[str, Trace, Tools]:
    """The trace of a file, as far as it can run on the cluster."""
    path = folder / field.text().strip()
    if not path.exists():
        raise field.error(f"there is no {path}")
    kind = given["kind"].label() if "kind" in given else ""
    book = None
    if "speedups" in given:
        from bough.core.speedup import SpeedBook

        book = read_speedups(
            folder / given["speedups"].text().strip(), SpeedBook(kind or cluster.nodes[0].kind)
        )
    elastic = given["elastic"].whole() if "elastic" in given else 0
    trace = read_trace(path, Reading(rates=book, kind=kind, elastic_limit=elastic))
    too_big = {job.id for job, _ in misfits(trace, cluster)}
    if too_big and not ("too_big" in given and given["too_big"].choice(("drop",))):
        hint = "leave them out with too_big: drop"
        raise field.error(f"{len(too_big)} jobs could never start on {cluster.nodes[0].kind}", hint)
    jobs = tuple(job for job in trace.jobs if job.id not in too_big)
    if "first" in given:
        jobs = jobs[: given["first"].whole(1)]
    if not jobs:
        raise field.error("has no job that could run there")
    import msgspec

    name = given["name"].label() if "name" in given else trace.name
    return name, msgspec.structs.replace(trace, jobs=jobs), Tools(speedups=book)


# ------------------------------------------------------------------ policies, worlds, seeds


def read_policies(field: Field, folder: Path) -> list[str]:
    """Policies in words; a mapping of knobs to lists of values is every combination of them."""
    found: list[str] = []
    for item in field.items():
        if not item.is_mapping:
            found.append(checked(item, item.text().strip(), folder))
            continue
        for name, knobs in item.entries().items():
            choices = [
                [f"{knob}={one.text().strip()}" for one in value.items()]
                for knob, value in knobs.entries().items()
            ]
            found += [
                checked(item, f"{name}:{','.join(chosen)}" if chosen else name, folder)
                for chosen in product(*choices)
            ]
    if not found:
        raise field.error("names no policy")
    if len(set(found)) < len(found):
        raise field.error("names a policy twice")
    return found


def checked(field: Field, text: str, folder: Path) -> str:
    """The policy is there and has these knobs."""
    if text.startswith("./") and folder != Path():
        text = f"{folder}/{text[2:]}"
    try:
        find(text)
    except ValueError as error:
        raise field.error(str(error)) from None
    return text


def read_worlds(field: Field | None) -> list[tuple[str, Options]]:
    """Every combination of what is given as a list, each with its name."""
    if field is None:
        return [("", Options())]
    choices: list[list[tuple[str, str, Any]]] = []
    for name, value in field.fields(tuple(WORLD)).items():
        option, parse = WORLD[name]
        items = value.items()
        said = [f"{name}={one.text().strip()}" if len(items) > 1 else "" for one in items]
        read = [one.read(parse) for one in items]
        choices.append([(words, option, one) for words, one in zip(said, read, strict=True)])
    return [
        (
            ", ".join(words for words, _, _ in chosen if words),
            Options(**{option: value for _, option, value in chosen}),
        )
        for chosen in product(*choices)
    ]


def read_seeds(field: Field | None) -> tuple[int, ...]:
    """A number says how many, a list says which."""
    if field is None:
        return (0, 1, 2)
    if field.is_list:
        return tuple(item.whole() for item in field.items())
    return tuple(range(field.whole(1, SEEDS_MAX)))


def read_metrics(field: Field | None) -> tuple[str, ...]:
    """What is compared: numbers of a run."""
    if field is None:
        return METRICS
    from bough.sim.record import RunRecord
    from bough.sim.results import summarise

    known = [name for name in summarise(RunRecord("", "", "", 0, 1)) if name != "waits_seconds"]
    for item in field.items():
        name = item.text().strip()
        if name not in known or name == "policy":
            raise item.error(f"no number of a run is called {shown(name)}", nearest(name, known))
    return tuple(item.text().strip() for item in field.items())

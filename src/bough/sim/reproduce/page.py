"""docs/fidelity.md: the rows as a page, and where a reader gets the traces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from bough.sim.reproduce.rows import Row

#: Smaller differences are shown as none: they are less than the digits that were printed.
SHOWN_DIFFERENCE: Final = 5e-5

HEAD: Final = """\
<!-- Written by `bough reproduce all --markdown`; change src/bough/sim/reproduce instead. -->

# Fidelity

How close bough's simulator comes to the published ones, number by number, on their own traces:

```sh
bough reproduce muri --data DIR      # one peer: muri, tiresias, elasticflow, gavel, …
bough reproduce all --data DIR       # all of them, in about a minute
bough reproduce                      # what there is
bough reproduce elasticflow-fig9 --data DIR --chart fig9.svg
```

ElasticFlow's figures with bough's own policies, which take some minutes, are in
[figures.md](figures.md).

The same engine, cluster tree and scheduler run here as everywhere in bough. What a peer does in
another way than the production policies (lists for queues, decisions at slots, its own places)
is in `src/bough/sim/reproduce`, one small file for each habit, and its `policy` names say so.

- **theirs** is what the peer's released code prints: as its authors give it, or run by us with the
  defaults of its scripts. Muri's come from its code with start-up times set to zero.
- **difference** is ours / theirs − 1. Where it is 0.00 %, all digits that were printed agree, or
  all but the last.
- **why** is a number of the list under the table. Each reason was checked: by making the same
  change on our side, by repeating the peer's rule in a few lines of code, or in its source.
"""

FIGURES_HEAD: Final = """\
<!-- Written by `bough reproduce elasticflow-figures --markdown`. -->

# ElasticFlow's figures

Figures 8 to 11 of ElasticFlow (ASPLOS '23) with bough's policies, beside what is printed:

```sh
bough reproduce elasticflow-fig8b --data DIR --chart fig8b.svg
bough reproduce elasticflow-figures --data DIR    # all of these: some minutes
```

Policies "as released" are replayed as the authors' simulator does it, with its slots and what its
decisions cost. All others are bough's as they are, at every event and with nothing lost to resizes:
that they keep more deadlines is for the reasons given, and no claim about the paper's own testbed.
[fidelity.md](fidelity.md) compares the rest, and says where the traces are published.
"""

TRACES: Final = """\
## Where the traces are published

Put the files, gzipped or not, under these names into one folder and give it with `--data` or
`BOUGH_DATA`. [traces.md](traces.md) describes their columns.

| project | files there | name here |
|---|---|---|
| Rivendile/Muri | the simulator's traces 1 and 3 | `muri/trace1.csv`, `muri/trace3.csv` |
| SymbioticLab/Tiresias | `60_job.csv` of the simulator | `tiresias/60_job.csv` |
| pkusys/ElasticFlow | the trace of figure 8a | `elasticflow/traces/elasticVpollux_e.csv` |
| | drawn by its generator (100 jobs, λ 1500 s, deadlines × 1.5, seed 1) | \
`elasticflow/traces/generated_fig10_100jobs_1500lam.csv` |
| | folders `throughputs_A100`, `throughputs_T4` | `elasticflow/throughputs_A100`, … |
| microsoft/elasticflow-traces | clusters 01, 03 and 10, the 195 jobs | \
`elasticflow-traces/cluster01.csv`, …, `elasticflow-traces/195job.csv` |
| stanford-futuredata/gavel | `simulation_throughputs.json` | \
`gavel/simulation_throughputs.json` |
| | two traces of the physical cluster | `gavel/traces/physical_cluster/max_min_fairness.trace`, \
`…/minimize_makespan.trace` |
| uw-mad-dash/shockwave | the traces of 120 and 900 jobs | `shockwave/traces/`, same names |
| petuum/adaptdl, branch osdi21-artifact | the simulator's workloads 1, 3, 5 and 7 | \
`pollux-osdi21/workloads/workload-1.csv`, … |
| | profiles of its applications | `pollux-osdi21/traces/`, a folder for each |
| ml-energy/zeus | `summary_power_*.csv` of its NSDI '23 trace | `zeus/nsdi23-trace/`, same names |
| carbonfirst/CarbonCast | `*_direct_emissions.csv` | `carboncast/`, same names |
| umassos/CarbonScaler | `nbody100k.csv` | `carbonscaler/nbody100k.csv` |

ElasticFlow's generator draws deadlines without a seed, so another draw of figure 10 gives other
numbers than these.
"""


TITLES: Final = {
    "muri": "Muri (SIGCOMM '22)",
    "tiresias": "Tiresias (NSDI '19)",
    "elasticflow": "ElasticFlow (ASPLOS '23)",
    "gavel": "Gavel (OSDI '20)",
    "shockwave": "Shockwave (NSDI '23)",
    "pollux": "Pollux (OSDI '21)",
    "zeus": "Zeus (NSDI '23), whose tables the power model is fitted to",
    "powerflow": "PowerFlow (2023)",
    "greenflow": "GreenFlow (TPDS 2025)",
    "carbonscaler": "CarbonScaler (SIGMETRICS '24)",
}


def figures_page(rows: Sequence[Row]) -> str:
    """The page of figures."""
    return "\n".join([FIGURES_HEAD, section("elasticflow", rows)])


def page(rows: Sequence[Row]) -> str:
    """The whole page."""
    parts = [HEAD]
    peers = dict.fromkeys(row.trace.partition("/")[0] for row in rows)
    for peer in peers:
        parts.append(section(peer, [r for r in rows if r.trace.partition("/")[0] == peer]))
    return "\n".join([*parts, TRACES])


def section(peer: str, rows: Sequence[Row]) -> str:
    """One peer's table, and the reasons under it."""
    causes = list(dict.fromkeys(row.cause for row in rows))
    lines = [
        f"## {TITLES[peer]}",
        "",
        "| trace | policy | metric | ours | theirs | difference | why |",
        "|---|---|---|---:|---:|---:|---:|",
        *(line(row, causes.index(row.cause) + 1) for row in rows),
        "",
        *(f"{number}. {sentence(cause)}" for number, cause in enumerate(causes, 1)),
        "",
    ]
    return "\n".join(lines)


def line(row: Row, cause: int) -> str:
    cells: Iterable[str] = (
        row.trace.partition("/")[2],
        f"`{row.policy}`",
        row.metric.replace("_", " ").replace("seconds", "(s)").replace("jct", "JCT"),
        number(row.ours),
        number(row.theirs),
        difference(row.difference),
        str(cause),
    )
    return f"| {' | '.join(cells)} |"


def number(value: float) -> str:
    """Enough digits to compare: four behind the point below 10, none from a million on."""
    digits = 4 if value < 10 else 2 if value < 1e6 else 0
    return f"{value:,.{digits}f}"


def difference(share: float) -> str:
    """In percent, with its sign; what rounds to nothing has none."""
    return "0.00 %" if abs(share) < SHOWN_DIFFERENCE else f"{100 * share:+,.2f} %"


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[0].upper()}{text[1:]}."

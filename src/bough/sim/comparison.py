"""The outcome of an experiment: policies beside a baseline, as a page and a table for papers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from bough.sim.experiment import Experiment, by_policy
from bough.sim.results import Row
from bough.sim.significance import Interval, Verdict, compared, holm, interval

#: A difference is told as one if it would come about less often than this without any.
SIGNIFICANT: Final = 0.05
#: Of these metrics more is better.
MORE_IS_BETTER: Final = (
    "deadline_ratio_submitted", "deadline_ratio_admitted", "utilisation", "useful_utilisation",
    "completed",
)  # fmt: skip


class Line(NamedTuple):
    """One policy by one metric."""

    policy: str
    value: Interval | None
    #: Against the baseline; None for itself, and where nothing can be compared.
    against: Verdict | None
    #: The probability of the verdict, corrected for how many there are.
    p: float

    def said(self, metric: str) -> str:
        """Better, worse, or neither, than the baseline."""
        if self.against is None:
            return ""
        if self.p >= SIGNIFICANT:
            return "no difference shown"
        neutral = 1.0 if is_ratio(metric) else 0.0
        more = self.against.effect > neutral
        return "better" if more == (metric in MORE_IS_BETTER) else "worse"


def is_ratio(metric: str) -> bool:
    """Whether policies are compared by the ratio of their values; shares are by difference."""
    return not metric.startswith("deadline_ratio") and not metric.endswith("utilisation")


def lines(experiment: Experiment, rows: Sequence[Row], metric: str) -> list[Line]:
    """All policies by one metric, each over the instances that it and the baseline have."""
    values = by_policy(rows, metric)
    base = values.get(experiment.baseline, {})
    verdicts: dict[str, Verdict] = {}
    for policy in experiment.policies:
        own = values.get(policy, {})
        both = [instance for instance in base if instance in own]
        if policy != experiment.baseline and both:
            ours, theirs = [own[i] for i in both], [base[i] for i in both]
            verdicts[policy] = compared(ours, theirs, by_ratio=is_ratio(metric))
    corrected = dict(zip(verdicts, holm([v.p for v in verdicts.values()]), strict=True))
    return [
        Line(
            policy,
            interval(list(values[policy].values())) if values.get(policy) else None,
            verdicts.get(policy),
            corrected.get(policy, 1.0),
        )
        for policy in experiment.policies
    ]


# ------------------------------------------------------------------ as a page


def page(experiment: Experiment, rows: Sequence[Row]) -> str:
    """Markdown."""
    instances = len(rows) // len(experiment.policies)
    parts = [
        f"# {experiment.name}",
        "",
        f"{len(rows)} simulations: {len(experiment.policies)} policies on {instances} instances "
        "(trace, cluster, world, load and seed). Means are followed by their 95 % confidence "
        f"intervals over instances. Every policy is compared with `{experiment.baseline}` instance "
        "by instance: the ratio of the two (of shares, their difference), its 95 % confidence "
        "interval, and p, the probability of so great a difference if there was none, by a "
        "sign-flip test corrected for the number of policies (Holm). With n instances p cannot "
        "be below 2^(1-n).",
        "",
    ]
    for metric in experiment.metrics:
        parts += [f"## {title(metric)}", "", *_table(experiment, rows, metric), ""]
    return "\n".join(parts)


def _table(experiment: Experiment, rows: Sequence[Row], metric: str) -> list[str]:
    found = lines(experiment, rows, metric)
    if all(line.value is None for line in found):
        return ["No run has it."]
    against = "ratio" if is_ratio(metric) else "difference"
    head = f"| policy | mean | ± | {against} | 95 % interval | p | |"
    return [head, "|---|---:|---:|---:|---:|---:|---|", *(_row(line, metric) for line in found)]


def _row(line: Line, metric: str) -> str:
    value, verdict = line.value, line.against
    cells = [f"`{line.policy}`"]
    cells += [number(value.mean), number(value.half)] if value else ["–", "–"]
    if verdict:
        between = f"{number(verdict.low)} … {number(verdict.high)}"
        cells += [number(verdict.effect), between, probability(line.p), line.said(metric)]
    else:
        cells += ["", "", "", ""]
    return f"| {' | '.join(cells)} |"


def title(metric: str) -> str:
    """As a heading."""
    words = metric.removesuffix("_seconds").replace("_", " ").replace("jct", "JCT")
    unit = " (s)" if metric.endswith("_seconds") else ""
    return words[0].upper() + words[1:] + unit


def probability(value: float) -> str:
    """To three digits, and never as if it were none."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def number(value: float) -> str:
    """Four digits that count."""
    if not math.isfinite(value):
        return "–"
    if value and abs(value) < 1e4:
        return f"{value:.4g}"
    return f"{value:,.0f}"


# ------------------------------------------------------------------ as a table for a paper


def latex(experiment: Experiment, rows: Sequence[Row]) -> str:
    """One row for each policy; what differs from the baseline significantly has a mark."""
    every = {metric: lines(experiment, rows, metric) for metric in experiment.metrics}
    shown = [m for m, found in every.items() if any(line.value for line in found)]
    out = [
        "% needs \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{l{'r' * len(shown)}}}",
        "\\toprule",
        " & ".join(["Policy", *(escaped(title(metric)) for metric in shown)]) + " \\\\",
        "\\midrule",
    ]
    for index, policy in enumerate(experiment.policies):
        cells = [_cell(every[metric][index], metric) for metric in shown]
        out.append(" & ".join([f"\\texttt{{{escaped(policy)}}}", *cells]) + " \\\\")
    base = escaped(experiment.baseline)
    note = f"$^{{+}}$ better, $^{{-}}$ worse than \\texttt{{{base}}}, $p<0.05$ (sign flip, Holm)."
    span = f"\\multicolumn{{{len(shown) + 1}}}{{l}}{{\\footnotesize {note}}}"
    return "\n".join([*out, "\\bottomrule", f"{span} \\\\", "\\end{tabular}", ""])


def _cell(line: Line, metric: str) -> str:
    if line.value is None:
        return "--"
    mark = {"better": "^{+}", "worse": "^{-}"}.get(line.said(metric), "")
    half = f" \\pm {number(line.value.half)}" if math.isfinite(line.value.half) else ""
    return f"${number(line.value.mean).replace(',', '{,}')}{half.replace(',', '{,}')}{mark}$"


def escaped(text: str) -> str:
    """As LaTeX wants it."""
    return "".join(f"\\{letter}" if letter in "&%$#_{}" else letter for letter in text)

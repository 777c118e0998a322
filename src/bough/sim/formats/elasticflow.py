"""ElasticFlow's traces (ASPLOS '23), Microsoft's ITP clusters among them: deadlines and iterations.

The run time is `duration`, whole seconds on `num_gpu` devices. With measured speeds it is the
number of iterations over their rate, which is what the authors' own simulator does.
"""

from __future__ import annotations

from bough.sim.formats.rows import Collector, Row, header, table
from bough.sim.formats.speeds import seconds_told_or_measured, sizes_by_rate
from bough.sim.trace import Reading, Source, Trace, TraceJob

#: The two published sets name their columns differently.
NAMES = {"submission_time": "submit_time", "num_iteration": "iteration", "deadline": "ddl"}
REQUIRED = ("job_id", "submit_time", "iteration", "model_name", "ddl", "num_gpu", "duration")


def recognises(source: Source) -> bool:
    """By its deadline beside the iterations."""
    names = {NAMES.get(name, name) for name in header(source)}
    return names.issuperset(REQUIRED)


def read(source: Source, reading: Reading) -> Trace:
    """Read it."""
    collector = Collector(source, reading)
    unit = reading.unit_seconds or 1.0

    def job(row: Row) -> TraceJob:
        submit = row.moment("submit_time", unit)
        deadline = None if row.text("best_effort", "0") == "1" else row.moment("ddl", unit)
        model = row.text("model_name").lower()
        batch = row.whole("batch_size") if "batch_size" in row.columns else 0
        devices = row.devices("num_gpu")
        what = (model, batch, devices)
        seconds = seconds_told_or_measured(collector, reading.kind, row, "iteration", what)
        return collector.job(
            row.text("job_id"),
            submit,
            seconds,
            devices,
            model=model,
            batch=batch,
            deadline=deadline,
            sizes=sizes_by_rate(collector, model, batch, devices),
        )

    collector.each(table(collector, REQUIRED, names=NAMES), job)
    return collector.trace("elasticflow", reading.kind)

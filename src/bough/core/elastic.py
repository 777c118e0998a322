"""Promises first, each with as few devices as keep it; what is left goes where it costs least."""

from __future__ import annotations

import numpy as np

from bough.core.filling import RULES, Rules
from bough.core.leftovers import grow, start_more
from bough.core.policy import Floats, Ints, View
from bough.core.promises import kept
from bough.core.share import fill_in_order, in_order


def promised_first(
    view: View, rules: Rules = RULES, margin: float | Floats = 0.0, most_first: bool = False
) -> tuple[Ints, float]:
    """A size for each row, and when time alone would change it."""
    jobs = view.jobs
    plans = kept(view, rules, margin)
    granted = jobs.lo * (jobs.must != 0)
    some = plans.rows[plans.now > 0]
    granted[some] = np.clip(plans.now[plans.now > 0], jobs.lo[some], jobs.hi[some])
    if int(granted.sum()) > view.devices:
        urgent = in_order(view, jobs.guaranteed == 0, jobs.deadline)
        granted = fill_in_order(view, urgent, granted)
    promised = np.zeros(jobs.n, np.bool_)
    promised[plans.rows] = True
    others = in_order(view, jobs.guaranteed == 0)
    order = np.concatenate([plans.rows, others[~promised[others]]])
    granted = start_more(view, granted, order)
    granted = grow(view, granted, most_first=most_first)
    return granted, plans.wake_at(view.now, granted)

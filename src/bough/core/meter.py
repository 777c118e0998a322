"""How much of each budget has been used, and when it will be used up at the present power.

The meter believes the model of core/energy.py: it runs on what the scheduler has granted, and on
nothing that a body measures. While a budget is used up nothing runs that may be parked, whatever
the policy; policies that ask (``Policy.meters``) are told what they may draw, so that it does not
come to that.
"""

from __future__ import annotations

from typing import Any

from bough.core.model import INFINITY
from bough.core.supply import ONE, Budget, Supply, unit

#: A budget with less than this part left is used up: sums are rounded.
ROUNDING = 1e-9


class Account:
    """One budget: its present window, and what was used in it."""

    __slots__ = ("budget", "ends", "had", "spent", "windows")

    def __init__(self, budget: Budget, now: float) -> None:
        self.budget = budget
        self.ends = now + budget.window_seconds
        #: What may be used in this window with what was carried over, and what was used.
        self.had = budget.amount
        self.spent = 0.0
        #: Windows that are over: (end, had, spent).
        self.windows: list[tuple[float, float, float]] = []

    @property
    def left(self) -> float:
        """What may still be used in this window; below 0: too much was."""
        return self.had - self.spent

    @property
    def is_used_up(self) -> bool:
        """Whether nothing is left of it."""
        return self.left <= ROUNDING * max(self.budget.amount, self.had)

    def turn(self) -> None:
        """The next window begins."""
        left = self.left if self.budget.carry else min(self.left, 0.0)
        self.windows.append((self.ends, self.had, self.spent))
        self.had, self.spent = self.budget.amount + left, 0.0
        self.ends += self.budget.window_seconds


class Meter:
    """All budgets of a cluster, and the power that is drawn now."""

    def __init__(self, supply: Supply) -> None:
        self.supply = supply
        #: Watts of all that jobs hold, as believed.
        self.watts = 0.0
        #: Whether a budget was used up when it was last asked for.
        self.told = False
        self.now = INFINITY
        self.accounts: list[Account] = []

    def advance(self, now: float) -> None:
        """Count up to now, window by window."""
        if self.now == INFINITY:
            self.now = now
            self.accounts = [Account(budget, now) for budget in self.supply.budgets]
        amount, before = self.supply.amount, self.now
        if now <= before:
            return
        for account in self.accounts:
            since, of = before, account.budget.of
            while account.ends <= now:
                account.spent += amount(of, self.watts, since, account.ends)
                since = account.ends
                account.turn()
            account.spent += amount(of, self.watts, since, now)
        self.now = now

    @property
    def is_used_up(self) -> bool:
        """Whether any budget is."""
        return any(account.is_used_up for account in self.accounts)

    def turned(self) -> bool:
        """Whether a budget was used up, or begins anew, since this was last asked."""
        before, self.told = self.told, self.is_used_up
        return before != self.told

    def next_change(self) -> float:
        """When a budget is used up at the present power; or if one is, when it begins anew."""
        found = INFINITY
        for account in self.accounts:
            if account.is_used_up:
                found = min(found, account.ends)
            elif self.watts > 0:
                of = account.budget.of
                amount = account.left * unit(of) / self.watts
                at = (self.supply.series(of) or ONE).reached(self.now, amount)
                # Beyond the window it is another window's.
                found = min(found, at if at < account.ends else INFINITY)
        return found

    def allowance(self) -> float:
        """Watts that may be drawn to the end of every window; inf: as many as one likes."""
        found = INFINITY
        for account in self.accounts:
            series = self.supply.series(account.budget.of) or ONE
            if account.ends == INFINITY:
                continue
            rest = series.integral(self.now, account.ends)
            if rest > 0:
                found = min(found, max(account.left, 0.0) * unit(account.budget.of) / rest)
        return found

    def even(self) -> float:
        """Watts that may be drawn now if each second of a window may use up as much as the others.

        So more is drawn while it costs or emits little.
        """
        found = INFINITY
        for account in self.accounts:
            now = (self.supply.series(account.budget.of) or ONE).at(self.now)
            if account.ends < INFINITY and now > 0:
                seconds = account.ends - self.now
                found = min(found, max(account.left, 0.0) * unit(account.budget.of) / now / seconds)
        return found

    def until(self) -> float:
        """The next moment at which the allowance is another: a window ends, or a step."""
        found = INFINITY
        for account in self.accounts:
            series = self.supply.series(account.budget.of) or ONE
            found = min(found, account.ends, series.next_change(self.now))
        return found

    def state(self) -> Any:
        """Everything that changes, as plain data."""
        accounts = [(a.ends, a.had, a.spent) for a in self.accounts]
        return [self.now, self.watts, self.told, accounts]

    def restore(self, state: Any) -> None:
        """Go on from there; windows that are over are not remembered."""
        self.now, self.watts, self.told, accounts = state
        self.accounts = [Account(budget, self.now) for budget in self.supply.budgets]
        for account, (ends, had, spent) in zip(self.accounts, accounts, strict=False):
            account.ends, account.had, account.spent = ends, had, spent

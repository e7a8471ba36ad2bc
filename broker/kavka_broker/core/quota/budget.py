"""How a budget of the whole cluster is divided among its brokers: by where the traffic is.

`divide` says what each broker should have. Every broker keeps a little, so that traffic that begins there is served,
and seen; the rest goes to where it is asked for. No broker gets more than it asks for while another is short of it.
What nobody asks for is divided like the demand, so that each may grow.

`step` goes there without ever allowing more than the budget: it lowers at once, and raises by what has been free
before. A broker hears of a change a moment later than another, so what is lowered now may be given away in the next
step only. All shares are whole numbers, and together never more than the budget.
"""

from collections.abc import Mapping
from typing import Final

KEPT: Final = 0.04
"""The part of the budget that is kept for brokers without demand, all of them together."""
UNCHANGED: Final = 0.02
"""Shares that differ by less than this part of the budget are left as they are."""


def divide(budget: int, demand: Mapping[int, float]) -> dict[int, int]:
    """The share of each broker, given what its clients ask for."""
    assert budget >= 0, budget
    if not demand:
        return {}
    kept = int(budget * KEPT) // len(demand)
    rest = budget - kept * len(demand)
    wanted = {broker: max(asked - kept, 0.0) for broker, asked in demand.items()}
    total = sum(wanted.values())
    if total <= 0:
        return dict.fromkeys(demand, budget // len(demand))
    if total <= rest:
        return {broker: kept + int(rest * (asked / total)) for broker, asked in wanted.items()}
    level = _level(rest, sorted(wanted.values()))
    return {broker: kept + int(min(asked, level)) for broker, asked in wanted.items()}


def _level(rest: float, wanted: list[float]) -> float:
    """The most that a broker may have, so that all together have `rest`; `wanted` is in order and more than that."""
    assert wanted == sorted(wanted), f"who wants least comes first: {wanted}"
    for index, asked in enumerate(wanted):
        level = rest / (len(wanted) - index)
        if asked >= level:
            return level
        rest -= asked
    return rest


def step(budget: int, shares: Mapping[int, int], wanted: Mapping[int, int]) -> dict[int, int]:
    """The shares to set now, on the way from those that hold to those that are wanted."""
    is_settled = shares.keys() == wanted.keys() and sum(shares.values()) <= budget
    if is_settled and all(abs(wanted[broker] - shares[broker]) < budget * UNCHANGED for broker in wanted):
        return dict(shares)
    free = max(budget - sum(shares.values()), 0)
    found = {}
    for broker in sorted(wanted):
        more = min(max(wanted[broker] - shares.get(broker, 0), 0), free)
        free -= more
        found[broker] = min(wanted[broker], shares.get(broker, 0) + more)
    assert sum(found.values()) <= max(budget, sum(shares.values())), f"{found} is more than {budget}"
    return found

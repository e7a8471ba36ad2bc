"""Why a client has the limits that it has: for each key every quota that could hold, and what keeps it from that.

Which one wins is the broker's own rule (`kavka_broker.core.quota`); this asks it and puts the answer in words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from kavka_broker.core.quota.entity import CLIENT_KEYS, DEFAULT, Entity, IpEntity, Prefix, QuotaKey
from kavka_broker.core.quota.entity_limits import in_force, observed
from kavka_broker.core.quota.resolve import LEVELS, Share, as_seen, candidates, resolve, resolve_ip, seen, share_of
from kavka_operator.api.quota import AnyEntity

E = TypeVar("E", Entity, IpEntity)
Limits = Mapping[AnyEntity, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Choice:
    """A quota that could hold for the client. `limit` is None where it is not set."""

    level: str
    entity: AnyEntity
    limit: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The limit of one key that holds for a client, or is only observed, and all choices, the most specific first.

    `share` says who counts together with the client under it.
    """

    key: str
    choices: tuple[Choice, ...]
    winner: Choice
    is_observed: bool = False
    share: Share | None = None

    @property
    def hidden(self) -> tuple[AnyEntity, ...]:
        """The quotas that are set and do not hold."""
        return tuple(choice.entity for choice in self.choices if choice.limit is not None and choice is not self.winner)


def explain(limits: Limits, user: str, client_id: str, now_ms: int, node_id: int) -> list[Explanation]:
    """An explanation for each key that limits the client on a node, then for each that is observed."""
    by_key = turned(limits)
    held, watched = in_force(by_key, now_ms, node_id), observed(by_key)
    found = [_explain(key, _of_clients(held[key]), user, client_id) for key in sorted(held)]
    seen = [_explain(key, _of_clients(watched[key]), user, client_id, is_observed=True) for key in sorted(watched)]
    return [explanation for explanation in (*found, *seen) if explanation is not None]


def explain_address(limits: Limits, ip: str, now_ms: int, node_id: int) -> Explanation | None:
    """An explanation of the limit on an address, however it is written; None where nothing limits it."""
    rates = in_force(turned(limits), now_ms, node_id).get(QuotaKey.CONNECTION_CREATION_RATE, {})
    of_addresses = as_seen(rates)
    address = seen(IpEntity(ip))
    limit = resolve_ip(of_addresses, str(address.ip))
    if limit is None:
        return None
    named = {address: "address", IpEntity(DEFAULT): "default address"}
    winner = next(entity for entity in named if of_addresses.get(entity) == limit)
    return _chosen(QuotaKey.CONNECTION_CREATION_RATE, named, of_addresses, winner)


def unlimited(explanations: list[Explanation]) -> list[str]:
    """The keys of clients that nothing limits."""
    limited = {explanation.key for explanation in explanations if not explanation.is_observed}
    return sorted(CLIENT_KEYS - limited)


def turned(limits: Limits) -> dict[str, dict[AnyEntity, float]]:
    """Limits by key, and by entity below it."""
    by_key: dict[str, dict[AnyEntity, float]] = {}
    for entity, values in limits.items():
        for key, value in values.items():
            by_key.setdefault(key, {})[entity] = value
    return by_key


def _of_clients(limits: Mapping[AnyEntity, float]) -> dict[Entity, float]:
    return {entity: limit for entity, limit in limits.items() if isinstance(entity, Entity)}


def _explain(
    key: str, limits: Mapping[Entity, float], user: str, client_id: str, *, is_observed: bool = False
) -> Explanation | None:
    prefixes = {entity.client_id for entity in limits if isinstance(entity.client_id, Prefix)}
    lengths = sorted({len(prefix.text) for prefix in prefixes}, reverse=True)
    effective = resolve(limits, user, client_id, lengths)
    if effective is None:
        return None
    named = _named(limits, user, client_id, lengths)
    chosen = _chosen(key, named, limits, effective.entity, is_observed=is_observed)
    return replace(chosen, share=share_of(effective, user, client_id))


def _named(limits: Mapping[Entity, float], user: str, client_id: str, lengths: Sequence[int]) -> dict[Entity, str]:
    """The entities that could win, with their levels in words; prefixes that are set stand behind the whole name."""
    named: dict[Entity, str] = {}
    for level, entity in enumerate(candidates(user, client_id), 1):
        named[entity] = f"{level} {LEVELS[level]}"
        if entity.client_id == client_id:
            shorter = [
                Entity(entity.user, Prefix.of(client_id[:length])) for length in lengths if length <= len(client_id)
            ]
            named |= {prefix: f"{level} {LEVELS[level]}, by prefix" for prefix in shorter if prefix in limits}
    return named


def _chosen(
    key: str,
    named: Mapping[E, str],
    limits: Mapping[E, float],
    winner: E,
    *,
    is_observed: bool = False,
) -> Explanation:
    choices = {entity: Choice(level, entity, limits.get(entity), "not set") for entity, level in named.items()}
    for entity, choice in choices.items():
        if entity == winner:
            choices[entity] = replace(choice, why="holds" if not is_observed else "is observed")
        elif choice.limit is not None:
            choices[entity] = replace(choice, why=f"hidden by {_short(named[winner])}")
    return Explanation(key, tuple(choices.values()), choices[winner], is_observed)


def _short(level: str) -> str:
    """A level in few words: its number where it has one."""
    return f"level {level[0]}" if level[0].isdecimal() else f"the {level}"

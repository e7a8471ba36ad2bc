"""Which quotas meet the same clients, and which of them wins.

Two entities meet when some client belongs to both. Of two that meet, the one of the lower level wins for each key that
both limit (`kavka_broker.core.quota.resolve` is the rule; this only asks it about pairs). A quota that is hidden for
all of its clients has no effect at all, which is what people find out last: a default on users hides every quota on a
client id.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kavka_broker.core.quota.entity import Entity, Part
from kavka_broker.core.quota.resolve import LEVELS, Effective, candidates, resolve
from kavka_operator.api.quota import RELATED_MAX, RelatedQuota
from kavka_operator.quota.entities import AnyEntity, entity_text

Limits = Mapping[AnyEntity, Mapping[str, float]]

_STRANGER = "\0"  # stands for a name that no quota has


@dataclass(frozen=True, slots=True)
class Explanation:
    """What applies to one client for one key.

    `order` are all levels, most specific first, with what each would allow.
    """

    key: str
    effective: Effective | None
    order: tuple[tuple[int, Entity, float | None], ...]


def level_of(entity: AnyEntity) -> int | None:
    """1, the most specific, to 8; None for an address."""
    if not isinstance(entity, Entity):
        return None
    user, client_id = _example(entity.user), _example(entity.client_id)
    return candidates(user, client_id).index(entity) + 1


def shadowed_by(entity: AnyEntity, limits: Limits) -> tuple[RelatedQuota, ...]:
    """The quotas that win over `entity` for clients that both meet."""
    return _related(entity, limits, winners=True)


def shadows(entity: AnyEntity, limits: Limits) -> tuple[RelatedQuota, ...]:
    """The quotas that `entity` wins over for clients that both meet."""
    return _related(entity, limits, winners=False)


def explain(limits: Limits, user: str, client_id: str) -> list[Explanation]:
    """For each key that limits this client: who wins, and what the eight levels say."""
    clients = {entity: values for entity, values in limits.items() if isinstance(entity, Entity)}
    keys = sorted({key for values in clients.values() for key in values})
    return [_explain(clients, key, user, client_id) for key in keys]


def _explain(limits: Mapping[Entity, Mapping[str, float]], key: str, user: str, client_id: str) -> Explanation:
    of_key = {entity: values[key] for entity, values in limits.items() if key in values}
    order = tuple((level, each, of_key.get(each)) for level, each in enumerate(candidates(user, client_id), 1))
    return Explanation(key, resolve(of_key, user, client_id), order)


def _related(entity: AnyEntity, limits: Limits, *, winners: bool) -> tuple[RelatedQuota, ...]:
    level, own = level_of(entity), limits.get(entity, {})
    if level is None or not isinstance(entity, Entity):
        return ()
    found = []
    for other, values in limits.items():
        keys = tuple(sorted(set(own) & set(values)))
        other_level = level_of(other)
        if not keys or other_level is None or not isinstance(other, Entity) or not _meet(entity, other):
            continue
        if (other_level < level) if winners else (other_level > level):
            winner, loser = (other, entity) if winners else (entity, other)
            clients: Literal["All", "Some"] = "All" if _covers(winner, loser) else "Some"
            found.append((other_level, RelatedQuota(entity=entity_text(other), keys=keys, clients=clients)))
    return tuple(related for _, related in sorted(found, key=lambda each: (each[0], each[1].entity))[:RELATED_MAX])


def _meet(first: Entity, second: Entity) -> bool:
    """Whether some client belongs to both: two different names of one part keep them apart, nothing else does."""
    return _parts_meet(first.user, second.user) and _parts_meet(first.client_id, second.client_id)


def _parts_meet(first: Part, second: Part) -> bool:
    return not (isinstance(first, str) and isinstance(second, str)) or first == second


def _covers(wide: Entity, narrow: Entity) -> bool:
    """Whether every client of `narrow` belongs to `wide`."""
    return _part_covers(wide.user, narrow.user) and _part_covers(wide.client_id, narrow.client_id)


def _part_covers(wide: Part, narrow: Part) -> bool:
    return not isinstance(wide, str) or wide == narrow


def _example(part: Part) -> str:
    return part if isinstance(part, str) else _STRANGER


def level_words(level: int) -> str:
    """A level in words."""
    return LEVELS[level]

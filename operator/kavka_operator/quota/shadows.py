"""Which quotas meet the same clients, and which of them wins.

Two entities meet when some client belongs to both. Of two that meet, the one of the lower level wins for each key that
both limit (`kavka_broker.core.quota.resolve` is the rule; this only asks it about pairs). A quota that is hidden for
all of its clients has no effect at all, which is what people find out last: a default on users hides every quota on a
client id.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Literal

from kavka_broker.core.quota.entity import DEFAULT, Entity, Part
from kavka_broker.core.quota.resolve import candidates
from kavka_operator.api.quota import KAFKA_KEYS, RELATED_MAX, AnyEntity, RelatedQuota
from kavka_operator.domain.quota_entities import entity_text

Limits = Mapping[AnyEntity, Mapping[str, float]]

LEVELS_KEPT_MAX = 65_536
_STRANGER = "\0"  # stands for a name that no quota has


class Neighbours:
    """The limits by the parts of their entities, to find the few of thousands that may meet an entity."""

    def __init__(self, limits: Limits) -> None:
        self.limits = {entity: of_kafka(values) for entity, values in limits.items()}
        self._by_user: dict[Part, list[Entity]] = {}
        self._by_client: dict[Part, list[Entity]] = {}
        for entity in limits:
            if isinstance(entity, Entity):
                self._by_user.setdefault(entity.user, []).append(entity)
                self._by_client.setdefault(entity.client_id, []).append(entity)

    def of(self, entity: Entity) -> Iterable[Entity]:
        """The entities that may meet `entity`, and some that do not."""
        by_user, by_client = self._meeting(self._by_user, entity.user), self._meeting(self._by_client, entity.client_id)
        shorter = min((by_user, by_client), key=lambda lists: sum(map(len, lists)))
        return chain.from_iterable(shorter)

    @staticmethod
    def _meeting(lists: Mapping[Part, list[Entity]], part: Part) -> list[list[Entity]]:
        if not isinstance(part, str):
            return list(lists.values())
        return [lists[name] for name in (part, DEFAULT, None) if name in lists]


def of_kafka(values: Mapping[str, float]) -> Mapping[str, float]:
    """The limits by Kafka's keys; those for a while and those that are only observed hide nothing."""
    if all(key in KAFKA_KEYS for key in values):
        return values
    return {key: value for key, value in values.items() if key in KAFKA_KEYS}


@lru_cache(maxsize=LEVELS_KEPT_MAX)
def level_of(entity: AnyEntity) -> int | None:
    """The level of an entity: 1, the most specific, to 8; None for an address."""
    if not isinstance(entity, Entity):
        return None
    user, client_id = _example(entity.user), _example(entity.client_id)
    return candidates(user, client_id).index(entity) + 1


def shadowed_by(entity: AnyEntity, limits: Limits | Neighbours) -> tuple[RelatedQuota, ...]:
    """The quotas that win over `entity` for clients that both meet."""
    return _related(entity, limits if isinstance(limits, Neighbours) else Neighbours(limits), winners=True)


def shadows(entity: AnyEntity, limits: Limits | Neighbours) -> tuple[RelatedQuota, ...]:
    """The quotas that `entity` wins over for clients that both meet."""
    return _related(entity, limits if isinstance(limits, Neighbours) else Neighbours(limits), winners=False)


def _related(entity: AnyEntity, near: Neighbours, *, winners: bool) -> tuple[RelatedQuota, ...]:
    level, own = level_of(entity), near.limits.get(entity, {})
    if level is None or not isinstance(entity, Entity):
        return ()
    found = []
    for other in near.of(entity):
        other_level = level_of(other)
        assert other_level is not None, "addresses are no neighbours"
        if not _meet(entity, other):
            continue
        keys = tuple(sorted(set(own) & set(near.limits[other])))
        if keys and ((other_level < level) if winners else (other_level > level)):
            winner, loser = (other, entity) if winners else (entity, other)
            clients: Literal["All", "Some"] = "All" if _covers(winner, loser) else "Some"
            found.append((other_level, RelatedQuota(entity=entity_text(other), keys=keys, clients=clients)))
    return tuple(related for _, related in sorted(found, key=lambda pair: (pair[0], pair[1].entity))[:RELATED_MAX])


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

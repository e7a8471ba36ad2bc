"""Limits that would have fitted those who were held back, as ClientQuota resources to review."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_operator.api.quota import AnyEntity
from kavka_operator.quota.recommendation import KEYS, Fit, Recommendation

PARTS: Final = frozenset({"user", "client-id"})
Row = Mapping[str, Any]


def recommendations(rows: Iterable[Row], limits: Mapping[AnyEntity, Mapping[str, float]]) -> list[Recommendation]:
    """Return what to set, by entity. `rows` are those of the question, `limits` what is set now: a limit that was
    raised meanwhile, or taken away, needs none. Prefixes of client ids are no entity of a resource.
    """
    fits: dict[Entity, list[Fit]] = {}
    for row in rows:
        entity, key = _entity(row["quota_entity"]), KEYS[row["quota_type"]]
        now = None if entity is None else limits.get(entity, {}).get(key)
        if entity is not None and now is not None and now < row["fitting_limit"]:
            place = str(row["node"])
            fit = Fit(key, int(row["fitting_limit"]), row["demand"], row["rate"], place, row["minutes"], now)
            fits.setdefault(entity, []).append(fit)
    return [_recommendation(entity, found, limits[entity]) for entity, found in fits.items()]


def _recommendation(entity: Entity, fits: list[Fit], limits: Mapping[str, float]) -> Recommendation:
    fitted = {fit.key for fit in fits}
    return Recommendation(entity, tuple(fits), {key: limit for key, limit in limits.items() if key not in fitted})


def _entity(text: str | None) -> Entity | None:
    parts = json.loads(text or "{}")
    if not parts or not parts.keys() <= PARTS:
        return None
    named = {kind: DEFAULT if name is None else name for kind, name in parts.items()}
    return Entity(named.get("user"), named.get("client-id"))

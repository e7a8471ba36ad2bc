"""Client quotas: limits by key and entity (KIP-546).

`limits` is what enforcement reads. An entity is keyed whole, and the default of a part is a value of its own, never a
string (see `core.quota.entity`); on the wire the default is a null name.
"""

from collections.abc import Iterator
from typing import Final

from kavka_broker.core.quota.entity import DEFAULT, Default, Entity, IpEntity, Prefix
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord, EntityData

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)

AnyEntity = Entity | IpEntity


class Quotas:
    """Every limit that is set."""

    def __init__(self) -> None:
        self.limits: dict[str, dict[AnyEntity, float]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotas) and self.limits == other.limits

    __hash__ = None  # type: ignore[assignment]

    def of(self, entity: AnyEntity) -> dict[str, float]:
        """Limits of exactly this entity, by key."""
        return {key: limits[entity] for key, limits in self.limits.items() if entity in limits}

    def copy(self) -> "Quotas":
        copy = Quotas()
        copy.limits = {key: dict(limits) for key, limits in self.limits.items()}
        return copy

    def replay(self, record: ClientQuotaRecord) -> None:
        entity = _replayed_entity(record)
        if not record.remove:
            self.limits.setdefault(record.key, {})[entity] = record.value
            return
        limits = self.limits.get(record.key, {})
        limits.pop(entity, None)
        if not limits:
            self.limits.pop(record.key, None)

    def records(self) -> Iterator[ClientQuotaRecord]:
        for key in sorted(self.limits):
            for entity, limit in sorted(self.limits[key].items(), key=lambda item: str(item[0])):
                yield ClientQuotaRecord(entity_data(entity), key, limit, remove=False)


def parts_of(entity: AnyEntity) -> dict[str, str | None]:
    """Types and names of an entity, as the wire has them."""
    if isinstance(entity, IpEntity):
        return {IP: _name(entity.ip)}
    both = ((USER, entity.user), (CLIENT_ID, entity.client_id))
    return {entity_type: _name(part) for entity_type, part in both if part is not None}


def _replayed_entity(record: ClientQuotaRecord) -> AnyEntity:
    """The entity of a record, judged when it was written; Apache Kafka lets host names stand for addresses."""
    named = {part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in record.entity}
    return IpEntity(named[IP]) if IP in named else Entity(named.get(USER), named.get(CLIENT_ID))


def _name(part: str | Default) -> str | None:
    assert not isinstance(part, Prefix), f"{part} is a name and a mark in the metadata"
    return None if isinstance(part, Default) else part


def entity_data(entity: AnyEntity) -> list[EntityData]:
    """Types and names of an entity, as records have them."""
    return [EntityData(entity_type, name) for entity_type, name in parts_of(entity).items()]

"""Client quotas: limits by key and entity, altered by admins and asked for with filters (KIP-546).

`limits` is what enforcement reads. An entity is keyed whole, and the default of a part is a value of its own, never a
string (see `core.quota.entity`); on the wire the default is a null name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import ip_address
from typing import Final

from kavka_broker.core.decision import Decision
from kavka_broker.core.quota.entity import CLIENT_KEYS, DEFAULT, IP_KEYS, WHOLE_KEYS, Default, Entity, IpEntity
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord, EntityData

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)

#: How far from a whole number a limit may be and still count as one: it travels as a double.
WHOLE_TOLERANCE: Final = 1e-6

AnyEntity = Entity | IpEntity
Parts = Mapping[str, str | None]  # entity type -> name, None for the default


class MatchType(IntEnum):
    """How a filter looks at one type of an entity."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@dataclass(frozen=True, slots=True)
class Component:
    """One condition of a filter."""

    entity_type: str
    match_type: int
    match: str | None = None


@dataclass(frozen=True, slots=True)
class Alteration:
    """New limits of one entity; None takes a limit away."""

    parts: Sequence[tuple[str, str | None]]
    limits: Sequence[tuple[str, float | None]]


class Quotas:
    """Every limit that is set."""

    def __init__(self) -> None:
        self.limits: dict[str, dict[AnyEntity, float]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotas) and self.limits == other.limits

    __hash__ = None  # type: ignore[assignment]

    def of(self, entity: AnyEntity) -> dict[str, float]:
        """The limits of exactly this entity, by key."""
        return {key: limits[entity] for key, limits in self.limits.items() if entity in limits}

    def alter(self, alteration: Alteration) -> Decision[AnyEntity]:
        """Set and take away limits of one entity. Raises BrokerError with INVALID_REQUEST."""
        entity = entity_of(alteration.parts)
        allowed = IP_KEYS if isinstance(entity, IpEntity) else CLIENT_KEYS
        records = []
        keys = [key for key, _ in alteration.limits]
        if len(set(keys)) < len(keys):
            raise _invalid(f"a quota of {entity} is there twice; send each key once")
        for key, limit in alteration.limits:
            if key not in allowed and limit is not None:
                words = ", ".join(sorted(allowed))
                raise _invalid(f'"{key}" is not a quota of {entity}; it can have {words}')
            if limit is None:
                if entity in self.limits.get(key, ()):
                    records.append(ClientQuotaRecord(_entity_data(entity), key, 0.0, remove=True))
                continue
            _check_limit(key, limit)
            if self.limits.get(key, {}).get(entity) != limit:
                records.append(ClientQuotaRecord(_entity_data(entity), key, limit, remove=False))
        return Decision(records, entity)

    def matching(
        self, components: Iterable[Component], *, strict: bool
    ) -> Iterator[tuple[AnyEntity, str, float] | None]:
        """Each limit with its entity and key, or None where the filter does not let it through, as one asks for the
        next. Raises BrokerError for a filter without sense.
        """
        conditions = _conditions(components)
        every = [(entity, key, limit) for key in sorted(self.limits) for entity, limit in self.limits[key].items()]
        return (one if _matches(parts_of(one[0]), conditions, strict=strict) else None for one in every)

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
                yield ClientQuotaRecord(_entity_data(entity), key, limit, remove=False)


def entity_of(parts: Sequence[tuple[str, str | None]]) -> AnyEntity:
    """The entity that these types and names make. A null name is the default of its type."""
    named: dict[str, str | Default] = {}
    if not parts:
        raise _invalid("a quota needs an entity; name a user, a client-id or an ip")
    for entity_type, name in parts:
        if entity_type not in TYPES:
            raise _invalid(f'"{entity_type}" is not a type of entity; write one of {", ".join(TYPES)}')
        if entity_type in named:
            raise _invalid(f"{entity_type} is there twice; name it once")
        if name == "":
            raise _invalid(f"the {entity_type} is empty; name it, or send a null name for the default")
        named[entity_type] = DEFAULT if name is None else name
    if IP not in named:
        return Entity(named.get(USER), named.get(CLIENT_ID))
    if len(named) > 1:
        raise _invalid("an ip stands alone; take the user and the client-id away")
    ip = named[IP]
    if not isinstance(ip, Default) and not _is_address(ip):
        raise _invalid(f'"{ip}" is not an address; write it like 192.0.2.7 or 2001:db8::7')
    return IpEntity(ip)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def parts_of(entity: AnyEntity) -> dict[str, str | None]:
    """The types and names of an entity, as the wire has them."""
    if isinstance(entity, IpEntity):
        return {IP: _name(entity.ip)}
    both = ((USER, entity.user), (CLIENT_ID, entity.client_id))
    return {entity_type: _name(part) for entity_type, part in both if part is not None}


def _replayed_entity(record: ClientQuotaRecord) -> AnyEntity:
    """The entity of a record, judged when it was written; Apache Kafka lets host names stand for addresses."""
    named = {part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in record.entity}
    return IpEntity(named[IP]) if IP in named else Entity(named.get(USER), named.get(CLIENT_ID))


def _name(part: str | Default) -> str | None:
    return None if isinstance(part, Default) else part


def _entity_data(entity: AnyEntity) -> list[EntityData]:
    return [EntityData(entity_type, name) for entity_type, name in parts_of(entity).items()]


def _check_limit(key: str, limit: float) -> None:
    if not limit > 0:  # not a number either
        raise _invalid(f"{key} is {limit:g}; write more than 0, or remove the quota")
    greatest = WHOLE_KEYS.get(key)
    if greatest is None:
        return
    if limit > greatest:
        raise _invalid(f"{key} is {limit:g}; write at most {greatest}")
    if abs(limit - round(limit)) > WHOLE_TOLERANCE:
        raise _invalid(f"{key} is {limit}; write a whole number")


def _conditions(components: Iterable[Component]) -> dict[str, Component]:
    conditions: dict[str, Component] = {}
    for component in components:
        entity_type = component.entity_type
        if not entity_type:
            raise _invalid("a filter names an empty type of entity")
        if entity_type in conditions:
            raise _invalid(f"the filter names {entity_type} twice")
        if entity_type not in TYPES:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, f'"{entity_type}" is not a type of entity')
        match component.match_type:
            case MatchType.EXACT:
                if component.match is None:
                    raise _invalid(f"the filter wants an exact {entity_type} and names none")
            case MatchType.DEFAULT | MatchType.SPECIFIED:
                if component.match is not None:
                    raise _invalid(f'the filter names the {entity_type} "{component.match}" and does not match by name')
            case unknown:
                raise _invalid(f"{unknown} is not a way to match; 0 is exact, 1 the default, 2 any")
        conditions[entity_type] = component
    if IP in conditions and len(conditions) > 1:
        raise _invalid("an ip stands alone in a filter; take the user and the client-id away")
    return conditions


def _matches(parts: Parts, conditions: Mapping[str, Component], *, strict: bool) -> bool:
    if strict and len(parts) != len(conditions):
        return False
    return all(
        entity_type in parts and (condition.match_type == MatchType.SPECIFIED or parts[entity_type] == condition.match)
        for entity_type, condition in conditions.items()
    )


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, message)

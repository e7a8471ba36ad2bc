"""Limits of an entity are set and taken away (KIP-546)."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image.quotas import CLIENT_ID, IP, TYPES, USER, AnyEntity, Quotas, entity_data
from kavka_broker.core.quota.entity import CLIENT_KEYS, DEFAULT, IP_KEYS, Default, Entity, IpEntity
from kavka_broker.core.quota.entity_limits import PREFIX, greatest, is_own
from kavka_broker.core.quota.resolve import is_address
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord

#: How far from a whole number a limit may be and still count as one: it travels as a double.
WHOLE_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Alteration:
    """New limits of one entity; None takes a limit away."""

    parts: Sequence[tuple[str, str | None]]
    limits: Sequence[tuple[str, float | None]]


def alter(quotas: Quotas, alteration: Alteration, hosts: AbstractSet[str] = frozenset()) -> Decision[AnyEntity]:
    """Set and take away limits of one entity; `hosts` are names that were found to be those of hosts. Raises
    BrokerError with INVALID_REQUEST.
    """
    entity = entity_of(alteration.parts)
    if isinstance(entity, IpEntity):
        _check_address(quotas, entity, hosts)
    allowed = IP_KEYS if isinstance(entity, IpEntity) else CLIENT_KEYS
    records = []
    keys = [key for key, _ in alteration.limits]
    if len(set(keys)) < len(keys):
        raise _invalid(f"a quota of {entity} is named twice; send each key once")
    for key, limit in alteration.limits:
        is_known = key in allowed or is_own(key, of_address=isinstance(entity, IpEntity))
        if not is_known and limit is not None:
            words = ", ".join(sorted(allowed))
            raise _invalid(f'"{key}" is not a quota of {entity}; it can have {words}')
        if (
            key == PREFIX
            and limit is not None
            and not (isinstance(entity, Entity) and isinstance(entity.client_id, str))
        ):
            raise _invalid(f"{key} needs a client-id by name, which is the prefix; {entity} has none")
        if limit is None:
            if entity in quotas.limits.get(key, ()):
                records.append(ClientQuotaRecord(entity_data(entity), key, 0.0, remove=True))
            continue
        _check_limit(key, limit)
        assert limit > 0, f"{key} of {entity} is {limit}"
        if quotas.limits.get(key, {}).get(entity) != limit:
            records.append(ClientQuotaRecord(entity_data(entity), key, limit, remove=False))
    return Decision(records, entity)


def entity_of(parts: Sequence[tuple[str, str | None]]) -> AnyEntity:
    """The entity that these types and names make. A null name is the default of its type."""
    named: dict[str, str | Default] = {}
    if not parts:
        raise _invalid("a quota needs an entity; name a user, a client-id or an ip")
    for entity_type, name in parts:
        if entity_type not in TYPES:
            raise _invalid(f'"{entity_type}" is not a type of entity; write one of {", ".join(TYPES)}')
        if entity_type in named:
            raise _invalid(f"{entity_type} is named twice; name it once")
        if name == "":
            raise _invalid(f"the {entity_type} is empty; name it, or send a null name for the default")
        named[entity_type] = DEFAULT if name is None else name
    assert named, parts
    if IP not in named:
        return Entity(named.get(USER), named.get(CLIENT_ID))
    if len(named) > 1:
        raise _invalid("Invalid quota entity combination: an ip stands alone; take the user and the client-id away")
    ip = named[IP]
    assert len(named) == 1, named
    return IpEntity(ip)


def _check_address(quotas: Quotas, entity: IpEntity, hosts: AbstractSet[str]) -> None:
    ip = entity.ip
    if isinstance(ip, Default) or ip in hosts or is_address(ip):
        return
    if not any(entity in limits for limits in quotas.limits.values()):  # what is set can be removed
        raise _invalid(f'"{ip}" is not a valid IP or resolvable host; write one like 192.0.2.7 or 2001:db8::7')


def _check_limit(key: str, limit: float) -> None:
    if not limit > 0:  # this refuses NaN as well
        raise _invalid(f"{key} is {limit:g}; write more than 0, or remove the quota")
    highest = greatest(key)
    if highest is None:
        return
    if limit > float(highest):  # as Apache Kafka compares: the greatest long is rounded up
        raise _invalid(f"{key} is {limit:g}; write at most {highest}")
    if abs(limit - round(limit)) > WHOLE_TOLERANCE:
        raise _invalid(f"{key} is {limit}; write a whole number")


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, message)

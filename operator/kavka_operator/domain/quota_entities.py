"""Between the broker's own `Entity` and what the admin protocol calls it.

The admin protocol names the parts `user`, `client-id`, `ip` and spells the default as null. In `Entity` the default is
a type of its own (`api/quota.py` makes one of what a resource says).
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from kavka_broker.core.quota.entity import DEFAULT, Default, Entity, IpEntity, Part, Prefix
from kavka_broker.core.quota.entity_limits import OVERRIDE_FROM_MS, OVERRIDE_UNTIL_MS, PREFIX, prefixed
from kavka_broker.core.quota.resolve import seen
from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import AnyEntity

#: The year 10000, of which no calendar here knows.
LATEST_MS = 253_402_300_800_000


def to_wire(entity: AnyEntity) -> dict[str, str | None]:
    """The parts of an entity by their names in the admin protocol; None is the default."""
    parts: dict[str, Part] = (
        {"ip": entity.ip} if isinstance(entity, IpEntity) else {"user": entity.user, "client-id": entity.client_id}
    )
    return {kind: None if isinstance(part, Default) else part for kind, part in parts.items() if part is not None}


def from_wire(parts: Mapping[str, str | None]) -> AnyEntity | None:
    """The entity that the admin protocol describes, or None for a kind that we do not know."""
    named: dict[str, Part] = {kind: DEFAULT if name is None else name for kind, name in parts.items()}
    if set(named) == {"ip"}:
        return IpEntity(named["ip"] or DEFAULT)
    if named and set(named) <= {"user", "client-id"}:
        return Entity(named.get("user"), named.get("client-id"))
    return None


def as_meant(entity: AnyEntity, values: Mapping[str, float]) -> AnyEntity:
    """The entity as brokers take it, by its quotas: one of them may say that its client id is a prefix."""
    if isinstance(entity, IpEntity):
        return seen(entity)
    return prefixed(entity) if PREFIX in values else entity


def as_set(entity: AnyEntity) -> AnyEntity:
    """The entity as its quotas are set: by the text of a prefix."""
    if isinstance(entity, Entity) and isinstance(entity.client_id, Prefix):
        return Entity(entity.user, entity.client_id.text)
    return entity


def entity_text(entity: AnyEntity) -> str:
    """The entity in few characters, for a column: `user=alice client-id=<default>`."""
    return " ".join(
        f"{kind}={'<default>' if name is None else _quoted(name)}" for kind, name in to_wire(entity).items()
    )


def _quoted(name: str) -> str:
    plain = name and name != "<default>" and not any(character in name for character in ' "=')
    return name if plain else f'"{name}"'


def limit_text(key: str, value: float) -> str:
    """The value of one of Kafka's keys of quotas for a person: an amount, or the moment of an override, where it is one
    of a calendar.
    """
    if key in (OVERRIDE_FROM_MS, OVERRIDE_UNTIL_MS) and 0 <= value < LATEST_MS:
        return f"{datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    return spell(value)

"""Which quota applies to a client.

When a request arrives, the most specific entity that has a value for the quota's key wins. The others are shadowed:
they are neither added up nor is the smallest of them taken, so a generous quota on the user lifts a strict one on the
client id. The order is that of KIP-55:

    level  user     client id
      1    by name  by name
      2    by name  default
      3    by name  -
      4    default  by name
      5    default  default
      6    default  -
      7    -        by name
      8    -        default

Clients that share a quota share its allowance: everybody of one user under levels 3 and 6, everybody of one client id
under 7 and 8. A default is not one pot for all, it gives each name its own. `share_of` says who counts together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address

from kavka_broker.core.client_names import NAME_CHARACTERS_MAX, shortened
from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity, Prefix

LEVELS = {
    1: "user and client id",
    2: "user and default client id",
    3: "user",
    4: "default user and client id",
    5: "default user and default client id",
    6: "default user",
    7: "client id",
    8: "default client id",
}

_STRANGER = "\0stranger"  # stands for a name that no quota has
OF_A_CALLBACK = 0
"""The level of a limit that a callback class has named."""


@dataclass(frozen=True, slots=True)
class Effective:
    """The quota that applies, and those that it hides."""

    entity: Entity
    level: int  # 1, the most specific, to 8; or OF_A_CALLBACK
    limit: float  # in the unit of the key, per broker
    shadows: tuple[Entity, ...]

    def __post_init__(self) -> None:
        assert self.level == OF_A_CALLBACK or self.level in LEVELS, self.level
        assert self.limit >= 0, f"{self.entity} has the limit {self.limit}"
        assert self.entity not in self.shadows, f"{self.entity} hides itself"


@dataclass(frozen=True, slots=True)
class Share:
    """The part of the traffic that is counted together: None stands for any name."""

    user: str | None
    client_id: str | None


def is_of_one_share(effective: Effective | None) -> bool:
    """Whether a quota is on names alone: there is one share of it, whatever clients call themselves."""
    if effective is None or effective.level == OF_A_CALLBACK:
        return False
    parts = (effective.entity.user, effective.entity.client_id)
    return all(part is None or (isinstance(part, str) and not isinstance(part, Prefix)) for part in parts)


def as_kept(entity: Entity) -> Entity:
    """Return the entity with its client id as the client ids of requests are kept, see `core.client_names`."""
    part = entity.client_id
    if isinstance(part, Prefix) or not isinstance(part, str) or len(part) <= NAME_CHARACTERS_MAX:
        return entity
    return replace(entity, client_id=shortened(part))


def candidates(user: str, client_id: str) -> tuple[Entity, ...]:
    """Entities that can limit this client, the most specific first."""
    return (
        Entity(user, client_id),
        Entity(user, DEFAULT),
        Entity(user, None),
        Entity(DEFAULT, client_id),
        Entity(DEFAULT, DEFAULT),
        Entity(DEFAULT, None),
        Entity(None, client_id),
        Entity(None, DEFAULT),
    )


def resolve(
    limits: Mapping[Entity, float], user: str, client_id: str, prefix_lengths: Iterable[int] = ()
) -> Effective | None:
    """The quota that applies, or None where nothing limits this client.

    `prefix_lengths` are the lengths that prefixes among the limits have, the longest first. A quota on a prefix stands
    behind one on the whole client id, of the same level.
    """
    found = [(level, entity) for level, entity in enumerate(candidates(user, client_id), 1) if entity in limits]
    prefixes = [Prefix.of(client_id[:length]) for length in prefix_lengths if length <= len(client_id)]
    if prefixes:
        users = ((1, user), (4, DEFAULT), (7, None))
        entities = [(level, Entity(part, prefix)) for level, part in users for prefix in prefixes]
        found += [(level, entity) for level, entity in entities if entity in limits]
        found.sort(key=lambda pair: pair[0])  # keeps the order within a level
    if not found:
        return None
    (level, winner), *rest = found
    return Effective(winner, level, limits[winner], tuple(entity for _, entity in rest))


def is_shadowed(limits: Mapping[Entity, float], entity: Entity) -> bool:
    """Whether another entity wins for every client of this one, so that its quota has no effect."""
    user = entity.user if isinstance(entity.user, str) else _STRANGER
    prefix = entity.client_id if isinstance(entity.client_id, Prefix) else None
    name = entity.client_id if isinstance(entity.client_id, str) else _STRANGER
    client_id = name if prefix is None else prefix.text + _STRANGER
    effective = resolve(limits, user, client_id, () if prefix is None else (len(prefix.text),))
    return effective is not None and effective.entity != entity


def resolve_ip(limits: Mapping[IpEntity, float], ip: str) -> float | None:
    """The connection rate that applies to an address, or None where it has no limit."""
    entity = entity_of_ip(limits, ip)
    return None if entity is None else limits[entity]


def entity_of_ip(limits: Mapping[IpEntity, float], ip: str) -> IpEntity | None:
    """The entity whose connection rate applies to an address."""
    return next((entity for entity in (IpEntity(ip), IpEntity(DEFAULT)) if entity in limits), None)


def as_seen(limits: Mapping[Entity | IpEntity, float]) -> dict[IpEntity, float]:
    """The limits of addresses, each as the kernel writes it: 2001:DB8:0::7 is 2001:db8::7."""
    return {seen(entity): limit for entity, limit in limits.items() if isinstance(entity, IpEntity) and limit >= 0}


def is_address(text: str) -> bool:
    """Whether the text is an address and not a name."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def seen(entity: IpEntity) -> IpEntity:
    """The entity with its address as the kernel writes it."""
    if isinstance(entity.ip, str) and is_address(entity.ip):
        return IpEntity(str(ip_address(entity.ip)))
    return entity  # the default, or the name of a host


def share_of(effective: Effective, user: str, client_id: str) -> Share:
    """The clients that draw on the same allowance as this one, given the quota that applies to it."""
    of_client = effective.entity.client_id
    return Share(
        None if effective.entity.user is None else user,
        None if of_client is None else of_client if isinstance(of_client, Prefix) else client_id,
    )

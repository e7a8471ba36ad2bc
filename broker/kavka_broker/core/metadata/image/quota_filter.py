"""Which limits a filter lets through: DescribeClientQuotas asks by user, client id and address (KIP-546)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from kavka_broker.core.metadata.image.quotas import IP, TYPES, AnyEntity, Quotas, parts_of
from kavka_broker.protocol.errors import BrokerError, ErrorCode

Parts = Mapping[str, str | None]  # entity type -> name, None for the default


class MatchType(IntEnum):
    """Ways in which a filter matches one type of an entity."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@dataclass(frozen=True, slots=True)
class Component:
    """One condition of a filter."""

    entity_type: str
    match_type: int
    match: str | None = None


def matching(
    quotas: Quotas, components: Iterable[Component], *, strict: bool
) -> Iterator[tuple[AnyEntity, str, float] | None]:
    """Limits with their entities and keys, or None where the filter does not match, made as the caller asks for the
    next. Raises BrokerError for a filter without sense.
    """
    conditions = _conditions(components)
    every = [(entity, key, limit) for key in sorted(quotas.limits) for entity, limit in quotas.limits[key].items()]
    return (entry if _matches(parts_of(entry[0]), conditions, strict=strict) else None for entry in every)


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
        raise _invalid("Invalid entity filter component combination: an ip stands alone; take the others away")
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

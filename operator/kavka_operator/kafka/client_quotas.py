"""Client quotas (KIP-546), which kafka-python has messages for and no method."""

from collections.abc import Sequence
from typing import Any

from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain.plan import AlterQuota
from kavka_operator.domain.quota_entities import from_wire, to_wire
from kavka_operator.kafka.errors import raise_for
from kavka_operator.kafka.mutations import Send


def quotas(send: Send) -> dict[AnyEntity, dict[str, float]]:
    """The quotas of each entity that are set. Raises KafkaError."""
    response = send(DescribeClientQuotasRequest(components=[], strict=False))
    raise_for(response.error_code, response.error_message)
    found: dict[AnyEntity, dict[str, float]] = {}
    for entry in response.entries or ():
        entity = from_wire({part.entity_type: part.entity_name for part in entry.entity})
        if entity is not None:
            found[entity] = {value.key: value.value for value in entry.values}
    return found


def alter(send: Send, action: AlterQuota, *, validate_only: bool = False) -> None:
    """Set and take away quotas of an entity. Raises KafkaError."""
    (answer,) = altered(send, [action], validate_only=validate_only)
    raise_for(answer.error_code, answer.error_message)


def altered(send: Send, actions: Sequence[AlterQuota], *, validate_only: bool = False) -> list[Any]:
    """The answers of AlterClientQuotas, in the order of the actions."""
    if not actions:
        return []
    request = AlterClientQuotasRequest(entries=list(map(_entry, actions)), validate_only=validate_only)
    response = send(request)
    answers = {
        frozenset((part.entity_type, part.entity_name) for part in entry.entity): entry for entry in response.entries
    }
    return [answers[frozenset(to_wire(action.entity).items())] for action in actions]


def _entry(action: AlterQuota) -> Any:
    kind = AlterClientQuotasRequest.EntryData
    parts = [kind.EntityData(entity_type=part, entity_name=name) for part, name in to_wire(action.entity).items()]
    ops = [kind.OpData(key=key, value=value, remove=False) for key, value in action.set.items()]
    ops += [kind.OpData(key=key, value=0.0, remove=True) for key in action.remove]
    return kind(entity=parts, ops=ops)

"""DescribeClientQuotas (48): the quotas of every entity that a filter lets through (KIP-546).

- A component looks at one type (user, client-id, ip): a name exactly, the default, or whatever is specified.
- Without `strict` an entity may have other types too; with it, only those of the filter. An empty filter that is not
  strict therefore shows every quota.
- An unknown type is UNSUPPORTED_VERSION; a type that is there twice, or ip beside another, INVALID_REQUEST.
Versions: flexible from 1.
"""

import asyncio
from collections.abc import Iterator

from kavka_broker.core.metadata.image.quota_filter import Component, matching
from kavka_broker.core.metadata.image.quotas import AnyEntity, parts_of
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from kavka_broker.protocol.messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import SMALL_BYTES_MAX, api, listing

LIMIT_COST = 4  # of a slice


@api(DescribeClientQuotasRequest, DescribeClientQuotasResponse, versions=(0, 1), bytes_max=SMALL_BYTES_MAX)
@listing
def describe_client_quotas(
    request: DescribeClientQuotasRequest, broker: Broker, client: Client
) -> DescribeClientQuotasResponse | asyncio.Task[DescribeClientQuotasResponse]:
    del client
    components = [
        Component(component.entity_type, component.match_type, component.match) for component in request.components
    ]
    try:
        found = matching(broker.metadata.quotas, components, strict=request.strict)
    except BrokerError as reason:
        return DescribeClientQuotasResponse(0, reason.code, reason.message, None)
    return broker.slices.run(describe_all(found))


def describe_all(found: Iterator[tuple[AnyEntity, str, float] | None]) -> Work[DescribeClientQuotasResponse]:
    entries: dict[AnyEntity, EntryData] = {}
    cost = Cost()
    for quota in found:
        if quota is not None:
            entity, key, limit = quota
            if entity not in entries:
                parts = [EntityData(entity_type, name) for entity_type, name in parts_of(entity).items()]
                entries[entity] = EntryData(parts)
            entries[entity].values.append(ValueData(key, limit))
        if cost.add(LIMIT_COST):
            yield
    return DescribeClientQuotasResponse(error_message=None, entries=list(entries.values()))

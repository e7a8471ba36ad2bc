"""ListConfigResources (74): the names of what has configs: topics, brokers, groups, client metrics (KIP-1142).

- No type named means all. In version 0 the only type is client metrics.
- A type that has no configs is UNSUPPORTED_VERSION.
Versions: flexible from 0; types from 1.
"""

import asyncio
from collections.abc import Sequence

from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from kavka_broker.protocol.messages.list_config_resources_response import ConfigResource, ListConfigResourcesResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import SMALL_BYTES_MAX, api, listing


@api(ListConfigResourcesRequest, ListConfigResourcesResponse, versions=(0, 1), bytes_max=SMALL_BYTES_MAX)
@listing
def list_config_resources(
    request: ListConfigResourcesRequest, broker: Broker, client: Client
) -> ListConfigResourcesResponse | asyncio.Task[ListConfigResourcesResponse]:
    """Answer the resources that have configs. Raises BrokerError for an unknown type."""
    types = sorted(set(request.resource_types)) or list(ResourceType)
    if client.version == 0:
        types = [ResourceType.CLIENT_METRICS]
    for kind in types:
        if kind not in tuple(ResourceType):
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, f"resources of type {kind} have no configs")
    return broker.slices.run(list_all(types, broker))


def list_all(types: Sequence[int], broker: Broker) -> Work[ListConfigResourcesResponse]:
    answer, cost = ListConfigResourcesResponse(), Cost()
    for kind in types:
        for name in names(kind, broker):
            answer.config_resources.append(ConfigResource(name, kind))
            if cost.add(1):
                yield
    return answer


def names(kind: int, broker: Broker) -> Sequence[str]:
    match kind:
        case ResourceType.TOPIC:
            return broker.metadata.topics.names()
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(registered.broker_id) for registered in broker.metadata.brokers.alive()]
    return broker.metadata.configs.resources(kind)

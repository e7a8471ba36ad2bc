"""ApiVersions (18): what this broker speaks.

- Made from the registrations of the handlers: nothing is said that is not served by this kind of listener.
- From version 3 on the client names its software; a name that is not plain is INVALID_REQUEST (KIP-511).
- From version 5 on a client names the cluster and the node that it expects here, both or neither; one of them alone is
  INVALID_REQUEST. A broker that is another node, or of another cluster, answers REBOOTSTRAP_REQUIRED (KIP-1242), once
  the client has logged in: its address has changed hands. A controller answers whatever it is taken for, as in Apache
  Kafka.
- Of what the active controller decides, a broker offers the versions that the controller serves too: nodes may be of
  several releases. Until it has a connection to the controller it offers its own.
- Features (KIP-584): what the cluster has finalised, as far as this broker implements it. A client decides by
  `transaction.version`, `group.version`, `share.version` and `streams.version` what it dares to use, so these appear
  with what they stand for.
- Pushes of metrics (KIP-714) are offered where somebody asks for them: a client that is offered them says so in its
  log at each start. Apache Kafka offers them where it has a plugin that takes them.
Versions: flexible from 3, with a response header that never is.
"""

import re
from collections.abc import Iterator

from kavka_broker.core.client_names import shortened
from kavka_broker.core.metadata.image.features import (
    ELR_FEATURE,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    SUPPORTED_LEVELS,
    TRANSACTION_VERSION,
)
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kavka_broker.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kavka_broker.protocol.messages.push_telemetry_request import PushTelemetryRequest
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import APIS, BOTH, api

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
NAMED_FROM_VERSION = 3
NO_NODE = -1
NO_VERSIONS = (0, -1)
OF_TELEMETRY = frozenset({GetTelemetrySubscriptionsRequest.API_KEY, PushTelemetryRequest.API_KEY})
SERVED = (
    METADATA_VERSION,
    KRAFT_VERSION,
    ELR_FEATURE,
    GROUP_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
SUPPORTED_FEATURES = {name: SUPPORTED_LEVELS[name] for name in SERVED}


@api(ApiVersionsRequest, ApiVersionsResponse, versions=(0, 5), on=BOTH)
def api_versions(request: ApiVersionsRequest, broker: Broker, client: Client) -> ApiVersionsResponse:
    if client.version >= NAMED_FROM_VERSION and not is_valid(request):
        if client.peer is not None and client.peer.login is not None:
            client.peer.login.refuse_versions()
        return ApiVersionsResponse(ErrorCode.INVALID_REQUEST)
    if client.version >= NAMED_FROM_VERSION and client.peer is not None:
        client.peer.software_name = shortened(request.client_software_name)
        client.peer.software_version = shortened(request.client_software_version)
    if is_misrouted(request, broker, client):
        return ApiVersionsResponse(ErrorCode.REBOOTSTRAP_REQUIRED)
    return ApiVersionsResponse(
        api_keys=[ApiVersion(key, *versions) for key, versions in ranges(broker, client)],
        supported_features=supported_features(client.version),
        finalized_features_epoch=broker.metadata.offset,
        finalized_features=[
            FinalizedFeatureKey(name, level, level)
            for name, level in broker.metadata.features.levels.items()
            if name in SUPPORTED_FEATURES
        ],
    )


def ranges(broker: Broker, client: Client) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the keys of the APIs that this client may use, with their versions."""
    of_controller = broker.channel.versions if client.role == "broker" else None
    for key in offered(broker, client):
        low, high = advertised(key, broker)
        if of_controller is not None and APIS[key].forwarded:
            controller_low, controller_high = of_controller.get(key, NO_VERSIONS)
            low, high = max(low, controller_low), min(high, controller_high)
        if low <= high:
            yield key, (low, high)


def advertised(key: int, broker: Broker) -> tuple[int, int]:
    api = APIS[key].with_unstable() if broker.config["unstable.api.versions.enable"] else APIS[key]
    return api.advertised


def offered(broker: Broker, client: Client) -> list[int]:
    """The keys of the APIs that this client is told of."""
    keys = [key for key in sorted(APIS) if client.role in APIS[key].on]
    if OF_TELEMETRY.isdisjoint(keys) or broker.client_metrics.is_wanted:
        return keys
    return [key for key in keys if key not in OF_TELEMETRY]


def is_valid(request: ApiVersionsRequest) -> bool:
    """Whether the software has plain names, and the node is named together with its cluster."""
    names = (request.client_software_name, request.client_software_version)
    names_both = (request.cluster_id is None) == (request.node_id == NO_NODE)
    return names_both and all(SOFTWARE.fullmatch(name) for name in names)


def is_misrouted(request: ApiVersionsRequest, broker: Broker, client: Client) -> bool:
    """Whether the client has reached another broker than the one that it names; never before it has logged in."""
    is_logging_in = client.peer is not None and client.peer.login is not None
    if request.cluster_id is None or client.role != "broker" or is_logging_in:
        return False
    return (request.cluster_id, request.node_id) != (broker.cluster_id, broker.node_id)


def supported_features(version: int) -> list[SupportedFeatureKey]:
    """The supported features; ranges from 0 are left out below version 4: old clients reject them (KIP-1022)."""
    return [
        SupportedFeatureKey(name, low, high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
        if version > NAMED_FROM_VERSION or low > 0
    ]

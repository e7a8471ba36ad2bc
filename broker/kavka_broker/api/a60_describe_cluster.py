"""DescribeCluster (60): the brokers of the cluster, without topics.

- A broker's listener shows brokers, a controller's listener controllers; asking either for the other kind is
  MISMATCHED_ENDPOINT_TYPE, for anything else UNSUPPORTED_ENDPOINT_TYPE.
- Of a controller its address by the listener that was asked is shown, and the one that leads is named.
- Fenced brokers are shown when they are asked for (from version 2).
Versions: flexible from 0; the type of endpoint from 1.
"""

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kavka_broker.protocol.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.metadata_answers import CLUSTER_OPERATIONS, NOT_ASKED, some_broker
from kavka_broker.request.registry import BOTH, api

BROKERS = 1
CONTROLLERS = 2
TYPES = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


@api(DescribeClusterRequest, DescribeClusterResponse, versions=(0, 2), on=BOTH)
def describe_cluster(request: DescribeClusterRequest, broker: Broker, client: Client) -> DescribeClusterResponse:
    check_type(request.endpoint_type, BROKERS if client.role == "broker" else CONTROLLERS)
    if request.endpoint_type == CONTROLLERS:
        return describe_controllers(request, broker, client)
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=some_broker(broker.metadata, broker.node_id),
        brokers=[
            DescribeClusterBroker(
                registered.broker_id, endpoint.host, endpoint.port, registered.rack, registered.fenced
            )
            for registered in sorted(broker.metadata.brokers, key=lambda registered: registered.broker_id)
            if (endpoint := registered.endpoints.get(client.listener)) is not None
            and (request.include_fenced_brokers or not registered.fenced)
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def check_type(asked: int, ours: int) -> None:
    """Raises BrokerError where the endpoints asked for are not of our type."""
    if asked not in TYPES:
        raise BrokerError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"{asked} is no type of endpoint")
    if asked != ours:
        problem = f"of type {TYPES[ours]}, but we wanted an endpoint of type {TYPES[asked]}"
        raise BrokerError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, f"The request was sent to an endpoint {problem}")


def describe_controllers(request: DescribeClusterRequest, broker: Broker, client: Client) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        cluster_id=broker.cluster_id,
        controller_id=broker.quorum.leader_id,
        brokers=[
            DescribeClusterBroker(controller.controller_id, endpoint.host, endpoint.port, None)
            for controller in broker.metadata.brokers.controllers()
            for endpoint in controller.end_points
            if endpoint.name == client.listener
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )

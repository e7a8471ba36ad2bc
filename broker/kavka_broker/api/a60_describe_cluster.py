"""DescribeCluster (60): the brokers of the cluster, without topics.

- Only brokers are shown here: a listener for clients does not know the controllers' addresses. Asking for controllers
  is MISMATCHED_ENDPOINT_TYPE, for anything else UNSUPPORTED_ENDPOINT_TYPE.
- Fenced brokers are shown when they are asked for (from version 2).
Versions: flexible from 0; the type of endpoint from 1.
"""

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.metadata_answers import CLUSTER_OPERATIONS, NOT_ASKED, some_broker
from kavka_broker.api.registry import api
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kavka_broker.protocol.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse

BROKERS = 1
CONTROLLERS = 2


@api(DescribeClusterRequest, DescribeClusterResponse, versions=(0, 2))
def describe_cluster(request: DescribeClusterRequest, broker: Broker, client: Client) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        raise BrokerError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is a broker; ask a controller for controllers")
    if request.endpoint_type != BROKERS:
        raise BrokerError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"{request.endpoint_type} is no type of endpoint")
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=some_broker(broker.metadata, broker.node_id),
        brokers=[
            DescribeClusterBroker(one.broker_id, endpoint.host, endpoint.port, one.rack, one.fenced)
            for one in sorted(broker.metadata.brokers, key=lambda one: one.broker_id)
            if (endpoint := one.endpoints.get(client.listener)) is not None
            and (request.include_fenced_brokers or not one.fenced)
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )

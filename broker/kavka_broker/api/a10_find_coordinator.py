"""FindCoordinator (10): which broker coordinates a group, a producer's transactions, or the state of a share partition.

- The leader of the group's partition of `__consumer_offsets`, or of the transactional id's partition of
  `__transaction_state`. The first one to ask makes that topic, and waits for it.
- A share partition is named "group:topicId:partition"; the leader of its partition of `__share_group_state` has its
  state. Brokers ask for it. Another name is INVALID_REQUEST.
- While a broker is suspected to be dead the answer waits for what becomes of it (`membership.unreachable_brokers`).
Versions: key types from 1, flexible from 3, many keys from 4, share partitions (key type 2) from 6.
"""

from collections.abc import Callable
from typing import NamedTuple

from kavka_broker.coordinator.internal_topic import InternalTopic
from kavka_broker.coordinator.share.share_coordinator import check_coordinator_key
from kavka_broker.core.metadata.image.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each

GROUP, TRANSACTION, SHARE = range(3)
MANY_KEYS_VERSION = 4
SHARE_VERSION = 6
NOBODY = -1


class Coordination(NamedTuple):
    """The place of the coordinators of a kind."""

    topic: str
    partition_of: Callable[[str], int | None]
    topic_maker: InternalTopic


def coordination(key_type: int, broker: Broker) -> Coordination:
    if key_type == TRANSACTION:
        return Coordination(TRANSACTIONS_TOPIC, broker.transactions.partition_of, broker.as_broker.transactions_topic)
    if key_type == SHARE:
        sharing = broker.as_broker.sharing
        return Coordination(SHARE_STATE_TOPIC, sharing.coordinator.partition_of, sharing.topic)
    return Coordination(OFFSETS_TOPIC, broker.groups.partition_of, broker.groups.topic)


@api(
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    versions=(0, 6),
    each=(Each("coordinator_keys", "coordinators", per_turn=200),),
)
async def find_coordinator(request: FindCoordinatorRequest, broker: Broker, client: Client) -> FindCoordinatorResponse:
    is_known = request.key_type in (GROUP, TRANSACTION) or (request.key_type == SHARE and is_share_key(request, client))
    if is_known and coordination(request.key_type, broker).partition_of("") is None:
        return await create_and_answer(request, broker, client)
    await broker.suspects.cleared()
    return answer(request, broker, client)


def is_share_key(request: FindCoordinatorRequest, client: Client) -> bool:
    """Whether some key names a share partition: only then is the topic of their states created."""
    try:
        check_kind(SHARE, client.version)
        for key in request.coordinator_keys:
            check_coordinator_key(key)
    except BrokerError:
        return False
    return True


async def create_and_answer(request: FindCoordinatorRequest, broker: Broker, client: Client) -> FindCoordinatorResponse:
    refused = None
    try:
        await coordination(request.key_type, broker).topic_maker.create()
        await broker.replicas.openings.secured()  # from then on this broker serves its part
    except BrokerError as error:
        refused = error.as_value()
    return answer(request, broker, client, refused)


def answer(
    request: FindCoordinatorRequest, broker: Broker, client: Client, refused: BrokerError | None = None
) -> FindCoordinatorResponse:
    if client.version >= MANY_KEYS_VERSION:
        keys = request.coordinator_keys
        return FindCoordinatorResponse(
            coordinators=[find(key, request.key_type, broker, client, refused) for key in keys]
        )
    found = find(request.key, request.key_type, broker, client, refused)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def find(key: str, key_type: int, broker: Broker, client: Client, refused: BrokerError | None) -> Coordinator:
    try:
        if refused is not None:
            raise refused
        check_kind(key_type, client.version)
        if key_type == SHARE:
            check_coordinator_key(key)
        topic, partition_of, _ = coordination(key_type, broker)
        index = partition_of(key)
        if index is None:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} does not exist yet")
        return locate(key, topic, index, broker, client)
    except BrokerError as error:
        return Coordinator(key, NOBODY, "", NOBODY, error.code, error.message)


def check_kind(key_type: int, version: int) -> None:
    """Raises BrokerError for a key type that this broker does not know or serve."""
    match key_type:
        case 0 | 1:
            return
        case 2 if version >= SHARE_VERSION:
            return
        case _:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"key type {key_type} is unknown in version {version}")


def locate(key: str, topic: str, index: int, broker: Broker, client: Client) -> Coordinator:
    """The coordinator: the leader of a partition. Raises BrokerError where no leader can be reached."""
    known = broker.metadata.topics.get(topic)
    assert known is not None
    leader = broker.metadata.brokers.get(known.partitions[index].leader)
    endpoint = None if leader is None or leader.fenced else leader.endpoints.get(client.listener)
    if leader is None or endpoint is None:
        problem = f"{topic}-{index} has no leader with a listener {client.listener}"
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, problem)
    return Coordinator(key, leader.broker_id, endpoint.host, endpoint.port, error_message="")

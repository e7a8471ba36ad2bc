"""FindCoordinator (10): which broker coordinates a group or a producer's transactions.

- The leader of the group's partition of `__consumer_offsets`, or of the transactional id's partition of
  `__transaction_state`. The first one to ask makes that topic, and waits for it.
- While a broker is suspected to be dead the answer waits for what becomes of it (`membership.unreachable_brokers`).
- Share groups are not coordinated yet: INVALID_REQUEST.
Versions: key types from 1, flexible from 3, many keys from 4, share groups (key type 2) in 6.
"""

from collections.abc import Callable
from typing import NamedTuple

from kavka_broker.coordinator.internal_topic import InternalTopic
from kavka_broker.core.metadata.image.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.request_parts import Each

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
    return Coordination(OFFSETS_TOPIC, broker.groups.partition_of, broker.groups.topic)


@api(
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    versions=(0, 6),
    each=(Each("coordinator_keys", "coordinators", per_turn=200),),
)
async def find_coordinator(request: FindCoordinatorRequest, broker: Broker, client: Client) -> FindCoordinatorResponse:
    if request.key_type in (GROUP, TRANSACTION) and coordination(request.key_type, broker).partition_of("") is None:
        return await create_and_answer(request, broker, client)
    await broker.suspects.cleared()
    return answer(request, broker, client)


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
            raise BrokerError(ErrorCode.INVALID_REQUEST, "this broker coordinates no share groups")
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

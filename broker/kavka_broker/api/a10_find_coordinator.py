"""FindCoordinator (10): which broker coordinates a group or a producer's transactions.

- The leader of the group's partition of `__consumer_offsets`. The first one to ask makes that topic, and waits for it.
- While a broker is suspected to be dead the answer waits for what becomes of it (`membership.suspects`).
- Transactions are coordinated by Apache Kafka's brokers of the same cluster: the leader of the id's partition of
  `__transaction_state`. Where that is this broker, or where no broker of the cluster coordinates transactions, there is
  nobody: TRANSACTIONAL_ID_AUTHORIZATION_FAILED with a message, the one code that both the Java client and librdkafka
  take as final; after any other librdkafka asks again forever. Since most clients show the code's name alone, the log
  says `transactions.unserved`. As long as only the topic is missing:
  COORDINATOR_NOT_AVAILABLE, since clients then ask another broker, and Apache Kafka's make it.
- Share groups are not coordinated yet: INVALID_REQUEST.
Versions: key types from 1, flexible from 3, many keys from 4, share groups (key type 2) in 6.
"""

from kavka_broker.api.a22_init_producer_id import tell_unserved
from kavka_broker.coordinator.offsets_topic import OFFSETS_TOPIC
from kavka_broker.coordinator.partitioning import partition_of
from kavka_broker.coordinator.transaction_coordinators import TRANSACTIONS_TOPIC
from kavka_broker.core.metadata.image.brokers import Registration
from kavka_broker.core.metadata.image.features import METADATA_VERSION, METADATA_VERSION_OLDEST
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.each import Each
from kavka_broker.request.registry import api

GROUP, TRANSACTION, SHARE = range(3)
MANY_KEYS_VERSION = 4
SHARE_VERSION = 6
NOBODY = -1
NOBODY_COORDINATES = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@api(
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    versions=(0, 6),
    each=(Each("coordinator_keys", "coordinators", per_turn=200),),
)
async def find_coordinator(request: FindCoordinatorRequest, broker: Broker, client: Client) -> FindCoordinatorResponse:
    if request.key_type == GROUP and broker.groups.partition_of("") is None:
        return await create_and_answer(request, broker, client)
    await broker.suspects.cleared()
    return answer(request, broker, client)


async def create_and_answer(request: FindCoordinatorRequest, broker: Broker, client: Client) -> FindCoordinatorResponse:
    refused = None
    try:
        await broker.groups.offsets_topic.create()
        await broker.replicas.openings.secured()  # from then on this broker serves its groups
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
        if key_type == TRANSACTION:
            return locate_transactional(key, broker, client)
        index = broker.groups.partition_of(key)
        if index is None:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC} does not exist yet")
        return locate(key, OFFSETS_TOPIC, index, broker, client)
    except BrokerError as error:
        if error.code is NOBODY_COORDINATES:
            tell_unserved(key, broker, client)
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


def locate_transactional(transactional_id: str, broker: Broker, client: Client) -> Coordinator:
    """The coordinator of this id. Raises BrokerError where this broker can name none."""
    topic = broker.metadata.topics.get(TRANSACTIONS_TOPIC)
    if topic is None:
        if any(map(coordinates_transactions, broker.metadata.brokers)):
            problem = f"{TRANSACTIONS_TOPIC} does not exist yet, and this broker does not make it; ask another"
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, problem)
        raise BrokerError(NOBODY_COORDINATES, "no broker of this cluster coordinates transactions")
    index = partition_of(transactional_id, len(topic.partitions))
    if topic.partitions[index].leader == broker.node_id:
        problem = (
            f"transactional id {transactional_id} belongs to {TRANSACTIONS_TOPIC}-{index}, which this broker leads; it "
            "coordinates no transactions yet: move the partition to a broker that does"
        )
        raise BrokerError(NOBODY_COORDINATES, problem)
    return locate(transactional_id, TRANSACTIONS_TOPIC, index, broker, client)


def coordinates_transactions(broker: Registration) -> bool:
    """Whether a broker is Apache Kafka's: its oldest metadata.version is too old for Kavka."""
    oldest, _ = broker.features.get(METADATA_VERSION, (METADATA_VERSION_OLDEST, 0))
    return oldest < METADATA_VERSION_OLDEST


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

"""ElectLeaders (43): the preferred replica shall lead, or any that lives.

- Type 0: the first replica, if it is in sync. Type 1 (KIP-460): whoever lives, where nobody leads; records may be lost.
- ELECTION_NOT_NEEDED where it is so already, PREFERRED_LEADER_NOT_AVAILABLE or ELIGIBLE_LEADERS_NOT_AVAILABLE where it
  cannot be; each partition stands alone.
- No topics named (null) means every partition, and then only those are answered where there was something to do.
- Answered when the new leaders are committed, so `timeout_ms` is never reached.
- What fails as a whole is told of every partition that was named too, since version 0 has no error at its top. Where it
  named none either, its connection is closed.
Versions: flexible from 2; the type and an error at the top from 1.
"""

from collections.abc import Iterable

from kavka_broker.core.metadata.decide.election_policy import policy_of
from kavka_broker.core.metadata.decide.leader_moves import Election, Result, elect_leaders
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.elect_leaders_request import ElectLeadersRequest
from kavka_broker.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api
from kavka_broker.request.split_requests import Each

TOP_ERROR_FROM = 1


@api(
    ElectLeadersRequest,
    ElectLeadersResponse,
    versions=(0, 2),
    on=BOTH,
    forwarded=True,
    each=(Each("topic_partitions.partitions", "replica_election_results.partition_result", per_turn=100),),
)
async def elect(request: ElectLeadersRequest, broker: Broker, client: Client) -> ElectLeadersResponse:
    asked = request.topic_partitions
    wanted = None if asked is None else [(topic.topic, partition) for topic in asked for partition in topic.partitions]
    try:
        kind, policy = kind_of(request), policy_of(broker.config)
        results = await broker.active.submit(lambda metadata, _: elect_leaders(metadata, kind, wanted, policy))
    except BrokerError as error:
        if client.version < TOP_ERROR_FROM and not wanted:
            raise
        code = error.code if client.version >= TOP_ERROR_FROM else ErrorCode.NONE
        return ElectLeadersResponse(0, code, by_topic((place, error) for place in wanted or ()))
    return ElectLeadersResponse(replica_election_results=by_topic(results))


def kind_of(request: ElectLeadersRequest) -> Election:
    """The type of the election. Raises INVALID_REQUEST where it is unknown."""
    if request.election_type not in tuple(Election):
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    return Election(request.election_type)


def by_topic(results: Iterable[Result]) -> list[ReplicaElectionResult]:
    topics: dict[str, list[PartitionResult]] = {}
    for (name, partition), refusal in results:
        topics.setdefault(name, []).append(outcome(partition, refusal))
    return [ReplicaElectionResult(name, partitions) for name, partitions in topics.items()]


def outcome(partition: int, refusal: BrokerError | None) -> PartitionResult:
    if refusal is None:
        return PartitionResult(partition, ErrorCode.NONE, None)
    return PartitionResult(partition, refusal.code, refusal.message)

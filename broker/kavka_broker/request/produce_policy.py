"""The quotas and rights of a client that produces, and what the audit trail counts of it, for `replica.writing`."""

from typing import Final

from kavka_broker.core.metadata.image.leader_hint import endpoint_of, leader_of
from kavka_broker.core.metadata.image.topic_names import AUDIT_TOPIC, INTERNAL
from kavka_broker.loop.slices import Work, at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.produce_request import TopicProduceData
from kavka_broker.protocol.messages.produce_response import LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse
from kavka_broker.quotas.client_quotas import PRODUCE
from kavka_broker.request.audit_backpressure import is_mender
from kavka_broker.request.audit_backpressure import refusal as trail_is_full
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.throttling import throttle
from kavka_broker.request.topic_quota import charge_produced

ADMIN_CLIENT_ID: Final = "__admin_client"
"""The client id of nodes that write to internal topics."""
NAMES_LEADER_FROM: Final = 10  # KIP-951


class ProducePolicy:
    """The rules for the batches of one request, a `replica.writing.produce.Policy`."""

    __slots__ = ("_broker", "_client")

    def __init__(self, broker: Broker, client: Client) -> None:
        self._broker = broker
        self._client = client

    def charge(self) -> None:
        """Charge the request's bytes to the client's quota; throttle a client over it."""
        broker, client = self._broker, self._client
        now_ms = int(broker.clock.monotonic_ms())
        delay_ms = broker.quotas.produce(client.user, client.client_id, client.size_bytes, now_ms)
        if delay_ms:
            throttle(client, broker, PRODUCE, delay_ms, now_ms)

    def charge_topics(self, topics: list[TopicProduceData]) -> Work[None]:
        """Charge the bytes to the topics' quotas; throttle a client where one is exceeded."""
        return charge_produced(topics, self._broker, self._client)

    def charge_all(self, topics: list[TopicProduceData]) -> None:
        """Charge the client's quota and the topics'."""
        self.charge()
        if self._broker.quotas.produced.limited:
            at_once(self.charge_topics(topics))

    def refusal(self, topic: str) -> BrokerError | None:
        """Return why nothing of this client is written to the topic; None where it may be."""
        broker, client = self._broker, self._client
        if topic in INTERNAL and not may_be_node(broker, client):
            code, reason = ErrorCode.INVALID_TOPIC_EXCEPTION, f"'{topic}' is internal; clients may not write to it"
            return BrokerError(code, reason)
        if broker.is_refusing and topic != AUDIT_TOPIC and not is_mender(broker, client):
            broker.refused["produce"] += 1
            return trail_is_full(ErrorCode.NOT_ENOUGH_REPLICAS)
        return None

    def count(self, topic: str, size_bytes: int, records: int) -> None:
        """Count what was written for the audit trail."""
        broker, client = self._broker, self._client
        if broker.use is not None and topic != AUDIT_TOPIC:  # each event would bring the next
            broker.use.wrote(client.user, client.address, client.client_id, topic, size_bytes, records)

    def name_leader(
        self, topic: bytes | str, response: PartitionProduceResponse, endpoints: list[NodeEndpoint]
    ) -> None:
        """Name the leader and its address, as far as this broker knows them (KIP-951)."""
        if self._client.version < NAMES_LEADER_FROM:
            return
        metadata = self._broker.metadata
        leader, leader_epoch = leader_of(topic, response.index, metadata)
        response.current_leader = LeaderIdAndEpoch(leader, leader_epoch)
        if all(endpoint.node_id != leader for endpoint in endpoints):
            endpoints += endpoint_of(leader, self._client.listener, metadata, NodeEndpoint)


def may_be_node(broker: Broker, client: Client) -> bool:
    """Whether a client says that it is a node, on a listener where a node may be heard. Its rights are the gate's."""
    if client.client_id != ADMIN_CLIENT_ID:
        return False
    is_guarded = broker.authorizer is not None or client.peer is None
    return is_guarded or client.listener == broker.config.listeners.inter_broker_name

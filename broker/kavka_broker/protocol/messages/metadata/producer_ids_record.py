"""ProducerIdsRecord."""

from kavka_broker.protocol.message import Message


class ProducerIdsRecord(Message):
    KIND = "metadata"
    API_KEY = 15
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id", "broker_epoch", "next_producer_id")
    SCHEMA = (
        ("BrokerId", "broker_id", "int32", (0, 0)),
        ("BrokerEpoch", "broker_epoch", "int64", (0, 0), None, None, None, -1),
        ("NextProducerId", "next_producer_id", "int64", (0, 0)),
    )

    def __init__(self, broker_id: int = 0, broker_epoch: int = -1, next_producer_id: int = 0) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.next_producer_id = next_producer_id

"""EndTxnRequest: request, key 26, versions 0 to 5, flexible from 3.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class EndTxnRequest(Message):
    NAME = "EndTxnRequest"
    KIND = "request"
    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __match_args__ = ("transactional_id", "producer_id", "producer_epoch", "committed")
    __slots__ = __match_args__
    SCHEMA = (
        ("TransactionalId", "transactional_id", "string", (0, 5), None, None, None, "", False, None),
        ("ProducerId", "producer_id", "int64", (0, 5), None, None, None, 0, False, None),
        ("ProducerEpoch", "producer_epoch", "int16", (0, 5), None, None, None, 0, False, None),
        ("Committed", "committed", "bool", (0, 5), None, None, None, False, False, None),
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed

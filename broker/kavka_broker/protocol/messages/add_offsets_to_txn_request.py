"""AddOffsetsToTxnRequest: request, key 25, versions 0 to 4, flexible from 3.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import Message


class AddOffsetsToTxnRequest(Message):
    NAME = "AddOffsetsToTxnRequest"
    KIND = "request"
    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    __match_args__ = ("transactional_id", "producer_id", "producer_epoch", "group_id")
    __slots__ = __match_args__
    SCHEMA = (
        ("TransactionalId", "transactional_id", "string", (0, 4), None, None, None, "", False, None),
        ("ProducerId", "producer_id", "int64", (0, 4), None, None, None, 0, False, None),
        ("ProducerEpoch", "producer_epoch", "int16", (0, 4), None, None, None, 0, False, None),
        ("GroupId", "group_id", "string", (0, 4), None, None, None, "", False, None),
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id

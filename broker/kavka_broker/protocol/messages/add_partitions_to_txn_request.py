"""AddPartitionsToTxnRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AddPartitionsToTxnTopic(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (0, 5)),
        ("Partitions", "partitions", "[]int32", (0, 5)),
    )

    def __init__(self, name: str = "", partitions: list[int] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class AddPartitionsToTxnTransaction(Struct):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")
    SCHEMA = (
        ("TransactionalId", "transactional_id", "string", (4, 5)),
        ("ProducerId", "producer_id", "int64", (4, 5)),
        ("ProducerEpoch", "producer_epoch", "int16", (4, 5)),
        ("VerifyOnly", "verify_only", "bool", (4, 5)),
        ("Topics", "topics", "[]AddPartitionsToTxnTopic", (4, 5)),
    )

    def __init__(
        self,
        transactional_id: str = "", producer_id: int = 0, producer_epoch: int = 0, verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = [] if topics is EMPTY else topics


class AddPartitionsToTxnRequest(Message):
    KIND = "request"
    API_KEY = 24
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __slots__ = (
        "transactions", "v3_and_below_transactional_id", "v3_and_below_producer_id", "v3_and_below_producer_epoch",
        "v3_and_below_topics",
    )
    SCHEMA = (
        ("Transactions", "transactions", "[]AddPartitionsToTxnTransaction", (4, 5)),
        ("V3AndBelowTransactionalId", "v3_and_below_transactional_id", "string", (0, 3)),
        ("V3AndBelowProducerId", "v3_and_below_producer_id", "int64", (0, 3)),
        ("V3AndBelowProducerEpoch", "v3_and_below_producer_epoch", "int16", (0, 3)),
        ("V3AndBelowTopics", "v3_and_below_topics", "[]AddPartitionsToTxnTopic", (0, 3)),
    )

    def __init__(
        self,
        transactions: list[AddPartitionsToTxnTransaction] = EMPTY, v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0, v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = EMPTY,
    ) -> None:
        self.transactions = [] if transactions is EMPTY else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is EMPTY else v3_and_below_topics

"""InitProducerIdRequest."""

from kavka_broker.protocol.message import Message


class InitProducerIdRequest(Message):
    KIND = "request"
    API_KEY = 22
    VERSIONS = (0, 6)
    FLEXIBLE_FROM = 2
    LATEST_UNSTABLE = True
    __slots__ = (
        "transactional_id", "transaction_timeout_ms", "producer_id", "producer_epoch", "enable2_pc",
        "keep_prepared_txn",
    )
    SCHEMA = (
        ("TransactionalId", "transactional_id", "string", (0, 6), (0, 6)),
        ("TransactionTimeoutMs", "transaction_timeout_ms", "int32", (0, 6)),
        ("ProducerId", "producer_id", "int64", (3, 6), None, None, None, -1),
        ("ProducerEpoch", "producer_epoch", "int16", (3, 6), None, None, None, -1),
        ("Enable2Pc", "enable2_pc", "bool", (6, 6)),
        ("KeepPreparedTxn", "keep_prepared_txn", "bool", (6, 6)),
    )

    def __init__(
        self,
        transactional_id: str | None = "", transaction_timeout_ms: int = 0, producer_id: int = -1,
        producer_epoch: int = -1, enable2_pc: bool = False, keep_prepared_txn: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn

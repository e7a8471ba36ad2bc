"""ListTransactionsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TransactionState(Struct):
    __slots__ = ("transactional_id", "producer_id", "transaction_state")
    SCHEMA = (
        ("TransactionalId", "transactional_id", "string", (0, 2)),
        ("ProducerId", "producer_id", "int64", (0, 2)),
        ("TransactionState", "transaction_state", "string", (0, 2)),
    )

    def __init__(self, transactional_id: str = "", producer_id: int = 0, transaction_state: str = "") -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


class ListTransactionsResponse(Message):
    KIND = "response"
    API_KEY = 66
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 2)),
        ("ErrorCode", "error_code", "int16", (0, 2)),
        ("UnknownStateFilters", "unknown_state_filters", "[]string", (0, 2)),
        ("TransactionStates", "transaction_states", "[]TransactionState", (0, 2)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, unknown_state_filters: list[str] = EMPTY,
        transaction_states: list[TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is EMPTY else unknown_state_filters
        self.transaction_states = [] if transaction_states is EMPTY else transaction_states

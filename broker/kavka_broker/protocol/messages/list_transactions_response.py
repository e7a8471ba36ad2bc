"""ListTransactionsResponse: response, key 66, versions 0 to 2, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TransactionState(Struct):
    __match_args__ = ("transactional_id", "producer_id", "transaction_state")
    __slots__ = __match_args__
    SCHEMA = (
        ("TransactionalId", "transactional_id", "string", (0, 2), None, None, None, "", False, None),
        ("ProducerId", "producer_id", "int64", (0, 2), None, None, None, 0, False, None),
        (
            "TransactionState", "transaction_state", "string",
            (0, 2), None, None, None, "", False, None,
        ),
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


class ListTransactionsResponse(Message):
    NAME = "ListTransactionsResponse"
    KIND = "response"
    API_KEY = 66
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __match_args__ = (
        "throttle_time_ms",
        "error_code",
        "unknown_state_filters",
        "transaction_states",
    )
    __slots__ = __match_args__
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 2), None, None, None, 0, False, None),
        ("ErrorCode", "error_code", "int16", (0, 2), None, None, None, 0, False, None),
        (
            "UnknownStateFilters", "unknown_state_filters", "[]string",
            (0, 2), None, None, None, b"", False, None,
        ),
        (
            "TransactionStates", "transaction_states", "[]TransactionState",
            (0, 2), None, None, None, b"", False, None,
        ),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = EMPTY,
        transaction_states: list[TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is EMPTY else unknown_state_filters
        self.transaction_states = [] if transaction_states is EMPTY else transaction_states

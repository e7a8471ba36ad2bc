"""ListTransactionsRequest: request, key 66, versions 0 to 2, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message


class ListTransactionsRequest(Message):
    NAME = "ListTransactionsRequest"
    KIND = "request"
    API_KEY = 66
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __match_args__ = (
        "state_filters",
        "producer_id_filters",
        "duration_filter",
        "transactional_id_pattern",
    )
    __slots__ = __match_args__
    SCHEMA = (
        ("StateFilters", "state_filters", "[]string", (0, 2), None, None, None, b"", False, None),
        (
            "ProducerIdFilters", "producer_id_filters", "[]int64",
            (0, 2), None, None, None, b"", False, None,
        ),
        ("DurationFilter", "duration_filter", "int64", (1, 2), None, None, None, -1, False, None),
        (
            "TransactionalIdPattern", "transactional_id_pattern", "string",
            (2, 2), (2, 2), None, None, None, False, None,
        ),
    )

    def __init__(
        self,
        state_filters: list[str] = EMPTY,
        producer_id_filters: list[int] = EMPTY,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = [] if state_filters is EMPTY else state_filters
        self.producer_id_filters = [] if producer_id_filters is EMPTY else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern

"""ListTransactionsRequest."""

from kavka_broker.protocol.message import EMPTY, Message


class ListTransactionsRequest(Message):
    KIND = "request"
    API_KEY = 66
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern")
    SCHEMA = (
        ("StateFilters", "state_filters", "[]string", (0, 2)),
        ("ProducerIdFilters", "producer_id_filters", "[]int64", (0, 2)),
        ("DurationFilter", "duration_filter", "int64", (1, 2), None, None, None, -1),
        ("TransactionalIdPattern", "transactional_id_pattern", "string", (2, 2), (2, 2), None, None, None),
    )

    def __init__(
        self,
        state_filters: list[str] = EMPTY, producer_id_filters: list[int] = EMPTY, duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = [] if state_filters is EMPTY else state_filters
        self.producer_id_filters = [] if producer_id_filters is EMPTY else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern

"""The use that clients make of topics, and the delays that quotas give them, summed up over an interval.

A client sends thousands of requests a second, so none is an event: one an interval tells what it did with a topic, and
one what a quota did to it. Nothing is lost: what is beyond the bound is counted together under OTHERS, by its topic as
long as there is room for that, as a topic that nobody names could be taken for unused. While the audit topic takes no
records the window becomes longer.
"""

from typing import Final, NamedTuple

from kavka_broker.core.client_names import shortened, shortened_principal

MINUTE_MS: Final = 60_000
"""The interval unless another is configured."""
PAIRS_MAX: Final = 1_000
"""Pairs of client and topic, and of client and quota, that are told apart; taken in some 5 ms."""
TOPICS_MAX: Final = 1_000
"""Topics, written to or read from, whose further clients are told together; beyond, further topics are too."""
OTHERS: Final = "(others)"
READ, WRITE = "READ", "WRITE"


class Use(NamedTuple):
    """A client has used a topic. `records` is None for reads: nodes do not count those."""

    principal: str
    address: str
    client_id: str
    operation: str  # READ or WRITE
    topic: str
    size_bytes: int
    records: int | None


class Throttling(NamedTuple):
    """A quota has held a client's connections back."""

    principal: str
    address: str
    client_id: str
    quota_type: str  # produce, fetch, request, controller_mutation, connection_creation
    entity: str  # as `quota_entities` writes it; empty for others
    limit: float  # in the unit of the quota
    throttle_time_ms: int  # in all
    throttle_time_ms_max: int


class Sums:
    """The sums of a pair."""

    __slots__ = ("first", "limit", "second", "times")

    def __init__(self) -> None:
        self.times = 0
        self.first = 0
        self.second = 0
        self.limit = 0.0  # the last one that held


Key = tuple[str, str, str, str, str]  # user, address, client id, operation or quota type, topic or entity
Taken = list[tuple[Use | Throttling, int]]


class UseWindow:
    """Use and delays since they were taken. It ends with a whole interval, so that all nodes' add up to buckets."""

    __slots__ = ("_interval_ms", "_throttled", "_used", "start_ms")

    def __init__(self, now_ms: int, interval_ms: int = MINUTE_MS) -> None:
        assert interval_ms > 0, interval_ms
        self.start_ms = now_ms
        self._interval_ms = interval_ms
        self._used: dict[Key, Sums] = {}  # bytes and records
        self._throttled: dict[Key, Sums] = {}  # sum and maximum

    def __len__(self) -> int:
        return len(self._used) + len(self._throttled)

    def wrote(self, user: str, address: str, client_id: str, topic: str, size_bytes: int, records: int) -> None:
        """Count a batch that was appended."""
        self._add((user, address, client_id, WRITE, topic), size_bytes, records)

    def read(self, user: str, address: str, client_id: str, topic: str, size_bytes: int) -> None:
        """Count records of a partition that a client was given."""
        self._add((user, address, client_id, READ, topic), size_bytes, 0)

    def _add(self, key: Key, size_bytes: int, records: int) -> None:
        sums = self._used.get(key) or self._room_of(key)
        sums.times += 1
        sums.first += size_bytes
        sums.second += records

    def _room_of(self, key: Key) -> Sums:
        """The sums of a client and a topic; where there is no room, of the topic; and at last of all others."""
        operation, topic = key[3:]
        if len(self._used) >= PAIRS_MAX:
            key = (OTHERS, "", "", operation, topic)
        if len(self._used) >= PAIRS_MAX + TOPICS_MAX and key not in self._used:
            key = (OTHERS, "", "", operation, OTHERS)
        return self._used.setdefault(key, Sums())

    def throttled(
        self, user: str, address: str, client_id: str, quota: tuple[str, str, float], throttle_time_ms: int
    ) -> None:
        """Count a delay by a quota, which is its type, its entity and its limit."""
        quota_type, entity, limit = quota
        sums = _room(self._throttled, (user, address, client_id, quota_type, entity))
        sums.times += 1
        sums.first += throttle_time_ms
        sums.second = max(sums.second, throttle_time_ms)
        sums.limit = limit

    def is_due(self, now_ms: int) -> bool:
        """Whether the interval has ended in which the window began, or the clock was set back before it."""
        return now_ms // self._interval_ms != self.start_ms // self._interval_ms

    def take(self, now_ms: int) -> Taken:
        """Return each with the number of its requests, and begin again."""
        taken: Taken = []
        for (user, address, client_id, operation, topic), sums in self._used.items():
            records = sums.second if operation == WRITE else None
            use = Use(_principal(user), address, shortened(client_id), operation, topic, sums.first, records)
            taken.append((use, sums.times))
        for (user, address, client_id, quota_type, entity), sums in self._throttled.items():
            client, quota = (_principal(user), address, shortened(client_id)), (quota_type, entity, sums.limit)
            taken.append((Throttling(*client, *quota, sums.first, sums.second), sums.times))
        self.start_ms, self._used, self._throttled = now_ms, {}, {}
        return taken


def _room(sums: dict[Key, Sums], key: Key) -> Sums:
    """The sums of a client and a quota, or those of the others where there is no room."""
    found = sums.get(key)
    if found is None:
        if len(sums) >= PAIRS_MAX:
            key = (OTHERS, "", "", key[3], "")
        found = sums.setdefault(key, Sums())
    return found


def _principal(user: str) -> str:
    return shortened_principal(f"User:{user}")

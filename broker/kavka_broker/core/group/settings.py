"""The limits that an operator sets on groups, by Kafka's names."""

from collections.abc import Callable
from dataclasses import dataclass

from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.core.streams_group.settings import StreamsGroupSettings

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""A member that has never been part of a generation is dropped after this long, even while its join is parked: its
client may be gone without a trace (KAFKA-4676)."""

PROTOCOLS_MAX = 100
"""That one member speaks. A consumer names an assignor or two, a worker of Connect three; to choose among those of many
members takes a step for each."""

PENDING_MEMBERS_MAX = 10_000
"""Ids given out that nobody has joined with; past this the oldest is forgotten, and its client starts again."""

GROUPS_PER_PARTITION_MAX = 100_000
"""Groups that one partition of `__consumer_offsets` holds; past this, new ones are refused. Whoever may join may also
make up names, and each costs memory until its offsets expire."""

TEXTS_BYTES_MAX = 64 * 1024 * 1024
"""Of the names of groups that have offsets in one partition of `__consumer_offsets`, and of the metadata of those."""


def text_bytes(text: str) -> int:
    """What a text may take: a character has four bytes at most."""
    return 4 * len(text)


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Settings of all groups; the comment behind each field is its config."""

    session_timeout_min_ms: int = 6_000  # group.min.session.timeout.ms
    session_timeout_max_ms: int = 1_800_000  # group.max.session.timeout.ms
    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    members_max: int = 2**31 - 1  # group.max.size
    offset_metadata_max_bytes: int = 4_096  # offset.metadata.max.bytes
    offsets_retention_ms: int = 7 * 24 * 3_600_000  # offsets.retention.minutes
    consumer: Callable[[str], ConsumerGroupSettings] = lambda _: ConsumerGroupSettings()  # of a group, by its id
    share: Callable[[str], ShareGroupSettings] = lambda _: ShareGroupSettings()  # likewise
    streams: Callable[[str], StreamsGroupSettings] = lambda _: StreamsGroupSettings()

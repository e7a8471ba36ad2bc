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

PROTOCOL_TYPE_CHARACTERS_MAX = 249
"""That a group may have; Kafka has no bound. All that is known is `consumer`, `connect` and `sr`."""

SHORT_NAME_CHARACTERS = 249
"""Names of groups up to here are bounded by the number of groups alone."""
LONG_NAMES_BYTES_MAX = 32 * 1024 * 1024
"""Of longer names: of groups of one partition of `__consumer_offsets` that have offsets, or are classic ones."""
SHORT_METADATA_CHARACTERS = 128
"""Metadata of offsets up to here is bounded by the number of offsets alone: Kafka Streams always has some."""
LONG_METADATA_BYTES_MAX = 64 * 1024 * 1024
"""Of longer metadata, likewise."""


def name_bytes(group_id: str) -> int:
    """What a group's name takes of the room for long ones."""
    return 0 if len(group_id) <= SHORT_NAME_CHARACTERS else _size(group_id)


def metadata_bytes(metadata: str) -> int:
    """What an offset's metadata takes of the room for long ones."""
    return 0 if len(metadata) <= SHORT_METADATA_CHARACTERS else _size(metadata)


def _size(text: str) -> int:
    return len(text) if text.isascii() else 4 * len(text)


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

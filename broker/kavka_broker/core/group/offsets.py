"""How far a group has read.

A commit is taken from a member of the running generation, or, with generation -1, from anybody while the group has no
members: that is how tools reset offsets, and how consumers that assign themselves keep theirs. While assignments are
being handed out no member may commit: the committer could already have lost its partitions.

Offsets end some time after the group does (KIP-211), never while a client may still want them: see `expired_offsets`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kavka_broker.core.consumer_group.state import ConsumerGroup
from kavka_broker.core.group.checks import member_of, require_generation
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.group.settings import GroupSettings, metadata_bytes
from kavka_broker.core.group.state import ClassicGroup, GroupState
from kavka_broker.core.group.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from kavka_broker.core.share_group.state import ShareGroup
from kavka_broker.core.streams_group.state import StreamsGroup
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue
from kavka_broker.protocol.uuids import ZERO

__all__ = [
    "AnyGroup",
    "Commit",
    "CommittingGroup",
    "MetadataRoom",
    "Offsets",
    "check_committer",
    "check_transactional_committer",
    "commit_records",
    "expired_offsets",
]

Offsets = dict[str, dict[int, OffsetCommitValue]]
"""The committed offsets of one group, by topic and partition."""
CommittingGroup = ClassicGroup | ConsumerGroup | StreamsGroup
"""A group that commits offsets."""
AnyGroup = CommittingGroup | ShareGroup

NEVER = -1
NO_RETENTION = -1
LATEST_MS = 2**63 - 1
VALUE_VERSION = 4  # the version that Kafka 4.3 writes
VALUE_VERSION_WITH_EXPIRY = 1  # the only version with a time of expiry; a client below OffsetCommit 5 may give one
assert VALUE_VERSION_WITH_EXPIRY < VALUE_VERSION <= OffsetCommitValue.VERSIONS[1], VALUE_VERSION


@dataclass(frozen=True, slots=True)
class Commit:
    """One partition's offset as a client commits it."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""
    topic_id: bytes = ZERO


def check_committer(group: ClassicGroup, generation: int, member_id: str, instance_id: str | None) -> None:
    """Check that this client may commit now. Raises BrokerError."""
    if group.state is GroupState.DEAD:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation < 0 and group.state is GroupState.EMPTY:
        return
    if generation < 0 and not member_id and instance_id is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, "the group has members; only they may commit")
    member_of(group, member_id, instance_id)
    require_generation(group, generation)
    if group.state is GroupState.COMPLETING_REBALANCE:
        raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)


def check_transactional_committer(
    group: ClassicGroup, generation: int, member_id: str, instance_id: str | None
) -> None:
    """Check that this client may commit in a transaction now (KIP-447). Raises BrokerError.

    Producers of before KIP-447 name no member, and may always. A rebalance that is under way is no reason: the member
    commits what it has processed before it gives its partitions up.
    """
    if group.state is GroupState.DEAD:
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if generation < 0 and (group.state is GroupState.EMPTY or (not member_id and instance_id is None)):
        return
    member_of(group, member_id, instance_id)
    require_generation(group, generation)


def commit_records(
    group_id: str,
    commits: Sequence[Commit],
    retention_ms: int,
    settings: GroupSettings,
    now_ms: int,
    room: "MetadataRoom",
) -> tuple[list[ErrorCode], list[KeyedRecord]]:
    """An error for each commit, and the records of those that have none."""
    errors, records = [], []
    for commit in commits:
        try:
            record = commit_record(group_id, commit, retention_ms, settings, now_ms)
            room.take(commit)
            records.append(record)
            errors.append(ErrorCode.NONE)
        except BrokerError as error:
            errors.append(error.code)
    return errors, records


class MetadataRoom:
    """Room of so many bytes for long metadata of a group that has these offsets. Commits grow by `taken_bytes`."""

    def __init__(self, room_bytes: int, offsets: Offsets) -> None:
        self._room_bytes = room_bytes
        self._offsets = offsets
        self.taken_bytes = 0

    def take(self, commit: Commit) -> None:
        """Take the room for a commit. Raises OFFSET_METADATA_TOO_LARGE; what does not grow always fits."""
        size_bytes = metadata_bytes(commit.metadata or "")
        if not size_bytes:
            return
        former = self._offsets.get(commit.topic, {}).get(commit.partition)
        growth = size_bytes - (0 if former is None else metadata_bytes(former.metadata))
        if growth <= 0:
            return
        if growth > self._room_bytes - self.taken_bytes:
            raise BrokerError(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        self.taken_bytes += growth


def commit_record(
    group_id: str, commit: Commit, retention_ms: int, settings: GroupSettings, now_ms: int
) -> KeyedRecord:
    """The record of one commit. Raises BrokerError where metadata is too large. `retention_ms` -1: the broker's own."""
    metadata = commit.metadata or ""
    if len(metadata) > settings.offset_metadata_max_bytes:
        raise BrokerError(ErrorCode.OFFSET_METADATA_TOO_LARGE)
    expires = retention_ms != NEVER
    value = OffsetCommitValue(
        offset=commit.offset,
        leader_epoch=commit.leader_epoch,
        metadata=metadata,
        commit_timestamp=now_ms,
        expire_timestamp=min(now_ms + retention_ms, LATEST_MS) if expires else NEVER,
        topic_id=commit.topic_id,
    )
    version = VALUE_VERSION_WITH_EXPIRY if expires else VALUE_VERSION
    return KeyedRecord(OffsetCommitKey(group_id, commit.topic, commit.partition), value, version)


def expired_offsets(
    group: CommittingGroup, offsets: Offsets, settings: GroupSettings, now_ms: int
) -> Iterator[tuple[str, int]]:
    """Offsets whose retention has passed.

    - No members any more: the retention counts from when the last one left, or the commit if that came later.
    - No members ever (the group only commits): from the commit.
    - Consumers with members: only topics that no member subscribes to, from the commit.
    - Any other classic group with members: never.
    - Groups of the new protocols: topics that no member subscribes to, or that the topology does not read, from the
      commit.
    """
    if isinstance(group, ConsumerGroup):
        since_ms, kept = NEVER, group.all_topics()
    elif isinstance(group, StreamsGroup):
        since_ms, kept = NEVER, group.source_topics
    elif group.protocol_type is None:
        since_ms, kept = NEVER, frozenset[str]()
    elif group.state is GroupState.EMPTY:
        since_ms, kept = group.state_since_ms, frozenset[str]()
    elif group.state is GroupState.STABLE and group.protocol_type == CONSUMER_PROTOCOL_TYPE:
        subscribed = subscribed_topics(group)
        if subscribed is None:
            return
        since_ms, kept = NEVER, subscribed
    else:
        return
    for topic, partitions in offsets.items():
        if topic not in kept:
            yield from (
                (topic, partition)
                for partition, value in partitions.items()
                if is_expired(value, since_ms, settings.offsets_retention_ms, now_ms)
            )


def is_expired(value: OffsetCommitValue, since_ms: int, retention_ms: int, now_ms: int) -> bool:
    if value.expire_timestamp != NEVER:
        return now_ms >= value.expire_timestamp
    start_ms = value.commit_timestamp if since_ms == NEVER else max(since_ms, value.commit_timestamp)
    return now_ms - start_ms >= retention_ms


def count(offsets: Mapping[str, Mapping[int, OffsetCommitValue]]) -> int:
    return sum(map(len, offsets.values()))

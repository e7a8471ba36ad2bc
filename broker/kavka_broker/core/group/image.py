"""All groups of one partition of `__consumer_offsets`, as the log says.

`replay` is the only way in when a broker takes the partition over. While it serves, only offsets come this way, each
once its record is committed: no client reads an offset that could still be lost. Groups are ahead of the log by their
soft state and write down where they are.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.consumer_group.records import KEYS as CONSUMER_GROUP_KEYS
from kavka_broker.core.consumer_group.records import replay as replay_consumer_group
from kavka_broker.core.consumer_group.state import ConsumerGroup
from kavka_broker.core.group.offsets import AnyGroup, Offsets
from kavka_broker.core.group.persistence import restore
from kavka_broker.core.group.settings import (
    GROUPS_PER_PARTITION_MAX,
    LONG_METADATA_BYTES_MAX,
    LONG_NAMES_BYTES_MAX,
    metadata_bytes,
    name_bytes,
)
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.core.group.transactional_offsets import Staged, StagedOffset
from kavka_broker.core.share_group.records import KEYS as SHARE_GROUP_KEYS
from kavka_broker.core.share_group.records import replay as replay_share_group
from kavka_broker.core.share_group.state import ShareGroup
from kavka_broker.core.streams_group.records import KEYS as STREAMS_GROUP_KEYS
from kavka_broker.core.streams_group.records import replay as replay_streams_group
from kavka_broker.core.streams_group.state import StreamsGroup
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.group_metadata_key import GroupMetadataKey
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue

__all__ = ["NO_OFFSETS", "GroupImage"]

NO_OFFSETS: Offsets = {}
NOT_KNOWN: Final = -1
CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""Types of groups, as ListGroups names them."""


@dataclass(frozen=True, slots=True)
class GroupBounds:
    """What the groups of one partition may take."""

    groups_max: int = GROUPS_PER_PARTITION_MAX
    long_names_bytes_max: int = LONG_NAMES_BYTES_MAX
    long_metadata_bytes_max: int = LONG_METADATA_BYTES_MAX


BOUNDS: Final = GroupBounds()


class GroupImage:
    """Groups and offsets by group id. A group with offsets and no record only commits (a simple one)."""

    def __init__(self, bounds: GroupBounds = BOUNDS) -> None:
        self.bounds = bounds
        self.groups: dict[str, ClassicGroup] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}  # of the new protocol; none of them is in `groups`
        self.share_groups: dict[str, ShareGroup] = {}  # none of them is in the two others
        self.streams_groups: dict[str, StreamsGroup] = {}  # nor is one of these in the three
        self._offsets: dict[str, Offsets] = {}
        self._names_bytes = 0  # of the long names in `_offsets`, and of those of classic groups
        self._metadata_bytes = 0  # of the long metadata in them
        self.writing_metadata_bytes = 0  # of what is not committed yet, outside of transactions
        self._sizes: dict[str, int] = {}  # of classic groups
        self.classic_bytes = 0  # the sum of them
        self._long_names: dict[str, int] = {}  # of classic groups, in bytes
        self.with_ids: dict[str, None] = {}  # groups with ids that nobody has joined with, by when they gave the last
        self._ids: dict[str, int] = {}  # how many they had when they were counted
        self.staged = Staged()

    def offsets(self, group_id: str) -> Offsets:
        return self._offsets.get(group_id, NO_OFFSETS)

    @property
    def metadata_room_bytes(self) -> int:
        """What long metadata of offsets may grow by."""
        taken = self._metadata_bytes + self.staged.metadata_bytes + self.writing_metadata_bytes
        return max(0, self.bounds.long_metadata_bytes_max - taken)

    @staticmethod
    def type_of(group: AnyGroup) -> str:
        """The protocol of the group's members."""
        match group:
            case ConsumerGroup():
                return CONSUMER
            case ShareGroup():
                return SHARE
            case StreamsGroup():
                return STREAMS
        return CLASSIC

    def replay(self, key: Message, value: Message | None) -> None:
        """Replay a record while the log is read; kinds of other features are passed over."""
        match key, value:
            case GroupMetadataKey(), None:
                self.groups.pop(key.group, None)
            case GroupMetadataKey(), GroupMetadataValue():
                self.groups[key.group] = restore(key.group, value)
            case _ if isinstance(key, CONSUMER_GROUP_KEYS):
                replay_consumer_group(self.consumer_groups, key, value)
            case _ if isinstance(key, SHARE_GROUP_KEYS):
                replay_share_group(self.share_groups, key, value)
            case _ if isinstance(key, STREAMS_GROUP_KEYS):
                replay_streams_group(self.streams_groups, key, value)
            case _:
                self.replay_offset(key, value)

    def find(self, group_id: str) -> AnyGroup | None:
        """The group, of whichever protocol it is."""
        return (
            self.groups.get(group_id)
            or self.consumer_groups.get(group_id)
            or self.share_groups.get(group_id)
            or self.streams_groups.get(group_id)
        )

    def check_room(self, group_id: str) -> None:
        """Check that one group more may be made. Raises BrokerError."""
        newer = len(self.consumer_groups) + len(self.share_groups) + len(self.streams_groups)
        bounds = self.bounds
        if len(self.groups) + newer >= bounds.groups_max:
            problem = f"group {group_id} would be one more than the {bounds.groups_max} of its partition"
            raise BrokerError(ErrorCode.POLICY_VIOLATION, problem)
        taken = self._names_bytes + self.staged.names_bytes
        if (size_bytes := name_bytes(group_id)) and size_bytes + taken > bounds.long_names_bytes_max:
            problem = f"long names of groups take the {bounds.long_names_bytes_max} bytes that they may take"
            raise BrokerError(ErrorCode.POLICY_VIOLATION, problem)

    def count(self, group: ClassicGroup) -> None:
        """Count what a classic group takes now."""
        if self.groups.get(group.group_id) is not group:
            return
        self._resize(group.group_id, group.size_bytes)
        if group.group_id not in self._long_names and (size_bytes := name_bytes(group.group_id)):
            self._long_names[group.group_id] = size_bytes
            self._names_bytes += size_bytes
        if group.pending or group.group_id in self.with_ids:
            self._note_ids(group.group_id, len(group.pending))

    def _note_ids(self, group_id: str, count: int) -> None:
        former = self._ids.pop(group_id, 0)
        if count > former or not count:
            self.with_ids.pop(group_id, None)
        if count:
            self.with_ids[group_id] = None
            self._ids[group_id] = count

    def drop_classic(self, group_id: str) -> None:
        """Forget a classic group, where there is one of this name."""
        self.groups.pop(group_id, None)
        self._resize(group_id, 0)
        self._note_ids(group_id, 0)
        self._names_bytes -= self._long_names.pop(group_id, 0)

    def _resize(self, group_id: str, size_bytes: int) -> None:
        self.classic_bytes += size_bytes - self._sizes.pop(group_id, 0)
        if size_bytes:
            self._sizes[group_id] = size_bytes
        assert self.classic_bytes >= 0, self.classic_bytes

    def stage(self, producer_id: int, offset: StagedOffset) -> None:
        """Keep an offset of an open transaction. Its group exists from now on."""
        if self.find(offset.key.group) is None:
            self.groups[offset.key.group] = ClassicGroup(offset.key.group)
        self.staged.stage(producer_id, offset)

    def replay_offset(self, key: Message, value: Message | None, log_offset: int = NOT_KNOWN) -> None:
        """Replay an offset record that this broker wrote, now committed. The groups know what its other records say.

        Staged offsets that stand before it in the log are nothing any more.
        """
        if isinstance(key, OffsetCommitKey) and log_offset != NOT_KNOWN and len(self.staged):
            self.staged.supersede(key, log_offset)
        match key, value:
            case OffsetCommitKey(), None:
                self._forget_offset(key)
            case OffsetCommitKey(), OffsetCommitValue():
                if self.find(key.group) is None:
                    self.groups[key.group] = ClassicGroup(key.group)
                self._put_offset(key, value)

    def finish_loading(self) -> Iterator[None]:
        """Finish after the whole log was replayed: a group whose record was deleted may still have offsets. A group
        a step.
        """
        for group_id in list(self.consumer_groups):
            # Records of one group in both forms are of a log that was cut short while it changed its protocol.
            if (classic := self.groups.get(group_id)) is not None and classic.members:
                del self.consumer_groups[group_id]
            else:
                self.groups.pop(group_id, None)
                self.consumer_groups[group_id].forget_unexpressed()
            yield
        for group_id in list(self.share_groups):
            # As above. Offsets of a share group are with the share coordinator.
            other = self.groups.get(group_id) or self.consumer_groups.get(group_id)
            if other is not None and other.members:
                del self.share_groups[group_id]
            else:
                self.groups.pop(group_id, None)
                self.consumer_groups.pop(group_id, None)
            yield
        for group_id in list(self.streams_groups):
            # As above, with offsets.
            newer = self.consumer_groups.get(group_id) or self.share_groups.get(group_id)
            if newer is not None or ((classic := self.groups.get(group_id)) is not None and classic.members):
                del self.streams_groups[group_id]
            else:
                self.groups.pop(group_id, None)
            yield
        for group_id in list(self._offsets):
            if self.find(group_id) is None:
                self.groups[group_id] = ClassicGroup(group_id)
            yield
        for group in list(self.groups.values()):
            self.forget_trace(group)
            yield

    def forget_trace(self, group: ClassicGroup) -> None:
        """Drop a group of which only the name is left: no members now or ever, no offsets."""
        is_trace = group.generation == 0 and not group.members and not group.pending
        if is_trace and group.group_id not in self._offsets and not self.staged.has_group(group.group_id):
            self.drop_classic(group.group_id)

    def _put_offset(self, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        topics = self._offsets.get(key.group)
        if topics is None:
            topics = self._offsets[key.group] = {}
            self._names_bytes += name_bytes(key.group)
        partitions = topics.setdefault(key.topic, {})
        former = partitions.get(key.partition)
        if former is not None and former.metadata:
            self._metadata_bytes -= metadata_bytes(former.metadata)
        if value.metadata:
            self._metadata_bytes += metadata_bytes(value.metadata)
        partitions[key.partition] = value

    def _forget_offset(self, key: OffsetCommitKey) -> None:
        topics = self._offsets.get(key.group)
        partitions = None if topics is None else topics.get(key.topic)
        if topics is None or partitions is None:
            return
        if (former := partitions.pop(key.partition, None)) is not None:
            self._metadata_bytes -= metadata_bytes(former.metadata)
        if not partitions:
            del topics[key.topic]
        if not topics:
            self._forget_name(key.group)

    def _forget_name(self, group_id: str) -> None:
        """Forget a group that has no offset any more."""
        del self._offsets[group_id]
        self._names_bytes -= name_bytes(group_id)
        assert min(self._names_bytes, self._metadata_bytes) >= 0, (self._names_bytes, self._metadata_bytes)

    def groups_with_offsets(self) -> list[str]:
        return list(self._offsets)

    def take(self, group_id: str, topics: Iterable[str]) -> list[tuple[str, str, list[int]]]:
        """Forget offsets of a group on these topics, which it has: group, topic and partitions of each."""
        offsets = self._offsets.get(group_id, {})
        taken = []
        for topic in topics:
            partitions = offsets.pop(topic)
            self._metadata_bytes -= sum(metadata_bytes(value.metadata) for value in partitions.values())
            taken.append((group_id, topic, list(partitions)))
        if taken and not offsets:
            self._forget_name(group_id)
        return taken

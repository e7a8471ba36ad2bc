"""The groups of one partition of `__consumer_offsets` that this broker leads.

Everything happens on the loop, one step after the other. A group is one of the classic protocol (`classic_groups`), of
the new one (`consumer_groups`), which may have members of both, of consumers that share partitions (`share_groups`), or
of Kafka Streams (`streams_groups`). Records go through the partition like anybody's,
with acks=all. Where this broker is the whole ISR they are committed when the append returns, and the answer leaves in
the same step; else it waits.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

from kavka_broker.coordinator.groups.classic_groups import ClassicGroups, answer
from kavka_broker.coordinator.groups.classic_members import ClassicMembers
from kavka_broker.coordinator.groups.consumer_groups import ConsumerGroups
from kavka_broker.coordinator.groups.deleted_topics import DeletedTopics
from kavka_broker.coordinator.groups.offset_expiration import GROUP_IN_OFFSETS, OffsetExpiration
from kavka_broker.coordinator.groups.share_groups import ShareGroups
from kavka_broker.coordinator.groups.share_offsets import ShareOffsets
from kavka_broker.coordinator.groups.streams_groups import StreamsGroups
from kavka_broker.coordinator.groups.transactional_offsets import Staging, Waiting
from kavka_broker.coordinator.led_partition import LedPartition
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.shard_log import ShardLog
from kavka_broker.coordinator.share.share_state_client import ShareStateClient
from kavka_broker.core.consumer_group import committing
from kavka_broker.core.consumer_group.state import ConsumerGroup
from kavka_broker.core.group import membership
from kavka_broker.core.group.deletion import check_offset_deletion, delete_group
from kavka_broker.core.group.effects import Respond
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.join import Join
from kavka_broker.core.group.offsets import (
    Commit,
    CommittingGroup,
    MetadataRoom,
    Offsets,
    check_committer,
    commit_records,
)
from kavka_broker.core.group.records import KeyedRecord, batch_of, offset_tombstone
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.core.group.sync import Sync
from kavka_broker.core.streams_group import committing as streams_committing
from kavka_broker.core.streams_group.state import StreamsGroup
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse

GROUP_MISSING_VERSION = 9  # OffsetCommit tells a missing group from a stale generation from this version on


class Shard:
    """The groups of one led partition. `is_loading` until its log is read; `is_unreadable` if it cannot be read."""

    def __init__(
        self,
        partition: LedPartition,
        removals: DeletedTopics,
        settings: GroupSettings,
        pacing: Pacing,
        commit_timeout_ms: int,
        share_states: Callable[[], ShareStateClient | None] = lambda: None,
    ) -> None:
        self.partition = partition
        self.image = GroupImage()
        self.is_loading = True
        self.is_unreadable = False
        self.log = ShardLog(partition, pacing.timers, commit_timeout_ms)
        self._removals = removals
        self._settings = settings
        self._clock = clock = pacing.clock
        self.upkeep = OffsetExpiration(
            self.image,
            removals,
            settings,
            self._append_quietly,
            is_writing=self._is_writing,
            bury=lambda group: self._bury(group, ErrorCode.UNKNOWN_MEMBER_ID),
            now_ms=clock.now_ms,
            batch_bytes_max=lambda: partition.log.config.max_message_bytes,
        )
        self.classics = ClassicGroups(self.image, settings, partition, self._append, pacing)
        turns = ExclusiveTurns()
        self.consumers = ConsumerGroups(self.image, removals, settings, self.log, turns, self.classics, pacing)
        self.members = ClassicMembers(self.consumers, settings, self.log, pacing)
        self.shares = ShareGroups(self.image, removals, settings, self.log, turns, pacing)
        self.share_offsets = ShareOffsets(self.shares, share_states, pacing.slices)
        self.streams = StreamsGroups(self.image, removals, settings, self.log, turns, self.classics, pacing)
        self.staging = Staging(
            self.image, self.upkeep, settings, self._append, self.image.check_room, clock.now_ms, pacing.slices
        )

    @property
    def is_closed(self) -> bool:
        return self.log.is_closed

    def expect_members(self) -> Iterator[int]:
        """Start the members' sessions once the log has been read. A group or a member a step; yields how much each
        counts, in offsets looked at.
        """
        yield from self.classics.expect_members()
        yield from self.consumers.expect_members()
        yield from self.shares.expect_members()
        yield from self.streams.expect_members()

    def open(self) -> None:
        """Begin to serve the groups. What was loaded may rest on records that are not committed yet."""
        self.log.open()
        self.is_loading = False

    def close(self) -> Iterator[int]:
        """Answer waiting members with NOT_COORDINATOR: another broker takes over. A group a step, as `expect_members`;
        from the first step on nothing is appended any more.
        """
        self.log.close()
        self.consumers.close()
        self.share_offsets.close()
        self.shares.close()
        self.streams.close()
        for group in list(self.image.groups.values()):
            members = len(group.members)
            self._bury(group, ErrorCode.NOT_COORDINATOR)
            yield GROUP_IN_OFFSETS + members

    # --- members ------------------------------------------------------------------------------------------------

    def join(self, group_id: str, command: Join) -> None:
        """Raises BrokerError."""
        streams = self.streams.get(group_id)
        if group_id in self.image.share_groups or (streams is not None and streams.members):
            answer(Respond(command.token, JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)))
        elif not self.members.join(group_id, command, self.join):
            self.consumers.make_classic(group_id)
            self.streams.make_classic(group_id)
            self.classics.join(group_id, command)

    def sync(self, group_id: str, command: Sync) -> None:
        if not self.members.sync(group_id, command):
            self.classics.sync(group_id, command)

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
        if self.consumers.get(group_id) is not None:
            return self.members.heartbeat(group_id, generation, member_id, instance_id)
        return self.classics.heartbeat(group_id, generation, member_id, instance_id)

    def leave(
        self, group_id: str, departures: Sequence[membership.Departure]
    ) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        """The error of each departure."""
        if self.consumers.get(group_id) is not None:
            return self.members.leave(group_id, departures, self.leave)
        return self.classics.leave(group_id, departures)

    # --- offsets ------------------------------------------------------------------------------------------------

    def offsets(self, group_id: str) -> Offsets:
        """The committed offsets of a group, without those of deleted topics."""
        self.upkeep.forget(group_id)
        return self.image.offsets(group_id)

    def commit(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        commits: Sequence[Commit],
        retention_ms: int,
        version: int,
    ) -> tuple[list[ErrorCode], Waiting | None]:
        """Append offsets. Returns an error for each, and a future of the commit. Raises BrokerError if all fail."""
        consumers = self.consumers.get(group_id)
        if consumers is not None:
            places = [(commit.topic_id, commit.partition) for commit in commits]
            committing.check_committer(consumers, generation, member_id, version, places)
        elif (streams := self.streams.get(group_id)) is not None:
            names = [(commit.topic, commit.partition) for commit in commits]
            streams_committing.check_committer(streams, generation, member_id, version, names)
        else:
            group = self._committing(group_id, generation, version)
            check_committer(group, generation, member_id, instance_id)
            if generation >= 0:
                self.classics.keep_alive(group, member_id)
        room = MetadataRoom(self.image.metadata_room_bytes, self.image.offsets(group_id))
        errors, records = commit_records(group_id, commits, retention_ms, self._settings, self._clock.now_ms(), room)
        waiting = self._append(group_id, records) if records else None
        if waiting is not None and room.taken_bytes:
            self.image.writing_metadata_bytes += room.taken_bytes
            waiting.add_done_callback(partial(self._written, room.taken_bytes))
        return errors, waiting

    def _written(self, metadata_bytes: int, waiting: Waiting) -> None:
        """Count metadata no longer as being written: what was committed counts by itself."""
        del waiting
        self.image.writing_metadata_bytes -= metadata_bytes

    def _committing(self, group_id: str, generation: int, version: int) -> ClassicGroup:
        group = self.image.groups.get(group_id)
        if group is not None:
            return group
        self.shares.refuse(group_id)
        if generation < 0:
            self.image.check_room(group_id)
            return ClassicGroup(group_id)
        missing = version >= GROUP_MISSING_VERSION
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.ILLEGAL_GENERATION)

    def delete_offsets(self, group_id: str, partitions: Sequence[tuple[str, int]]) -> tuple[set[str], Waiting | None]:
        """Delete offsets. Returns the topics that keep theirs for a member, and a future. Raises BrokerError."""
        topics = {topic for topic, _ in partitions}
        if (consumers := self.consumers.get(group_id)) is not None:
            kept = committing.subscribed_of(consumers, topics)
        elif (streams := self.streams.get(group_id)) is not None:
            kept = topics & streams.source_topics
        else:
            kept = check_offset_deletion(self._existing(group_id), topics)
        offsets = self.offsets(group_id)
        records = [
            offset_tombstone(group_id, topic, index)
            for topic, index in partitions
            if topic not in kept and index in offsets.get(topic, ())
        ]
        return kept, self._append(group_id, records) if records else None

    # --- groups -------------------------------------------------------------------------------------------------

    def delete_group(self, group_id: str) -> Waiting | None:
        """Delete an empty group and its offsets. Returns a future of the commit. Raises BrokerError."""
        group = self.consumers.get(group_id) or self.streams.get(group_id) or self._existing(group_id)
        if self._is_writing(group_id):
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP, "the group is being changed, or offsets of it are committed")
        offsets, staged = self.offsets(group_id), self.image.staged.of_group(group_id)
        waiting = self._append(group_id, delete_group(group, offsets, staged))
        self._bury(group, ErrorCode.UNKNOWN_MEMBER_ID)
        return waiting

    def _is_writing(self, group_id: str) -> bool:
        return self.log.is_writing(group_id) or self.consumers.is_changing(group_id)  # or another: turns are of all

    def _existing(self, group_id: str) -> ClassicGroup:
        group = self.image.groups.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def _bury(self, group: CommittingGroup, error: ErrorCode) -> None:
        match group:
            case ConsumerGroup():
                self.consumers.end(group)
            case StreamsGroup():
                self.streams.end(group)
            case ClassicGroup():
                self.classics.bury(group, error)

    # --- the log ------------------------------------------------------------------------------------------------

    def _append(
        self, group_id: str | None, records: Sequence[KeyedRecord], producer: tuple[int, int] | None = None
    ) -> Waiting | None:
        """Append records as one batch. Returns a future of its commit, None if it is committed. Raises BrokerError.

        A group that is named counts as writing until the commit. What a `producer` commits in a transaction is staged
        from the append on: who asks for stable offsets must not get those before it.
        """
        removals = self._removals.number
        base_offset = self.log.append(batch_of(records, self._clock.now_ms(), producer))
        if producer is not None:
            self.staging.keep(producer[0], records, removals, base_offset)
            records = ()
        return self.log.when_committed(group_id, partial(self._replay, records, removals, base_offset))

    def _append_quietly(self, records: Sequence[KeyedRecord]) -> bool:
        """Append the records of background work, which is retried later. Returns False where the log refuses them."""
        try:
            self._append(None, records)
        except BrokerError:
            return False
        return True

    def _replay(self, records: Sequence[KeyedRecord], removals: int, base_offset: int) -> None:
        for log_offset, record in enumerate(records, base_offset):
            self.upkeep.replay_offset(record, removals, log_offset)

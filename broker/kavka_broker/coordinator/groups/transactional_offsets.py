"""Offsets that transactions commit to the groups of a shard: staged, and taken over when the marker comes."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from kavka_broker.coordinator.groups.offset_expiration import OffsetExpiration
from kavka_broker.core.consumer_group import committing
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.offsets import (
    NO_RETENTION,
    Commit,
    MetadataRoom,
    check_transactional_committer,
    commit_records,
)
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.transactional_offsets import StagedOffset
from kavka_broker.core.streams_group import committing as streams_committing
from kavka_broker.loop.slices import Cost, Slices, Work, at_once
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue

Waiting = asyncio.Future[ErrorCode]
Committed = asyncio.Future[None] | None
#: Appends records of a group in a producer's transaction; returns a future of the commit, if there is any to wait for.
Append = Callable[[str, Sequence[KeyedRecord], tuple[int, int]], Waiting | None]

SETTLED_AT_ONCE_MAX: Final = 10
"""Offsets that are settled as the marker is committed. One fetch of a follower may commit hundreds of markers."""
COST_PER_OFFSET: Final = 3


class Staging:
    """The part of a shard that commits to the groups of `image` within transactions."""

    def __init__(
        self,
        image: GroupImage,
        upkeep: OffsetExpiration,
        settings: GroupSettings,
        append: Append,
        check_room: Callable[[str], None],
        now_ms: Callable[[], int],
        slices: Slices,
    ) -> None:
        self._image = image
        self._upkeep = upkeep
        self._settings = settings
        self._append = append
        self._check_room = check_room
        self._now_ms = now_ms
        self._slices = slices

    def check(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        commits: Iterable[Commit],
        *,
        knows_epochs: bool = False,
    ) -> None:
        """Check that this client may commit this in a transaction now. Raises BrokerError: to a producer that does not
        know the errors of members' epochs, they are ILLEGAL_GENERATION.
        """
        if self._image.find(group_id) is None:
            if generation >= 0:
                raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND if knows_epochs else ErrorCode.ILLEGAL_GENERATION)
            self._check_room(group_id)
            return
        try:
            self._check_member(group_id, generation, member_id, instance_id, commits)
        except BrokerError as error:
            if knows_epochs or error.code is not ErrorCode.STALE_MEMBER_EPOCH:
                raise
            raise BrokerError(ErrorCode.ILLEGAL_GENERATION, error.message) from error

    def _check_member(
        self, group_id: str, generation: int, member_id: str, instance_id: str | None, commits: Iterable[Commit]
    ) -> None:
        """Raises BrokerError."""
        consumers, group = self._image.consumer_groups.get(group_id), self._image.groups.get(group_id)
        if consumers is not None:
            places = [(commit.topic_id, commit.partition) for commit in commits]
            committing.check_transactional_committer(consumers, generation, member_id, instance_id, places)
        elif (streams := self._image.streams_groups.get(group_id)) is not None:
            names = [(commit.topic, commit.partition) for commit in commits]
            streams_committing.check_transactional_committer(streams, generation, member_id, instance_id, names)
        elif group is not None:
            check_transactional_committer(group, generation, member_id, instance_id)
        else:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")

    def stage(
        self, group_id: str, producer: tuple[int, int], commits: Sequence[Commit]
    ) -> tuple[list[ErrorCode], Waiting | None]:
        """Append offsets that count from the end of the producer's transaction on. Returns an error for each, and a
        future of the commit. Raises BrokerError if all fail.
        """
        room = MetadataRoom(self._image.metadata_room_bytes, self._image.offsets(group_id))
        errors, records = commit_records(group_id, commits, NO_RETENTION, self._settings, self._now_ms(), room)
        return errors, self._append(group_id, records, producer) if records else None

    def keep(self, producer_id: int, records: Sequence[KeyedRecord], removals: int, base_offset: int) -> None:
        """Stage offsets that were appended at `base_offset`, when `removals` topic deletions were known."""
        for log_offset, (key, value, _) in enumerate(records, base_offset):
            assert isinstance(key, OffsetCommitKey), key
            assert isinstance(value, OffsetCommitValue), value
            self._image.stage(producer_id, StagedOffset(key, value, log_offset, removals))

    def end_transaction(self, producer_id: int, committed: Committed, *, commits: bool) -> Committed:
        """Take the producer's staged offsets over, or drop them, once its marker is committed; returns when that is
        done, None if it is. What the producer stages from now on is of its next transaction.
        """
        count = self._image.staged.count(producer_id)
        ended = self._image.staged.end(producer_id)
        if committed is None and count <= SETTLED_AT_ONCE_MAX:
            at_once(self._settling(ended, commits=commits))
            return None
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def take_over(committed: asyncio.Future[None]) -> None:
            error = committed.exception()
            if error is not None:
                finish(settled, error)
            elif count <= SETTLED_AT_ONCE_MAX:
                at_once(self._settling(ended, commits=commits))
                finish(settled)
            else:
                self._settle_later(ended, settled, commits=commits)

        if committed is None:
            self._settle_later(ended, settled, commits=commits)
        else:
            committed.add_done_callback(take_over)
        return settled

    def _settle_later(self, ended: Iterator[StagedOffset], settled: asyncio.Future[None], *, commits: bool) -> None:
        async def settle() -> None:
            await self._slices.turn()
            await self._slices.whole(self._settling(ended, commits=commits))
            finish(settled)

        watch(asyncio.get_running_loop().create_task(settle(), name="settle offsets of a transaction"))

    def _settling(self, ended: Iterator[StagedOffset], *, commits: bool) -> Work[None]:
        cost = Cost()
        for staged in ended:
            if commits:
                self._upkeep.settle(staged)
            elif (group := self._image.groups.get(staged.key.group)) is not None:
                self._image.forget_trace(group)
            if cost.add(COST_PER_OFFSET):
                yield


def finish(settled: asyncio.Future[None], error: BaseException | None = None) -> None:
    """End the future, unless it has been given up."""
    if settled.done():
        return
    if error is None:
        settled.set_result(None)
    else:
        settled.set_exception(error)

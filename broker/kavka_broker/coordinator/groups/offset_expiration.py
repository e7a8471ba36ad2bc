"""What is done to the groups of a partition by and by: offsets that have expired, and those of topics that are gone.

Nobody waits for it, and there may be hundreds of thousands of offsets: so the work goes in slices, one a turn of the
loop, and in batches that the log takes. Between two slices everything may change. What was committed since is left
alone, and a group to which somebody has come stays.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final

from kavka_broker.coordinator.groups.deleted_topics import DeletedTopics
from kavka_broker.core.group.deletion import ends_of, is_over
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.offsets import CommittingGroup, Offsets, expired_offsets
from kavka_broker.core.group.records import KeyedRecord, offset_tombstone
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.transactional_offsets import StagedOffset
from kavka_broker.protocol.coordinator_records import frame_key
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey

RECORDS_PER_SLICE_MAX: Final = 250
"""Building, appending and replaying so many records takes some 5 ms."""

OFFSETS_PER_SLICE_MAX: Final = 2_000
"""Offsets that a slice looks at."""
GROUP_IN_OFFSETS: Final = 10
"""The number of offsets that a group counts as."""

BATCH_BYTES_MAX: Final = 64 * 1024
RECORD_OVERHEAD_BYTES_MAX: Final = 32
BATCH_OVERHEAD_BYTES: Final = 64

Append = Callable[[Sequence[KeyedRecord]], bool]  # appends records as one batch; False if the log refuses it
Gone = tuple[str, str, list[int]]  # group, topic, partitions


class OffsetExpiration:
    """Removes old offsets of the groups of `image`, which is empty or about to be loaded. `is_writing` tells whether a
    group has an appended record that is not committed yet.
    """

    def __init__(
        self,
        image: GroupImage,
        removals: DeletedTopics,
        settings: GroupSettings,
        append: Append,
        *,
        is_writing: Callable[[str], bool],
        bury: Callable[[CommittingGroup], None],
        now_ms: Callable[[], int],
        batch_bytes_max: Callable[[], int],
    ) -> None:
        self._image = image
        self._removals = removals
        self._forgotten_to = removals.number  # deletions up to this number are forgotten in all groups
        self._forgotten_by = dict[str, int]()  # the same for groups that are further
        self._settings = settings
        self._append = append
        self._is_writing = is_writing
        self._bury = bury
        self._now_ms = now_ms
        self._log_batch_bytes_max = batch_bytes_max
        self._owed: deque[Gone] = deque()  # tombstones to be written, no more than there were offsets

    @property
    def _batch_bytes_max(self) -> int:
        return min(BATCH_BYTES_MAX, self._log_batch_bytes_max())

    # --- topics that are deleted --------------------------------------------------------------------------------

    @property
    def is_behind(self) -> bool:
        """Whether topics were deleted after the last ones that all groups have forgotten."""
        return self._forgotten_to < self._removals.number

    def forget(self, group_id: str) -> None:
        """Remove a group's offsets of deleted topics from memory; `tombstones` removes them from the log."""
        number = self._removals.number
        since = self._forgotten_by.get(group_id, self._forgotten_to)
        if since < number:
            self._forgotten_by[group_id] = number
            gone = [topic for topic in self._image.offsets(group_id) if self._removals.is_gone(topic, since)]
            self._owed.extend(self._image.take(group_id, gone))

    def forget_all(self) -> Iterator[int]:
        """As `forget`, for all groups, one group a step; yields how many offsets it has looked at."""
        number = self._removals.number
        for group_id in self._image.groups_with_offsets():
            topics = len(self._image.offsets(group_id))
            self.forget(group_id)
            yield 1 + topics
        self._forgotten_to = number
        if number == self._removals.number:
            self._forgotten_by.clear()

    def forget_former(self) -> Iterator[int]:
        """Forget what the log still has of topics that were deleted before it was read: a coordinator may die between a
        deletion and its tombstones. A group a step; yields how many offsets it has looked at.
        """
        for group_id in self._image.groups_with_offsets():
            looked_at = 0
            for topic, partitions in list(self._image.offsets(group_id).items()):
                looked_at += len(partitions)
                former = [
                    index for index, value in partitions.items() if self._removals.is_former(topic, value.topic_id)
                ]
                for index in former:
                    self._image.replay_offset(OffsetCommitKey(group_id, topic, index), None)
                if former:
                    self._owed.append((group_id, topic, former))
            yield 1 + looked_at

    def replay_offset(self, record: KeyedRecord, since: int, log_offset: int) -> None:
        """Replay a committed record that was appended at deletion number `since`. An offset of a topic that was deleted
        meanwhile is dropped.
        """
        key, value, _ = record
        if isinstance(key, OffsetCommitKey):
            self.forget(key.group)
            if value is not None and since < self._removals.number and self._removals.is_gone(key.topic, since):
                self._owed.append((key.group, key.topic, [key.partition]))
                return
        self._image.replay_offset(key, value, log_offset)

    def settle(self, staged: StagedOffset) -> None:
        """Take over an offset whose transaction is committed; one of a topic that is deleted is dropped."""
        key, value = staged.key, staged.value
        if self._removals.is_former(key.topic, value.topic_id):
            self._owed.append((key.group, key.topic, [key.partition]))
        else:
            self.replay_offset(KeyedRecord(key, value), staged.since, staged.log_offset)

    def tombstones(self) -> Iterator[None]:
        """Append the pending tombstones, a batch a step. Those that the log refuses stay pending."""
        while self._owed:
            taken = self._take_owed()
            if taken and not self._append([offset_tombstone(*place) for place in taken]):
                self._owed.extend((group_id, topic, [index]) for group_id, topic, index in taken)
                return
            yield

    def _take_owed(self) -> list[tuple[str, str, int]]:
        """Group, topic and partition of the tombstones of the next batch."""
        taken, size_bytes = list[tuple[str, str, int]](), BATCH_OVERHEAD_BYTES
        bytes_max = self._batch_bytes_max
        for _ in range(RECORDS_PER_SLICE_MAX):
            if not self._owed:
                break
            group_id, topic, partitions = self._owed[0]
            if self._is_writing(group_id):
                self._owed.rotate(-1)  # an offset that is being committed may be of a new topic of that name
                break
            size_bytes += record_bytes_max(offset_tombstone(group_id, topic, partitions[-1]))
            if taken and size_bytes > bytes_max:
                break
            index = partitions.pop()
            if index not in self._image.offsets(group_id).get(topic, ()):
                taken.append((group_id, topic, index))
            if not partitions:
                self._owed.popleft()
        return taken

    # --- offsets past their retention time ----------------------------------------------------------------------

    def expire(self) -> Generator[None, None, int]:
        """Delete expired offsets, a slice a step. Returns the number of tombstones."""
        count = looked_at = 0
        image = self._image
        groups: list[CommittingGroup] = [
            *image.groups.values(),
            *image.consumer_groups.values(),
            *image.streams_groups.values(),
        ]
        for group in groups:
            group_id = group.group_id
            if self._image.find(group_id) is not group or self._is_writing(group_id):
                continue
            self.forget(group_id)
            count += yield from self._expire_group(group)
            looked_at += GROUP_IN_OFFSETS + sum(map(len, self._image.offsets(group_id).values()))
            if looked_at >= OFFSETS_PER_SLICE_MAX:
                looked_at = 0
                yield
        return count

    def _expire_group(self, group: CommittingGroup) -> Generator[None, None, int]:
        group_id, gone, written = group.group_id, set[tuple[str, int]](), 0
        parts = parts_of(self._image.offsets(group_id), RECORDS_PER_SLICE_MAX)
        for number, part in enumerate(parts, 1):
            now_ms = self._now_ms()
            expired = [
                place
                for place in expired_offsets(group, self._unchanged(group, part), self._settings, now_ms)
                if not self._image.staged.is_unstable(group_id, *place)
            ]
            gone.update(expired)
            records = [offset_tombstone(group_id, *place) for place in expired]
            is_last = number == len(parts) and not self._image.staged.has_group(group_id)
            ends = is_last and is_over(group) and self._has_only(group_id, gone)
            if ends:
                records += ends_of(group)
            for batch in batches_of(records, self._batch_bytes_max):
                if not self._append(batch):
                    return written
                written += len(batch)
            if ends:
                self._bury(group)
            elif number < len(parts):
                yield
                if self._image.find(group_id) is not group or self._is_writing(group_id):
                    break
        return written

    def _unchanged(self, group: CommittingGroup, part: Offsets) -> Offsets:
        """The offsets of `part` that have not changed since the work began."""
        now = self._image.offsets(group.group_id)
        return {
            topic: {index: value for index, value in partitions.items() if now.get(topic, {}).get(index) is value}
            for topic, partitions in part.items()
        }

    def _has_only(self, group_id: str, gone: set[tuple[str, int]]) -> bool:
        left = self._image.offsets(group_id).items()
        return all((topic, index) in gone for topic, partitions in left for index in partitions)


def parts_of(offsets: Offsets, count_max: int) -> list[Offsets]:
    """The offsets in parts of at most `count_max`; an empty part if there are none."""
    flat = [(topic, index, value) for topic, partitions in offsets.items() for index, value in partitions.items()]
    parts = list[Offsets]()
    for start in range(0, max(len(flat), 1), count_max):
        part: Offsets = {}
        for topic, index, value in flat[start : start + count_max]:
            part.setdefault(topic, {})[index] = value
        parts.append(part)
    return parts


def batches_of(records: Sequence[KeyedRecord], bytes_max: int) -> Iterator[list[KeyedRecord]]:
    """Tombstones in batches of at most `bytes_max`; a single larger tombstone is a batch of its own."""
    batch, size_bytes = list[KeyedRecord](), BATCH_OVERHEAD_BYTES
    for record in records:
        record_bytes = record_bytes_max(record)
        if batch and size_bytes + record_bytes > bytes_max:
            yield batch
            batch, size_bytes = [], BATCH_OVERHEAD_BYTES
        batch.append(record)
        size_bytes += record_bytes
    if batch:
        yield batch


def record_bytes_max(tombstone: KeyedRecord) -> int:
    return len(frame_key(tombstone.key)) + RECORD_OVERHEAD_BYTES_MAX

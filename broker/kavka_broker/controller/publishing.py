"""What is committed becomes what everybody here knows: replayed into the image, then told to the subscribers.

Batch by batch, each all or none. A long row of batches is told in slices, so that the loop gets its turns: a node that
catches up still votes, and still answers its clients. The quorum does not wait either: its followers learn of a commit
while their leader is still telling it to its own parts.

A leader has its batches as messages still; they are not read again. Whatever else there is comes from the log.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kavka_broker.controller.batches import read_batch
from kavka_broker.controller.images import become
from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.recovery import check_features, readable
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.seams import Clock

Subscriber = Callable[[Sequence[Message]], None]

#: How long a slice may take before the loop gets its turn.
SLICE_MS: Final = 5
#: Turns of the loop before a slice: answers that tell followers of the commit leave first. They have work of their own
#: with it, and whoever waits for somebody that works for seconds takes him for lost.
TURNS: Final = 3


class Written(NamedTuple):
    """A batch that this node has appended as the leader: it need not be read again."""

    offset: int
    records: Sequence[Message]
    size_bytes: int


class Publisher:
    """Moves one image forward. `published` is called after each slice, `failed` with what must stop the process."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata_log: MetadataLog,
        metadata: Metadata,
        clock: Clock,
        *,
        published: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self.subscribers: list[Subscriber] = []
        self.bytes_since_snapshot = 0
        self._config = config
        self._log = metadata_log
        self._metadata = metadata
        self._clock = clock
        self._published = published
        self._failed = failed
        self._target = metadata.next_offset
        self._is_scheduled = False
        self._is_stopped = False
        self._written: deque[Written] = deque()
        self._held_back: list[Message] = []  # of a metadata transaction that has not ended

    def wrote(self, offset: int, records: Sequence[Message], size_bytes: int) -> None:
        """The leader has appended a batch."""
        self._written.append(Written(offset, records, size_bytes))

    def forget_written(self) -> None:
        """Another leads, or this node anew: what it appended may be cut off again."""
        self._written.clear()

    def advance(self, high_watermark: int) -> None:
        """Everything below is committed. It is published soon."""
        self._target = max(self._target, high_watermark)
        self._schedule()

    def finish(self) -> None:
        """Publish now all that is committed."""
        while self._metadata.next_offset < self._target:
            self._publish_next()
        self._published()

    def replace(self, image: Metadata) -> None:
        """A snapshot takes the place of everything so far."""
        self._held_back = []
        records = become(self._metadata, image)
        check_features(self._config, self._metadata)
        self._tell(records)

    def stop(self) -> None:
        self._is_stopped = True

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._publish_after(TURNS)

    def _publish_after(self, turns: int) -> None:
        loop = asyncio.get_running_loop()
        if turns:
            loop.call_soon(self._publish_after, turns - 1)
        else:
            loop.call_soon(self._publish_slice)

    def _publish_slice(self) -> None:
        self._is_scheduled = False
        if self._is_stopped:
            return
        ends_ms = self._clock.monotonic_ms() + SLICE_MS
        try:
            while self._metadata.next_offset < self._target:
                self._publish_next()
                if self._clock.monotonic_ms() >= ends_ms:
                    self._schedule()
                    break
            self._published()
        except Exception as error:  # noqa: BLE001 - an image or a subscriber is wrong: the process must stop
            self._is_stopped = True
            self._failed(error)

    def _publish_next(self) -> None:
        """Replay one batch, and tell it."""
        offset = self._metadata.next_offset
        if self._written and self._written[0].offset == offset:
            _, records, size_bytes = self._written.popleft()
            self._publish(records, size_bytes)
            return
        with readable(self._config):
            header, batch = next(self._log.batches(offset))
            records = [message for at, message in read_batch(batch) if at >= offset]
        self._publish(records, len(batch))
        # A control record of a kind that is not known here leaves nothing but its offset.
        self._metadata.move_to(header.next_offset - 1)

    def _publish(self, records: Sequence[Message], size_bytes: int) -> None:
        for record in records:
            self._metadata.replay(record)
        self.bytes_since_snapshot += size_bytes
        if self._metadata.transaction is not None:
            self._held_back += records
            return
        if self._held_back:
            records, self._held_back = [*self._held_back, *records], []
        if any(isinstance(record, FeatureLevelRecord) for record in records):
            check_features(self._config, self._metadata)
        self._tell(records)

    def _tell(self, records: Sequence[Message]) -> None:
        for subscriber in self.subscribers:
            subscriber(records)

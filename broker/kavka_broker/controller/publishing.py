"""What is committed becomes what everybody here knows: replayed into the image, then told to the subscribers.

Batch by batch, each all or none. A long row of batches is told in slices, so that the loop gets its turns: a node that
catches up still votes, and still answers its clients. The quorum does not wait either: its followers learn of a commit
while their leader is still telling it to its own parts.

A leader has its batches as messages still; they are not read again. Whatever else there is comes from the log, and what
is long is read by a thread: what is left to the loop of a batch is to replay its steps, and to tell them.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kavka_broker.controller.decided_batches import DecidedBatch
from kavka_broker.controller.image_replacement import become
from kavka_broker.controller.metadata_batches import read_batch
from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.metadata_recovery import check_features, readable
from kavka_broker.controller.ports import Ports
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.replay_steps import Step, steps_of
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.records.batch import read_header

Subscriber = Callable[[Sequence[Message]], None]

#: How long a slice of publishing may hold the loop.
SLICE_MS: Final = 5
#: Turns of the loop before a slice: answers that tell followers of the commit leave first. Followers replay it as well,
#: and take a leader for lost that they have not heard of for seconds.
TURNS: Final = 3


#: A larger batch is read in a thread: on the loop it would take some milliseconds.
AT_ONCE_BYTES_MAX: Final = 32 * 1024


class Batch(NamedTuple):
    """A batch to be published, and the offset of the next batch."""

    offset: int
    next_offset: int
    size_bytes: int
    records: Sequence[Message]
    steps: Sequence[Step]


def read(data: memoryview, offset: int) -> Batch:
    """A batch without its records below `offset`. Raises ProtocolViolation."""
    records = [message for at, message in read_batch(data) if at >= offset]
    return Batch(offset, read_header(data).next_offset, len(data), records, steps_of(records))


class Publisher:
    """Moves one image forward. `published` is called after each slice, `failed` with an error that must stop the
    process. The image has already replayed `replayed_bytes` of the log since the newest snapshot.
    """

    def __init__(
        self,
        config: BrokerConfig,
        metadata_log: MetadataLog,
        metadata: Metadata,
        ports: Ports,
        *,
        published: Callable[[], None],
        failed: Callable[[Exception], None],
        replayed_bytes: int = 0,
    ) -> None:
        self.subscribers: list[Subscriber] = []
        self.bytes_since_snapshot = replayed_bytes
        self._config = config
        self._log = metadata_log
        self._metadata = metadata
        self._clock = ports.clock
        self._run_blocking = ports.run_blocking
        self._published = published
        self._failed = failed
        self._target = metadata.next_offset
        self._is_scheduled = False
        self._is_stopped = False
        self._written: deque[Batch] = deque()  # batches of this leader, not read from the log again
        self._reading: asyncio.Task[None] | None = None
        self._read: Batch | None = None
        self._unreadable_at = -1
        self._held_back: list[Message] = []  # records of a metadata transaction that has not ended

    def wrote(self, offset: int, decided: DecidedBatch) -> None:
        """Keep a batch that this leader has appended until it is published."""
        batch, records, steps = decided
        self._written.append(Batch(offset, offset + len(records), len(batch), records, steps))

    def forget_written(self) -> None:
        """Drop the appended batches: a new epoch has begun, and its leader may cut them off."""
        self._written.clear()

    def advance(self, high_watermark: int) -> None:
        """Publish records below the high watermark, in later turns of the loop."""
        self._target = max(self._target, high_watermark)
        self._schedule()

    def finish(self) -> None:
        """Publish all committed records now."""
        while self._metadata.next_offset < self._target:
            self._publish(self._next_batch())
        self._published()

    def replace(self, image: Metadata) -> None:
        """Replace the image by that of a snapshot. Raises CannotStart for features that this version does not know."""
        self._held_back = []
        records = become(self._metadata, image)
        check_features(self._config, self._metadata)
        self._tell(records)

    def stop(self) -> None:
        self._is_stopped = True
        if self._reading is not None:
            self._reading.cancel()

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
            while self._metadata.next_offset < self._target and not self._waits_for_thread():
                self._publish(self._next_batch())
                if self._clock.monotonic_ms() >= ends_ms:
                    self._schedule()
                    break
            self._published()
        except Exception as error:  # noqa: BLE001 - image or subscriber is wrong: the process must stop
            self._is_stopped = True
            self._failed(error)

    def _waits_for_thread(self) -> bool:
        """Whether a thread has to read the next batch before it is published; a short batch is read at once."""
        offset = self._metadata.next_offset
        if self._is_at_hand(offset):
            return False
        if self._reading is None:
            with readable(self._config):
                _, data = next(self._log.batches(offset))
                if len(data) <= AT_ONCE_BYTES_MAX or offset == self._unreadable_at:
                    self._read = read(data, offset)
                    return False
            self._reading = asyncio.get_running_loop().create_task(self._read_in_thread(bytes(data), offset))
        return True

    def _is_at_hand(self, offset: int) -> bool:
        is_written = bool(self._written) and self._written[0].offset == offset
        return is_written or (self._read is not None and self._read.offset == offset)

    async def _read_in_thread(self, data: bytes, offset: int) -> None:
        """Read a batch, and go on. After a ProtocolViolation the loop reads the batch again, and raises it."""

        def work() -> None:
            self._read = read(memoryview(data), offset)

        try:
            await self._run_blocking(work)
        except ProtocolViolation:
            self._unreadable_at = offset
        except Exception as error:  # noqa: BLE001 - any error must stop the process
            self._is_stopped = True
            self._failed(error)
        finally:
            self._reading = None
        self._schedule()

    def _next_batch(self) -> Batch:
        offset = self._metadata.next_offset
        if self._written and self._written[0].offset == offset:
            return self._written.popleft()
        found, self._read = self._read, None
        if found is not None and found.offset == offset:
            return found
        with readable(self._config):
            _, data = next(self._log.batches(offset))
            return read(data, offset)

    def _publish(self, batch: Batch) -> None:
        """Replay a batch, and tell the subscribers of its records."""
        self._metadata.replay_steps(batch.steps)
        # Control records of unknown kinds are not replayed; the image still moves past their offsets.
        self._metadata.move_to(batch.next_offset - 1)
        records = batch.records
        self.bytes_since_snapshot += batch.size_bytes
        if self._metadata.transaction is not None:
            self._held_back += records
            return
        if self._held_back:
            records, self._held_back = [*self._held_back, *records], []
        if FeatureLevelRecord in {type(record) for record in records}:
            check_features(self._config, self._metadata)
        self._tell(records)

    def _tell(self, records: Sequence[Message]) -> None:
        for subscriber in self.subscribers:
            subscriber(records)

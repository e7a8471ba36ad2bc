"""The active controller: decides, writes, and answers once what was decided is committed.

    submit(decide)   decide on the image that holds everything written so far
                     append the records as one batch, replay them into that image
                     wait until the quorum has committed it, and everybody here has heard of it
                     answer

There are two images. `metadata` is what is committed, and what everybody else reads; the other runs ahead of it by
what is on its way, so that a decision never contradicts one that is about to be true. A decision that writes nothing
still waits for what it was based on.

A controller that comes to lead builds the image ahead from what is committed and what is in its log behind that, and
writes what a new leader has to say. It is active once that is committed. Where much of its log is not in its image yet,
as after a start, it first waits until that is: to replay it once more would hold the loop for so long that the others
take it for dead. One that leads no more throws its image away; whoever waits hears NOT_CONTROLLER, since nobody knows
whether the decision will be found in the next leader's log.

NoOpRecords, with which Apache Kafka marks time in its log twice a second, are not written: an idle Kavka is idle.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from kavka_broker.controller.decided_batches import DecidedBatch, decided_batch
from kavka_broker.controller.format import random_uuid
from kavka_broker.controller.metadata_recovery import bootstrap_records, is_new, opening_records
from kavka_broker.controller.publishing import Subscriber
from kavka_broker.controller.quorum import Quorum
from kavka_broker.controller.snapshot_files import SnapshotId
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.raft.voters import Voter
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message

log = get("controller")

R = TypeVar("R")
Decide = Callable[[Metadata, int], Decision[R]]

#: Decisions that may wait to be committed. Further requests are refused, and their clients retry.
PENDING_MAX: Final = 10_000
#: Records that are replayed into the image ahead in one turn of the loop: some milliseconds of work.
REPLAYED_MAX: Final = 1_000
#: How long a stopping controller waits for a majority to commit its last decisions.
FINISH_MS_MAX: Final = 5_000


class Controller:
    """The controller of one node; active while this node leads the quorum."""

    def __init__(self, quorum: Quorum, replayed_max: int = REPLAYED_MAX) -> None:
        self.quorum = quorum
        self._replayed_max = replayed_max
        self.node_id = quorum.node_id
        self.is_active = False
        self.incarnation_id = self.new_uuid()
        self.activated: list[Callable[[], None]] = []
        self.deactivated: list[Callable[[], None]] = []
        self._ahead: Metadata | None = None
        self._ahead_at_start = quorum.ahead_at_start
        self._opens_at: int | None = None
        self._active_at: int | None = None
        self._epoch = -1
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._is_stopping = False
        self._long_line = asyncio.Lock()
        self._long = asyncio.Lock()  # held while a thread makes a decision from the image ahead
        loader = quorum.loader
        loader.on_led, loader.on_lost = self._led, self.lose_lead
        loader.on_published, loader.on_failed = self._published, self._failed

    @property
    def metadata(self) -> Metadata:
        return self.quorum.metadata

    @property
    def subscribers(self) -> list[Subscriber]:
        return self.quorum.subscribers

    @property
    def voters(self) -> tuple[Voter, ...]:
        return self.quorum.voters

    @property
    def epoch(self) -> int:
        return self.quorum.epoch

    @property
    def high_watermark(self) -> int:
        return self.quorum.high_watermark

    async def finish(self) -> None:
        """Refuse new decisions, and wait for those that are not committed yet."""
        self._is_stopping = True
        if self.waiting and self.quorum.is_leader:
            # This waiter is our own, since the client that asked for the decision may have disconnected.
            with suppress(TimeoutError, BrokerError):
                async with asyncio.timeout(FINISH_MS_MAX / 1000):
                    await self._committed(self.waiting[-1][0])

    def new_uuid(self) -> bytes:
        """A random id for a topic, a directory or an incarnation."""
        return random_uuid(self.quorum.ports.random_bytes)

    async def submit(self, decide: Decide[R]) -> R:
        """Decide; answer once the records are committed. Raises BrokerError; an error of `decide` appends nothing."""
        while self.is_active and (self._long.locked() or self.quorum.is_busy):
            if self._long.locked():
                async with self._long:
                    pass
            else:
                await self.quorum.until_idle()
        ahead = self._to_decide_on()
        decision = decide(ahead, self.quorum.ports.clock.now_ms())
        if decision.records:
            self._append(ahead, decision.records)
        await self._committed(ahead.offset)
        return decision.response

    async def submit_long(self, decide: Decide[R]) -> R:
        """As `submit`, for a long decision: a thread makes it, and nothing else is decided meanwhile. Long decisions
        have a queue of their own, so that the others have their turn between two of them. Raises BrokerError.
        """
        async with self._long_line, self._long:
            await self._until_idle()
            ahead = self._to_decide_on()
            deciding = asyncio.ensure_future(self._decided_elsewhere(decide, ahead))
            try:
                decision, batch = await asyncio.shield(deciding)
            finally:
                if not deciding.done():  # the request was cancelled, but the thread still reads the image
                    await asyncio.gather(deciding, return_exceptions=True)
            await self._until_idle()
            if self._to_decide_on() is not ahead:
                raise BrokerError(ErrorCode.NOT_CONTROLLER, f"node {self.node_id} has lost the lead and won it again")
            if batch is not None:
                self._append_batch(ahead, batch)
            offset = ahead.offset
        await self._committed(offset)
        return decision.response

    async def _decided_elsewhere(self, decide: Decide[R], ahead: Metadata) -> tuple[Decision[R], DecidedBatch | None]:
        """A decision and its batch, made in a thread that may read the image, which does not change meanwhile."""
        now_ms, epoch = self.quorum.ports.clock.now_ms(), self._epoch
        made: list[tuple[Decision[R], DecidedBatch | None]] = []

        def make() -> None:
            decision, batch = decide(ahead, now_ms), None
            if decision.records:
                batch = decided_batch(decision.records, epoch, ahead.features.metadata_version, now_ms)
            made.append((decision, batch))

        await self.quorum.ports.run_blocking(make)
        return made[0]

    async def _until_idle(self) -> None:
        while self.quorum.is_busy and self.is_active:
            await self.quorum.until_idle()

    def _to_decide_on(self) -> Metadata:
        """The image of the whole log. Raises BrokerError where this controller may not decide."""
        if self._is_stopping:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "the controller is shutting down")
        if self._ahead is None or not self.is_active or not self.quorum.is_leader:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, f"node {self.node_id} is not the active controller")
        if len(self.waiting) >= PENDING_MAX:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, f"{PENDING_MAX} decisions wait for the disk; try again")
        self._keep_up(self._ahead)
        return self._ahead

    async def snapshot(self) -> SnapshotId | None:
        """Write a snapshot of the committed image now. Raises OSError and BrokerError."""
        return await self.quorum.snapshot()

    # --- leading ------------------------------------------------------------------------------------------------

    def _led(self, epoch: int, start_offset: int) -> None:
        ahead, self._ahead_at_start = self._ahead_at_start or self.metadata, None
        self._epoch = epoch
        self._opens_at = None
        if self.quorum.log_end_offset - ahead.next_offset <= self._replayed_max:
            self._open(self.metadata.copy() if ahead is self.metadata else ahead)
        else:
            self._opens_at = start_offset + 1

    def _open(self, ahead: Metadata) -> None:
        """Append the opening records of a new leader, decided on an image of the whole log."""
        self._keep_up(ahead)
        self._ahead = ahead
        bootstrap = bootstrap_records(self.quorum.config, self.quorum.log.disk) if is_new(ahead) else []
        records = opening_records(ahead, self.quorum.config, bootstrap, self.incarnation_id)
        try:
            self._append(ahead, records)
        except BrokerError as error:
            if error.code != ErrorCode.NOT_CONTROLLER:
                raise
            return  # this node has lost the lead already
        self._active_at = ahead.next_offset
        self.quorum.loader.barrier.aim(ahead.next_offset)

    def lose_lead(self) -> None:
        self._ahead = None
        self._opens_at = self._active_at = None
        self._fail_waiting(ErrorCode.NOT_CONTROLLER, "the controller has lost its leadership")
        if self.is_active:
            self.is_active = False
            log.info("controller.deactivated", node=self.node_id, epoch=self.epoch)
            for listener in self.deactivated:
                listener()

    def _published(self) -> None:
        """Answer requests whose records are committed now; become active once all opening records are."""
        while self.waiting and self.waiting[0][0] <= self.metadata.offset:
            _, waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
        if self._opens_at is not None and self.metadata.next_offset >= self._opens_at:
            self._opens_at = None
            self._open(self.metadata.copy())
        if self._active_at is not None and self.metadata.next_offset >= self._active_at:
            self._active_at = None
            self.is_active = True
            log.info("controller.activated", node=self.node_id, epoch=self.epoch, offset=self.metadata.offset)
            for listener in self.activated:
                listener()

    # --- append and commit --------------------------------------------------------------------------------------

    def _keep_up(self, ahead: Metadata) -> None:
        """Replay the log's records that were not decided here: an earlier leader's, or records about the quorum itself.

        Called before each decision, which may use the next offset as an epoch.
        """
        if ahead.next_offset == self.quorum.log_end_offset:
            return
        for offset, message in self.quorum.log.messages(ahead.next_offset):
            ahead.move_to(offset - 1)
            ahead.replay(message)
        ahead.move_to(self.quorum.log_end_offset - 1)

    def _append(self, ahead: Metadata, records: Sequence[Message]) -> None:
        level = ahead.features.metadata_version
        self._append_batch(ahead, decided_batch(records, self._epoch, level, self.quorum.ports.clock.now_ms()))

    def _append_batch(self, ahead: Metadata, batch: DecidedBatch) -> None:
        try:
            offset = self.quorum.append_batch(batch, self._epoch)
        except BrokerError as error:
            if error.code != ErrorCode.KAFKA_STORAGE_ERROR or len(self.quorum.voters) == 1:
                raise
            # A leader with a full disk decides nothing; another controller may have room.
            log.warning("controller.resigned", node=self.node_id, epoch=self._epoch, reason=error.message)
            self.quorum.step_down()
            raise BrokerError(
                ErrorCode.NOT_CONTROLLER, f"node {self.node_id} has no room to decide anything"
            ) from error
        assert offset == ahead.next_offset, f"the log is at {offset}, the image at {ahead.next_offset}"
        ahead.replay_steps(batch.steps)

    async def _committed(self, offset: int) -> None:
        """Wait until everything up to `offset` is committed and published."""
        if self.metadata.offset >= offset:
            return
        waiter = asyncio.get_running_loop().create_future()
        self.waiting.append((offset, waiter))
        await waiter

    def _failed(self) -> None:
        self._is_stopping = True
        self._fail_waiting(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log has failed")

    def _fail_waiting(self, code: ErrorCode, reason: str) -> None:
        while self.waiting:
            _, waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_exception(BrokerError(code, reason))

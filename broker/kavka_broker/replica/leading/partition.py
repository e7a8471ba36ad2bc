"""One replica of one partition on this broker: its log, its role, and who waits on it.

The rules are in `core.partition`, the files in `storage`; this holds the two together. All of it runs on the loop, so
an append and the move of the high watermark are one step that nothing can come between.

As the leader it takes batches, learns from the followers' fetches how far they are, moves the high watermark and
proposes changes of the in-sync set. As a follower it takes what its fetcher brings
(`replica.following.fetched_batches`).
"""

import asyncio

from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.core.partition.isr_proposal import IsrAnswer, IsrChange
from kavka_broker.core.partition.leader import Follower, LeaderState, ProposalOutcome
from kavka_broker.core.partition.min_insync_replicas import effective_min_isr
from kavka_broker.core.partition.transactions import NO_OFFSET
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import HEADER_BYTES, read_header
from kavka_broker.replica.leading.partition_host import PartitionHost
from kavka_broker.replica.leading.partition_traffic import Traffic
from kavka_broker.replica.leading.partition_waiters import PartitionWaiters
from kavka_broker.replica.leading.purgatory import FetchWaiter
from kavka_broker.storage.batch_check import Prepared
from kavka_broker.storage.log import Appended, Chunk, Log, Origin

log = get("replica")

ACKS_ALL = -1
#: Errors upon which clients send the same batch again.
COME_AGAIN = frozenset({
    ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER,
})  # fmt: skip


class Partition:
    """A replica of `topic`-`index`. `log` is open as long as the partition is hosted here."""

    __slots__ = (
        "_clock",
        "_host",
        "_node_id",
        "_uncommitted_bytes",
        "high_watermark",
        "index",
        "is_damaged",
        "is_leader",
        "leadership",
        "log",
        "proof",
        "state",
        "topic",
        "topic_id",
        "traffic",
        "waiters",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        log: Log,
        state: PartitionState,
        node_id: int,
        clock: Clock,
        host: PartitionHost["Partition"],
        high_watermark: int | None = None,
    ) -> None:
        self.topic = topic
        self.topic_id = log.topic_id
        self.index = index
        self.log = log
        self.high_watermark = log.log_start_offset if high_watermark is None else high_watermark
        self.proof: asyncio.Task[None] | None = None  # proves that an index that was found is whole
        self.waiters = PartitionWaiters()
        self.traffic = Traffic()
        self._uncommitted_bytes = 0
        self._node_id = node_id
        self._clock = clock
        self._host = host
        self.is_leader = False
        self.is_damaged = bool(log.damage)
        self.leadership: LeaderState | None = None
        self.state = state
        log.producers.transactions.replicated(self.high_watermark)
        self._take_role()

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    # --- roles --------------------------------------------------------------------------------------------------

    def apply(self, state: PartitionState) -> None:
        """Take over the controller's decision: leader, epochs, replicas, ISR. Old decisions change nothing."""
        before = self.state
        if (state.leader_epoch, state.partition_epoch) < (before.leader_epoch, before.partition_epoch):
            return
        was_leader = self.is_leader
        self.state = state
        self._take_role()
        if was_leader and not self.is_leader:
            self.waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if was_leader != self.is_leader or before.leader_epoch != state.leader_epoch:
            self.waiters.interrupt()

    def _take_role(self) -> None:
        state, leadership = self.state, self.leadership
        self.is_leader = state.leader == self._node_id
        if not self.is_leader:
            self.leadership = None
            return
        self.give_up_cut()
        if leadership is None or leadership.leader_epoch != state.leader_epoch:
            start_offset = self.log.log_end_offset
            self.log.epochs.assign(state.leader_epoch, start_offset)
            leadership = LeaderState(self._node_id, state.leader_epoch, start_offset, self._host.lag_ms_max)
            self.leadership = leadership
            # Only the index knows the number of bytes; at least one a record, which is enough to wake readers.
            self._uncommitted_bytes = start_offset - self.high_watermark
        leadership.apply(state, self._host.contact, self._clock.monotonic_ms())
        self.followers_changed()

    @property
    def leader_epoch(self) -> int:
        return self.state.leader_epoch

    @property
    def last_stable_offset(self) -> int:
        """The offset where a read_committed consumer stops: the first record of an open transaction, or the
        high watermark.
        """
        unstable = self.log.producers.transactions.first_unstable_offset
        if unstable == NO_OFFSET or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log.log_start_offset)

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync set as far as it is known here: the leader learns it before the metadata comes."""
        return self.state.isr if self.leadership is None else self.leadership.isr

    def close(self, error: ErrorCode) -> None:
        """Close the partition, which leaves this broker: every waiting request learns why."""
        self.is_leader = False
        self.leadership = None
        self.waiters.fail(error)
        self.waiters.interrupt()

    def watched(self, *, stable_only: bool) -> list[FetchWaiter]:
        """Return the list of fetches that wait for the high watermark, or for the last stable offset."""
        waiters = self.waiters
        if not stable_only:
            return waiters.fetches
        waiters.note_stable(self.last_stable_offset, self.high_watermark)
        return waiters.stable_fetches

    def _progressed(self, size_bytes: int) -> None:
        """Wake readers: the high watermark has moved, by about that many bytes."""
        waiters, transactions = self.waiters, self.log.producers.transactions
        if transactions.ended:
            transactions.replicated(self.high_watermark)
        waiters.progressed(size_bytes)
        if waiters.stable_fetches:
            waiters.stable_progressed(size_bytes, self.last_stable_offset, self.high_watermark)

    # --- as the leader: records ---------------------------------------------------------------------------------

    def append(
        self,
        batches: memoryview,
        acks: int = ACKS_ALL,
        origin: Origin = Origin.CLIENT,
        prepared: Prepared | None = None,
    ) -> Appended:
        """Append record batches as the leader; their base offsets and epochs are written into `batches`. Batches that a
        thread has `prepared` are written instead.

        Raises BrokerError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, or what the log refuses; NotOnLoop.
        """
        leadership, traffic = self.leadership, self.traffic
        traffic.produces += 1
        if leadership is None:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        followers, end_offset = leadership.followers, self.log.state.end_offset
        if acks == ACKS_ALL and followers and len(leadership.isr) < self.min_isr:
            self.note_refused(batches, ErrorCode.NOT_ENOUGH_REPLICAS)
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS)
        try:
            epoch, now_ms = leadership.leader_epoch, self._clock.now_ms()
            if prepared is None:
                appended = self.log.append_as_leader(batches, epoch, now_ms, origin)
            else:
                appended = self.log.append_prepared(prepared, epoch, now_ms)
        except BrokerError as error:
            self.refused(error)
            self.note_refused(batches, error.code)
            raise
        if appended.duplicate:
            return appended
        size_bytes = len(batches)
        traffic.bytes_in += size_bytes
        traffic.messages_in += appended.last_offset - appended.base_offset + 1
        self._take_in(leadership, end_offset, appended.last_offset + 1, size_bytes)
        return appended

    def _take_in(self, leadership: LeaderState, before: int, end_offset: int, size_bytes: int) -> None:
        """Tell waiters that the log has grown: committed now, or when followers, or the disk, have the records too."""
        awaits_sync = self.log.durability.awaits_sync
        if leadership.followers:
            self._replicate(leadership, before, size_bytes)
        elif awaits_sync:
            self._uncommitted_bytes += size_bytes
        else:
            self.high_watermark = end_offset
            waiters = self.waiters
            if waiters.fetches or waiters.stable_fetches or self.log.producers.transactions.ended:
                self._progressed(size_bytes)
        if awaits_sync:
            self._host.sync(self)

    def note_refused(self, batches: memoryview, code: ErrorCode) -> None:
        """Note a client's batch that was refused, if it will come again: those in flight behind it get the same error.
        Here or while another broker leads: this one may lead before the next of them.
        """
        if code not in COME_AGAIN or len(batches) < HEADER_BYTES:
            return
        header = read_header(batches)
        if header.has_producer_id and not header.is_control and header.base_sequence >= 0:
            self.log.producers.refuse(header.producer_id, header.producer_epoch, header.base_sequence, code)

    def refused(self, error: BrokerError) -> None:
        """Report that the log has taken no records. A directory that failed as a whole reports that itself."""
        if error.code == ErrorCode.KAFKA_STORAGE_ERROR and not self.log.is_failed:
            self._host.refused(self)

    def _replicate(self, leadership: LeaderState, end_offset_before: int, size_bytes: int) -> None:
        """Tell the followers that there are new records."""
        leadership.appended(end_offset_before)
        self._uncommitted_bytes += size_bytes
        for feed, wanted in self.waiters.feeds.items():
            feed.grown(wanted, size_bytes)
        if len(leadership.maximal_isr) == 1:
            self._advance()

    @property
    def has_followers(self) -> bool:
        return self.leadership is not None and bool(self.leadership.followers)

    def when_committed(self, offset: int) -> asyncio.Future[None] | None:
        """Return None where `offset` is committed already, otherwise a future, which fails when leadership is lost."""
        if offset < self.high_watermark:
            return None
        return self.waiters.committed.add(offset + 1)

    def sync_soon(self) -> None:
        """Have a thread sync the appended records, if they must not be acknowledged before."""
        if self.log.durability.awaits_sync:
            self._host.sync(self)

    def give_up_cut(self) -> None:
        """Give up a planned cut: its records stay, and are synced again where that is wanted."""
        if self.log.durability.is_being_cut:
            self.log.durability.give_up_cut()
            self.sync_soon()

    def synced(self) -> None:
        """Note a sync of all records appended before it began, or a thread's step of a cut."""
        self.waiters.synced.reached(self.log.durability.answerable_end)
        self.log.producers.transactions.replicated(self.high_watermark)  # records in front of it are others after a cut
        self._advance()
        # An append that needed no sync may have moved the high watermark past these waiters' offsets.
        self.waiters.committed.reached(self.high_watermark)

    def when_synced(self, offset: int) -> asyncio.Future[None] | None:
        """Return None where the record at `offset` may be acknowledged, otherwise a future, which fails when
        leadership is lost. While the log is being cut the future ends with the next step that a thread has done.
        """
        if self.log.durability.is_being_cut:
            return self.waiters.synced.add(0)
        return None if offset < self.log.durability.answerable_end else self.waiters.synced.add(offset + 1)

    def read(
        self, offset: int, bytes_max: int, upper_offset: int, at_least_one: bool, *, is_doubted: bool = False
    ) -> Chunk:
        """Return whole batches from the batch that holds `offset`, below `upper_offset`. Raises OFFSET_OUT_OF_RANGE.

        A batch that the disk has changed, or does not give out, is KAFKA_STORAGE_ERROR, which sends the reader to
        another replica, or CORRUPT_MESSAGE where there is no other.
        """
        try:
            return self.log.read(
                offset, bytes_max, upper_offset=upper_offset, at_least_one=at_least_one, is_doubted=is_doubted
            )
        except BrokerError as error:
            if error.code != ErrorCode.CORRUPT_MESSAGE:
                raise
            self.found_damaged()
            if len(self.isr) < 2:
                raise
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, error.message) from error

    def found_damaged(self) -> None:
        """Report once that the log is damaged."""
        if not self.is_damaged:
            self.is_damaged = True
            self._host.damaged(self)

    def asks_again(self, broker_id: int, offset: int) -> bool:
        """Whether a follower asks for the same records again: perhaps it could not take them."""
        leadership = self.leadership
        follower = None if leadership is None else leadership.followers.get(broker_id)
        return follower is not None and follower.is_given_again(offset)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Check a client's leader epoch (KIP-320); -1 is not checked. Raises FENCED_ or UNKNOWN_LEADER_EPOCH."""
        if current_leader_epoch in (-1, self.state.leader_epoch):
            return
        if current_leader_epoch < self.state.leader_epoch:
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
        raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    @property
    def min_isr(self) -> int:
        return effective_min_isr(self.log.config.min_insync_replicas, len(self.state.replicas))

    # --- as the leader: followers -------------------------------------------------------------------------------

    def follower(self, broker_id: int) -> Follower:
        """Return the state of a follower. Raises UNKNOWN_LEADER_EPOCH for a broker that is no known replica."""
        leadership = self.leadership
        if leadership is None:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        follower = leadership.followers.get(broker_id)
        if follower is None:
            raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"broker {broker_id} is no replica of {self}")
        return follower

    def follower_fetched(self, broker_id: int, broker_epoch: int, offset: int, log_start_offset: int) -> None:
        """Note that a follower has everything below `offset`. Raises NOT_LEADER_OR_FOLLOWER for an earlier incarnation
        than is registered or has asked already, and as `follower`.
        """
        follower, leadership = self.follower(broker_id), self.leadership
        assert leadership is not None
        known_epoch = max(self._host.eligible(broker_id) or -1, follower.broker_epoch)
        if -1 < broker_epoch < known_epoch:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {broker_id} has restarted since")
        is_trimmed = log_start_offset > follower.log_start_offset
        leadership.fetched(
            follower,
            offset,
            log_start_offset=log_start_offset,
            broker_epoch=broker_epoch,
            end_offset=self.log.log_end_offset,
            now_ms=self._clock.monotonic_ms(),
        )
        self._advance()
        if broker_id not in leadership.isr:
            self._expand()
        if is_trimmed and len(self.waiters.trimmed):
            self.waiters.trimmed.reached(self.low_watermark)

    def check_in_sync(self) -> None:
        """Propose to remove followers that have been behind for too long; called now and then."""
        leadership = self.leadership
        if leadership is None or not leadership.followers:
            return
        lagging = leadership.lagging(self.log.log_end_offset, self._clock.monotonic_ms())
        if lagging:
            log.debug("isr.proposed", partition=str(self), removed=lagging, end_offset=self.log.log_end_offset)
            self._propose(leadership, (), lagging)
        self.followers_changed()

    def followers_changed(self) -> None:
        """Count the followers again: a broker came, went, was fenced or unfenced, or time has passed."""
        self._advance()
        self._expand()
        if len(self.waiters.trimmed):
            self.waiters.trimmed.reached(self.low_watermark)

    def isr_answered(self, change: IsrChange, answer: IsrAnswer) -> ProposalOutcome:
        """Take the controller's answer to a proposal."""
        leadership = self.leadership
        if leadership is None:
            return ProposalOutcome.DONE
        outcome = leadership.answered(change, answer)
        if outcome is ProposalOutcome.DONE:
            self.followers_changed()
        elif outcome is ProposalOutcome.REFUSED:
            # The proposal is not repeated now: the controller has newer metadata that is on its way here.
            self._advance()
        return outcome

    def _expand(self) -> None:
        leadership = self.leadership
        if leadership is None or leadership.pending is not None:
            return
        now_ms = self._clock.monotonic_ms()
        joining = leadership.joining(self.high_watermark, self.log.log_end_offset, self._host.eligible, now_ms)
        if joining:
            log.debug("isr.proposed", partition=str(self), added=joining, high_watermark=self.high_watermark)
            self._propose(leadership, joining, ())

    def _propose(self, leadership: LeaderState, add: tuple[int, ...], remove: tuple[int, ...]) -> None:
        change = leadership.propose(self.topic_id, self.index, add=add, remove=remove)
        self._host.propose(self, change)

    def _advance(self) -> None:
        leadership = self.leadership
        if leadership is None:
            return
        end_offset, before = self.log.log_end_offset, self.high_watermark
        if before >= end_offset:
            return
        now_ms = self._clock.monotonic_ms()
        committed = leadership.committed_end(end_offset, self.min_isr, self._host.eligible, now_ms)
        committed = min(committed, self.log.durability.answerable_end)
        if committed > before:
            self._commit(before, committed, end_offset)

    def _commit(self, before: int, high_watermark: int, end_offset: int) -> None:
        # The bytes between two offsets are known only to the index, and roughly; a share is enough to wake readers.
        size_bytes = self._uncommitted_bytes * (high_watermark - before) // (end_offset - before)
        self._uncommitted_bytes -= size_bytes
        self.high_watermark = high_watermark
        if len(self.waiters.committed):
            self.waiters.committed.reached(high_watermark)
        self._progressed(size_bytes)
        if self._host.hurries_high_watermark:
            self.waiters.tell_followers()
        else:
            for feed, wanted in self.waiters.feeds.items():
                feed.moved(wanted)

    # --- the start of the log -----------------------------------------------------------------------------------

    @property
    def low_watermark(self) -> int:
        """The least log start offset of all replicas that are alive; -1 until each has said its own."""
        leadership, start_offset = self.leadership, self.log.log_start_offset
        return start_offset if leadership is None else leadership.least_start(start_offset, self._host.eligible)

    def trim(self, offset: int) -> asyncio.Future[None] | None:
        """Move the start of the log forward; returns a future where followers have yet to do so."""
        self.log.advance_start(offset)
        if self.low_watermark >= offset:
            return None
        self.waiters.tell_followers()
        return self.waiters.trimmed.add(offset)

    # --- as a follower ------------------------------------------------------------------------------------------

    def follow_high_watermark(self, leader_high_watermark: int) -> None:
        """Take the leader's high watermark; records that are not here yet do not count."""
        high_watermark = min(leader_high_watermark, self.log.log_end_offset)
        if high_watermark <= self.high_watermark:
            return
        self.high_watermark = high_watermark
        self.log.producers.transactions.replicated(high_watermark)
        self.waiters.interrupt_fetches()  # of consumers that read from this follower (KIP-392)

"""Planted defects of the coordinator of transactions, and of those whom it asks: what others got wrong once."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kavka_broker.coordinator.groups import transactional_offsets
from kavka_broker.coordinator.groups.group_loading import Latest
from kavka_broker.coordinator.groups.transactional_offsets import Committed, Staging
from kavka_broker.coordinator.led_partition import LoadablePartition
from kavka_broker.coordinator.transactions import transaction_coordinator, transaction_loading, transaction_shard
from kavka_broker.coordinator.transactions.marker_sender import MarkerSender, Owed
from kavka_broker.coordinator.transactions.marker_writes import MarkerWrites, Waiting
from kavka_broker.coordinator.transactions.transaction_shard import TransactionShard
from kavka_broker.core.cleaning.transactions import CleanedTransactions
from kavka_broker.core.group.transactional_offsets import Staged, StagedOffset
from kavka_broker.core.partition.producer_state import Producer, ProducerStates
from kavka_broker.core.partition.transactions import NO_OFFSET, Ended, Transactions
from kavka_broker.core.transaction import ending, producers, records, state
from kavka_broker.core.transaction.ending import End, end
from kavka_broker.core.transaction.producers import Init, fence
from kavka_broker.core.transaction.state import EPOCH_MAX, NO_PRODUCER, Place, Standing, Transaction, TransactionState
from kavka_broker.loop.slices import Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.protocol.records.control import ControlType
from kavka_broker.protocol.records.record import Record
from kavka_broker.storage import producer_snapshot, segment
from kavka_broker.storage.cleaning import run
from kavka_broker.storage.cleaning.offset_map import OffsetMap
from kavka_broker.storage.log_reading import Reader
from kavka_broker.storage.producer_files import ProducerFiles
from kavka_broker.storage.producer_walk import ProducerWalk
from kavka_broker.storage.transaction_index import AbortedTransaction, TransactionIndex, Trust
from tests.sim import damage
from tests.sim.teething import Patch, tooth


@tooth("a transaction is complete before its markers are written", "kill isolate", 5, workloads="coordinated")
def markers_are_not_sent(patch: Patch) -> None:
    def route(self: MarkerSender, owed: Owed) -> None:
        owed.transaction.unmarked.clear()
        owed.shard.complete_if_marked(owed.transaction)

    patch.setattr(MarkerSender, "_route", route)


@tooth("offsets of an aborted transaction count", "kill isolate", 5, workloads="coordinated")
def aborted_offsets_count(patch: Patch) -> None:
    settling = Staging._settling

    def settle_all(self: Staging, ended: Iterator[StagedOffset], *, commits: bool) -> Work[None]:
        return settling(self, ended, commits=True)

    patch.setattr(Staging, "_settling", settle_all)


@tooth("offsets of a committed transaction are dropped", "kill isolate", seeds="11", workloads="coordinated")
def committed_offsets_are_dropped(patch: Patch) -> None:
    settling = Staging._settling

    def settle_none(self: Staging, ended: Iterator[StagedOffset], *, commits: bool) -> Work[None]:
        return settling(self, ended, commits=False)

    patch.setattr(Staging, "_settling", settle_none)


@tooth("offsets count from the moment on that they are sent", "kill isolate", seeds="3", workloads="coordinated")
def staged_offsets_count(patch: Patch) -> None:
    keep = Staging.keep

    def keep_and_settle(self: Staging, producer_id: int, *details: Any) -> None:
        keep(self, producer_id, *details)
        for staged in self._image.staged.end(producer_id):
            self._upkeep.settle(staged)

    patch.setattr(Staging, "keep", keep_and_settle)


@tooth("a record has the epoch before the one that it gives", "kill isolate", seeds="3", workloads="coordinated")
def epochs_are_not_written(patch: Patch) -> None:
    framed = records.framed

    def framed_before(transactional_id: str, standing: Standing, version: int) -> tuple[bytes, bytes]:
        epoch = max(0, standing.producer_epoch - 1)
        return framed(transactional_id, replace(standing, producer_epoch=epoch), version)

    patch.setattr(transaction_shard, "framed", framed_before)


@tooth("an open transaction is never aborted by its coordinator", "kill isolate", seeds="1", workloads="coordinated")
def open_transactions_stay(patch: Patch) -> None:
    patch.setattr(transaction_coordinator, "is_overdue", lambda transaction, now_ms: False)


@tooth("a record names one partition of a transaction", "kill isolate", seeds="4", workloads="coordinated")
def partitions_are_forgotten(patch: Patch) -> None:
    framed = records.framed

    def framed_short(transactional_id: str, standing: Standing, version: int) -> tuple[bytes, bytes]:
        short = frozenset(sorted(standing.partitions)[:1])
        return framed(transactional_id, replace(standing, partitions=short), version)

    patch.setattr(transaction_shard, "framed", framed_short)


@tooth("the stable offset passes transactions that are open", "kill isolate", seeds="3", workloads="coordinated")
def open_transactions_are_stable(patch: Patch) -> None:
    begin = Transactions.begin

    def begin_stable(self: Transactions, producer_id: int, first_offset: int) -> None:
        before = self.first_unstable_offset
        begin(self, producer_id, first_offset)
        self.first_unstable_offset = before

    patch.setattr(Transactions, "begin", begin_stable)


@tooth("a fence leaves the epoch as it is", "kill isolate", seeds="3", workloads="coordinated")
def fences_fence_nobody(patch: Patch) -> None:
    def fence_nobody(standing: Standing, fresh_id: int, version: int, now_ms: int) -> Standing:
        return replace(fence(standing, fresh_id, version, now_ms), producer_epoch=standing.producer_epoch)

    patch.setattr(transaction_coordinator, "fence", fence_nobody)


@tooth("the end of a transaction leaves the epoch as it is", "kill isolate", seeds="3", workloads="coordinated")
def ends_leave_the_epoch(patch: Patch) -> None:
    def end_without(transaction: Transaction | None, asked: End, fresh_id: int, now_ms: int) -> Standing | None:
        following = end(transaction, asked, fresh_id, now_ms)
        return following and replace(following, producer_epoch=asked.producer_epoch)

    patch.setattr(transaction_coordinator, "end", end_without)


@tooth("one marker is enough to complete a transaction", "orphaned_decision", seeds="2", workloads="coordinated")
def one_marker_is_enough(patch: Patch) -> None:
    complete_if_marked = TransactionShard.complete_if_marked

    def complete_if_any(self: TransactionShard, transaction: Transaction) -> None:
        if len(transaction.unmarked) < len(transaction.standing.partitions):
            transaction.unmarked.clear()
        complete_if_marked(self, transaction)

    patch.setattr(TransactionShard, "complete_if_marked", complete_if_any)


@tooth("the end of a transaction wakes no request", "isolate kill", 5, workloads="coordinated")
def completions_wake_nobody(patch: Patch) -> None:
    patch.setattr(TransactionShard, "_stop_waiting", lambda self, transactional_id: None)


@tooth("a new coordinator aborts what was decided to commit", "orphaned_decision", seeds="2", workloads="coordinated")
def decided_transactions_are_aborted(patch: Patch) -> None:
    load = transaction_loading.load

    async def load_aborting(partition: LoadablePartition) -> dict[str, Transaction]:
        loaded = await load(partition)
        for transaction in loaded.values():
            if transaction.standing.state is TransactionState.PREPARE_COMMIT:
                transaction.standing = replace(transaction.standing, state=TransactionState.PREPARE_ABORT)
        return loaded

    patch.setattr(transaction_coordinator, "load", load_aborting)


@tooth("a new coordinator leaves what was decided", "orphaned_decision", seeds="1", workloads="coordinated")
def decided_transactions_stay(patch: Patch) -> None:
    def open_only(self: TransactionShard) -> Iterator[None]:
        self.is_loading = False
        yield from ()

    patch.setattr(TransactionShard, "open", open_only)


@tooth("a new coordinator counts staged offsets by their markers, not by their places (KAFKA-19163)", "kill isolate", 5,
       workloads="contended")  # fmt: skip
def markers_give_the_place(patch: Patch) -> None:
    def keep(self: Latest, records: list[Record]) -> None:
        self.by_key |= {record.key or b"": record for record in records}

    patch.setattr(Latest, "_keep", keep)


@tooth("an offset that counts leaves those staged before it as they are", "kill isolate", 5, workloads="contended")
def staged_offsets_outlive(patch: Patch) -> None:
    patch.setattr(Staged, "supersede", lambda self, key, log_offset: None)


@tooth("a record lacks the producer id before", "kill isolate", 5, workloads="coordinated")
def former_ids_are_not_written(patch: Patch) -> None:
    framed = records.framed

    def framed_without(transactional_id: str, standing: Standing, version: int) -> tuple[bytes, bytes]:
        return framed(transactional_id, replace(standing, previous_producer_id=NO_PRODUCER), version)

    patch.setattr(transaction_shard, "framed", framed_without)


@tooth("a record of an aborted transaction replaces the one before it of its key", "kill isolate", 5,
       workloads="coordinated")  # fmt: skip
def aborted_records_replace(patch: Patch) -> None:
    note_newest = run._note_newest

    def note_all(
        newest: OffsetMap, header: BatchHeader, batch: memoryview, transactions: CleanedTransactions, first_dirty: int
    ) -> Generator[int, None, bool]:
        return note_newest(newest, header, batch, CleanedTransactions(()), first_dirty)

    patch.setattr(run, "_note_newest", note_all)


@tooth(
    "a cleaning takes markers whose records stay, in the log of a coordinator",
    "kill isolate",
    5,
    workloads="coordinated",
)
def markers_go(patch: Patch) -> None:
    marker_goes = CleanedTransactions.marker_goes

    def go(
        self: CleanedTransactions, producer_id: int, offset: int, kind: ControlType | None, *, is_empty: bool
    ) -> bool:
        marker_goes(self, producer_id, offset, kind, is_empty=is_empty)
        return True

    patch.setattr(CleanedTransactions, "marker_goes", go)


LATE = "kill isolate late_write late_verdict orphaned_decision"


@tooth("the epoch that fences is given to a client", LATE, 5, workloads="coordinated")
def the_last_epoch_is_given(patch: Patch) -> None:
    for module in (ending, producers, state):
        patch.setattr(module, "EPOCH_EXHAUSTED", EPOCH_MAX)


@tooth("a commit that comes again behind an abort is told that it has been done", LATE, 5, workloads="coordinated")
def any_end_has_been_done(patch: Patch) -> None:
    decides = ending._decides

    def decides_once(before: TransactionState, commits: bool, age: ending.Age) -> bool:
        if before in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT) and age is ending.Age.RETRY:
            return False
        return decides(before, commits, age)

    patch.setattr(ending, "_decides", decides_once)


@tooth("an epoch is raised whichever its producer has (KIP-360)", LATE, 5, workloads="coordinated")
def any_epoch_goes_on(patch: Patch) -> None:
    next_epoch = producers._next_epoch

    def next_of_any(before: Standing, init: Init, fresh_id: int) -> tuple[int, int, int]:
        return next_epoch(before, replace(init, expected=None), fresh_id)

    patch.setattr(producers, "_next_epoch", next_of_any)


@tooth("a batch that comes late begins a transaction (KAFKA-14402)", "late_write", 5, workloads="coordinated")
def late_batches_begin_transactions(patch: Patch) -> None:
    patch.setattr(
        transaction_coordinator, "verify_partitions", lambda transaction, producer, asked: dict.fromkeys(asked, 0)
    )


@tooth("a batch rides on the producer's open transaction of the epoch before (KAFKA-18575)", LATE, 5,
       workloads="coordinated")  # fmt: skip
def batches_ride_on_the_last(patch: Patch) -> None:
    def is_in_any(self: ProducerStates, producer_id: int, epoch: int) -> bool:
        return self.transactions.is_open(producer_id)

    patch.setattr(ProducerStates, "is_in_transaction", is_in_any)


@tooth("a marker of a coordinator that is not in charge any more is taken", LATE, 5, workloads="coordinated")
def markers_of_any_coordinator(patch: Patch) -> None:
    check_marker = ProducerStates.check_marker

    def check(self: ProducerStates, producer_id: int, epoch: int, coordinator_epoch: int, *, epochs_rise: bool) -> None:
        check_marker(self, producer_id, epoch, EPOCH_MAX, epochs_rise=epochs_rise)

    patch.setattr(ProducerStates, "check_marker", check)


@tooth("a snapshot of producers forgets which transactions are open", "kill isolate", 10, workloads="coordinated")
def snapshots_forget_open_transactions(patch: Patch) -> None:
    unpack = producer_snapshot._unpack

    def unpack_ended(entry: Any) -> tuple[int, Producer]:
        producer_id, producer = unpack(entry)
        producer.transaction_first_offset = NO_OFFSET
        return producer_id, producer

    patch.setattr(producer_snapshot, "_unpack", unpack_ended)


@tooth("where an id is moving to counts before it is committed", LATE, 5, workloads="coordinated")
def moves_are_taken_over_at_once(patch: Patch) -> None:
    def write(self: TransactionShard, transaction: Transaction, following: Standing) -> None:
        transaction.begin(following)
        self._append([framed(transaction.transactional_id, following, self._version())])
        self._finish(transaction)

    framed = records.framed
    patch.setattr(TransactionShard, "_write", write)


@tooth(
    "an id is forgotten before its tombstone is committed",
    LATE,
    5,
    workloads="coordinated",
    transactional_id_expiration_ms="3000",
    transaction_remove_expired_transaction_cleanup_interval_ms="300",
)
def ids_are_forgotten_at_once(patch: Patch) -> None:
    bury = TransactionShard._bury

    def bury_at_once(self: TransactionShard, dying: list[Transaction]) -> None:
        bury(self, dying)
        for transaction in dying:
            self.transactions.pop(transaction.transactional_id, None)

    patch.setattr(TransactionShard, "_bury", bury_at_once)


@tooth("a record lacks the producer id of the next transaction", LATE, 5, workloads="coordinated")
def next_ids_are_not_written(patch: Patch) -> None:
    framed = records.framed

    def framed_without(transactional_id: str, standing: Standing, version: int) -> tuple[bytes, bytes]:
        return framed(transactional_id, replace(standing, next_producer_id=NO_PRODUCER), version)

    patch.setattr(transaction_shard, "framed", framed_without)


@tooth("markers carry the first epoch of their coordinator's partition", LATE, 5, workloads="coordinated")
def markers_of_the_first_epoch(patch: Patch) -> None:
    patch.setattr(TransactionShard, "coordinator_epoch", property(lambda self: 0))


@tooth("a reader is told of aborted transactions in one segment alone", LATE, 5, workloads="coordinated")
def aborted_of_one_segment(patch: Patch) -> None:
    def aborted_in_first(self: Reader, offset: int, end_offset: int) -> list[AbortedTransaction]:
        found: list[AbortedTransaction] = []
        for first in self._segments.from_offset(offset)[:1]:
            first.aborted.collect(offset, end_offset, found)
        return found

    patch.setattr(Reader, "aborted_between", aborted_in_first)


@tooth("a marker that may still be lost settles a transaction (KAFKA-5121)", "kill isolate", 5, workloads="coordinated")
def markers_settle_at_once(patch: Patch) -> None:
    end_one = Transactions.end

    def end_settled(self: Transactions, producer_id: int, marker_offset: int, *, is_aborted: bool) -> Ended | None:
        ended = end_one(self, producer_id, marker_offset, is_aborted=is_aborted)
        self.replicated(marker_offset + 1)
        return ended

    patch.setattr(Transactions, "end", end_settled)


@tooth("a marker is answered before its replicas have it", "kill isolate", 5, workloads="coordinated")
def markers_are_answered_at_once(patch: Patch) -> None:
    async def until_appended(self: MarkerWrites, waiting: list[Waiting]) -> None:
        pass

    patch.setattr(MarkerWrites, "_until_committed", until_appended)


@tooth("a marker is answered before its group has taken the offsets over (KAFKA-17507)", "kill isolate", 5,
       workloads="coordinated")  # fmt: skip
def markers_do_not_wait_for_groups(patch: Patch) -> None:
    end_transaction = Staging.end_transaction

    def end_committed(self: Staging, producer_id: int, committed: Committed, *, commits: bool) -> Committed:
        end_transaction(self, producer_id, committed, commits=commits)
        return committed

    patch.setattr(Staging, "end_transaction", end_committed)
    patch.setattr(transactional_offsets, "SETTLED_AT_ONCE_MAX", 0)  # no transaction here has many offsets


@tooth(
    "a marker that has taken too long counts as written",
    "pause isolate cut_pair cut_one_way",
    10,
    workloads="coordinated",
    request_timeout_ms="300",
)
def late_markers_count(patch: Patch) -> None:
    answered = MarkerSender._answered

    def answered_somehow(self: MarkerSender, owed: Owed, codes: dict[Place, int]) -> None:
        late = {place: code for place, code in codes.items() if code == ErrorCode.REQUEST_TIMED_OUT}
        answered(self, owed, {**codes, **dict.fromkeys(late, 0)})

    patch.setattr(MarkerSender, "_answered", answered_somehow)


# --- the index of aborted transactions -------------------------------------------------------------------------------


@tooth("a cut leaves entries of transactions whose marker is gone", "isolate kill", seeds="9",
       workloads="transactions")  # fmt: skip
def cuts_leave_entries(patch: Patch) -> None:
    patch.setattr(TransactionIndex, "truncate", lambda self, offset: None)


@tooth("an index of aborted transactions that is found is believed", "damaged_files kill", 5,
       workloads="coordinated")  # fmt: skip
def found_indexes_are_believed(patch: Patch) -> None:
    patch.setattr(damage, "FILES", {"transaction index": damage.transaction_index})
    patch.setattr(segment, "TRANSACTIONAL_BIT", 0)


@tooth("an index that is made again begins with the newest snapshot of producers", "kill_all kill power_loss", 5,
       workloads="coordinated")  # fmt: skip
def indexes_begin_with_the_newest_snapshot(patch: Patch) -> None:
    begun = ProducerFiles._begun

    def begun_late(self: ProducerFiles, snapshot_offsets: Sequence[int] | None = None) -> ProducerWalk:
        for unindexed in self._segments:
            if unindexed.aborted.trust is Trust.INCOMPLETE:
                unindexed.aborted.trust = Trust.WHOLE
        return begun(self, snapshot_offsets)

    patch.setattr(ProducerFiles, "_begun", begun_late)

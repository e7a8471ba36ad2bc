"""The transactional ids of one partition of `__transaction_state` that this broker leads.

A command of the core (`core.transaction`) makes the next standing of an id; here it is written, and taken over once it
is committed by all in-sync replicas. Where that takes longer than a request may wait the client is told to ask again,
but the move stays pending: nothing else begins on the id before it is known what became of it.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from kavka_broker.coordinator.append_errors import answered
from kavka_broker.coordinator.led_partition import LedPartition
from kavka_broker.core.transaction.ending import complete
from kavka_broker.core.transaction.records import framed, tombstone
from kavka_broker.core.transaction.settings import (
    TRANSACTIONS_BYTES_MAX,
    TRANSACTIONS_PER_PARTITION_MAX,
    TransactionSettings,
)
from kavka_broker.core.transaction.state import PLACE_BYTES, Standing, Transaction
from kavka_broker.core.transaction.state_counts import Census
from kavka_broker.core.transaction.timeouts import is_expired, kill
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.leading.partition import ACKS_ALL
from kavka_broker.storage.log import Origin

log = get("coordinator")

COMPLETE_AGAIN_MS: Final = 100
"""Between two attempts to write that a transaction is complete."""
COMPLETION_WAIT_MS: Final = 20
"""That a request for the next transaction waits for the end of the one before: clients come again after as long."""
EXPIRED_PER_SLICE_MAX: Final = 250
LOOKED_AT_PER_SLICE_MAX: Final = 2_000
NO_ROOM: Final = f"The ids of this partition take the {TRANSACTIONS_BYTES_MAX} bytes that they may take."

Prepared = Callable[["TransactionShard", Transaction], None]


class TransactionShard:
    """The ids of one led partition. `is_loading` until its log is read; `is_unreadable` if it cannot be read.

    `prepared` is called with each transaction that is decided, and whose markers are to be written. `census` is as old
    as the last look at all ids.
    """

    def __init__(
        self,
        partition: LedPartition,
        settings: TransactionSettings,
        clock: Clock,
        timers: Timers,
        *,
        version: Callable[[], int],
        prepared: Prepared,
    ) -> None:
        self.partition = partition
        self.transactions: dict[str, Transaction] = {}
        self.is_loading = True
        self.is_unreadable = False
        self.is_closed = False
        self.census = Census()
        self.incomplete = 0  # transactions with all markers whose last record the log has refused, to be written again
        self._settings = settings
        self._clock = clock
        self._timers = timers
        self._version = version
        self._prepared = prepared
        self._size_bytes = 0  # of all ids, about
        self.completions: dict[str, asyncio.Future[None]] = {}
        """By transactional id: resolved when its decided transaction is complete, or has been waited for enough."""

    @property
    def room_bytes(self) -> int:
        """Bytes that ids and the partitions of their transactions may grow by."""
        return TRANSACTIONS_BYTES_MAX - self._size_bytes

    @property
    def coordinator_epoch(self) -> int:
        """The epoch that markers carry: that of the partition's leader."""
        return self.partition.leader_epoch

    def open(self) -> Iterator[None]:
        """Begin to serve the ids, and go on with transactions that are decided: one step each."""
        self.is_loading = False
        for number, transaction in enumerate(list(self.transactions.values()), 1):
            if self.transactions.get(transaction.transactional_id) is transaction:
                self._count(transaction)
            if number % LOOKED_AT_PER_SLICE_MAX == 0:
                yield
            if transaction.standing.state.is_prepared:
                self._prepared(self, transaction)
                self.complete_if_marked(transaction)
                yield

    def close(self) -> None:
        """Another broker takes over: nothing is appended any more, and no marker sent."""
        self.is_closed = True
        for transactional_id in list(self.completions):
            self._stop_waiting(transactional_id)

    def admit(self, transactional_id: str, standing: Standing) -> Transaction:
        """Take up a new id. Raises BrokerError where there are too many, or they take too much."""
        if len(self.transactions) >= TRANSACTIONS_PER_PARTITION_MAX:
            problem = f"{transactional_id} would be one more than {TRANSACTIONS_PER_PARTITION_MAX} of its partition"
            raise BrokerError(ErrorCode.POLICY_VIOLATION, problem)
        transaction = Transaction(transactional_id, standing)
        if transaction.size_bytes > self.room_bytes:
            raise BrokerError(ErrorCode.POLICY_VIOLATION, NO_ROOM)
        self.transactions[transactional_id] = transaction
        self._count(transaction)
        return transaction

    def _count(self, transaction: Transaction) -> None:
        """Count what an id takes now."""
        size_bytes = transaction.size_bytes
        self._size_bytes += size_bytes - transaction.counted_bytes
        transaction.counted_bytes = size_bytes

    def _drop(self, transaction: Transaction) -> None:
        if self.transactions.pop(transaction.transactional_id, None) is not None:
            self._size_bytes -= transaction.counted_bytes
            assert self._size_bytes >= 0, self._size_bytes

    def drop_unborn(self, transaction: Transaction) -> None:
        """Forget an id whose first record was refused."""
        if transaction.standing.producer_epoch < 0 and transaction.pending is None:
            self._drop(transaction)

    # --- moves --------------------------------------------------------------------------------------------------

    async def move(self, transaction: Transaction, following: Standing) -> None:
        """Write the next standing; returns when it is committed and taken over. Raises BrokerError, for partitions that
        find no room COORDINATOR_NOT_AVAILABLE, so that the client comes again.
        """
        growth = PLACE_BYTES * (len(following.partitions) - len(transaction.standing.partitions))
        if growth > max(self.room_bytes, 0):
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_ROOM)
        committed = self._write(transaction, following)
        if committed is None:
            return
        try:
            async with asyncio.timeout(self._settings.append_timeout_ms / 1000):
                await asyncio.shield(committed)
        except TimeoutError:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the record is not replicated yet") from None
        if self.is_closed:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        if (error := committed.result()) is not None:
            raise answered(error)

    def _write(self, transaction: Transaction, following: Standing) -> asyncio.Future[BrokerError | None] | None:
        """Append the next standing. Returns a future of its end, None if it is taken over. Raises BrokerError."""
        transaction.begin(following)
        self._count(transaction)
        try:
            offset = self._append([framed(transaction.transactional_id, following, self._version())])
        except BrokerError:
            transaction.give_up()
            raise
        committed = self.partition.when_committed(offset)
        if committed is None:
            self._finish(transaction)
            return None
        ended: asyncio.Future[BrokerError | None] = asyncio.get_running_loop().create_future()
        committed.add_done_callback(partial(self._committed, transaction, ended))
        return ended

    def _committed(
        self,
        transaction: Transaction,
        ended: asyncio.Future[BrokerError | None],
        committed: asyncio.Future[None],
    ) -> None:
        match committed.exception():
            case None if not self.is_closed:
                self._finish(transaction)
                ended.set_result(None)
            case None:
                ended.set_result(BrokerError(ErrorCode.NOT_COORDINATOR))
            case BrokerError() as error:
                transaction.give_up()  # the leadership is lost, and with it all that is known here
                ended.set_result(error)
            case error:
                raise error

    def _finish(self, transaction: Transaction) -> None:
        transaction.finish()
        self._count(transaction)
        if transaction.standing.state.is_prepared:
            self._prepared(self, transaction)
            self.complete_if_marked(transaction)
        elif self.completions:
            self._stop_waiting(transaction.transactional_id)

    def _append(self, records: Sequence[tuple[bytes, bytes | None]]) -> int:
        """Append records as one batch; returns the last offset. Raises BrokerError."""
        if self.is_closed:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        batch = build_batch(records, timestamp_ms=self._clock.now_ms())
        try:
            return self.partition.append(memoryview(batch), ACKS_ALL, Origin.COORDINATOR).last_offset
        except BrokerError as error:
            raise answered(error) from error

    # --- completion ---------------------------------------------------------------------------------------------

    def complete_if_marked(self, transaction: Transaction) -> None:
        """Write that the transaction is complete, if every partition has its marker."""
        standing = transaction.standing
        if self.is_closed or transaction.unmarked or not standing.state.is_prepared or transaction.pending is not None:
            return
        try:
            self._write(transaction, complete(standing, self._clock.now_ms()))
        except BrokerError as error:
            log.info("transaction.not_completed", transactional_id=transaction.transactional_id, reason=str(error))
            self.incomplete += 1
            self._timers.after(COMPLETE_AGAIN_MS, self._complete_again, transaction)

    def when_completed(self, transactional_id: str) -> asyncio.Future[None] | None:
        """Return None where the id has no decided transaction, otherwise a future that is resolved when that one is
        complete, or after a moment. Those who wait share it: they must not cancel it.
        """
        transaction = self.transactions.get(transactional_id)
        if transaction is None or self.is_closed or not transaction.standing.state.is_prepared:
            return None
        waiting = self.completions.get(transactional_id)
        if waiting is None:
            waiting = self.completions[transactional_id] = asyncio.get_running_loop().create_future()
            self._timers.after(COMPLETION_WAIT_MS, self._waited_enough, transactional_id, waiting)
        return waiting

    def _waited_enough(self, transactional_id: str, waiting: asyncio.Future[None]) -> None:
        if self.completions.get(transactional_id) is waiting:
            self._stop_waiting(transactional_id)

    def _stop_waiting(self, transactional_id: str) -> None:
        waiting = self.completions.pop(transactional_id, None)
        if waiting is not None:
            waiting.set_result(None)

    def _complete_again(self, transaction: Transaction) -> None:
        self.incomplete -= 1
        self.complete_if_marked(transaction)

    # --- expiry -------------------------------------------------------------------------------------------------

    def expire(self) -> Iterator[None]:
        """Forget ids that nobody has used for long, a slice a step."""
        dying: list[Transaction] = []
        for number, transaction in enumerate(list(self.transactions.values()), 1):
            if is_expired(transaction, self._settings.expiration_ms, self._clock.now_ms()):
                dying.append(transaction)
            if len(dying) == EXPIRED_PER_SLICE_MAX:
                self._bury(dying)
                dying = []
                yield
            elif number % LOOKED_AT_PER_SLICE_MAX == 0:
                yield
        self._bury(dying)

    def _bury(self, dying: list[Transaction]) -> None:
        now_ms = self._clock.now_ms()
        dead = [transaction for transaction in dying if is_expired(transaction, self._settings.expiration_ms, now_ms)]
        if not dead or self.is_closed:
            return
        for transaction in dead:
            transaction.begin(kill(transaction.standing))
        try:
            offset = self._append([tombstone(transaction.transactional_id) for transaction in dead])
        except BrokerError as error:
            for transaction in dead:
                transaction.give_up()
            log.info("transactions.not_expired", partition=self.partition.index, reason=str(error))
            return
        committed = self.partition.when_committed(offset)
        if committed is None:
            self._forget(dead)
        else:
            committed.add_done_callback(partial(self._buried, dead))

    def _buried(self, dead: list[Transaction], committed: asyncio.Future[None]) -> None:
        if committed.exception() is None:
            self._forget(dead)

    def _forget(self, dead: list[Transaction]) -> None:
        for transaction in dead:
            self._drop(transaction)
        log.info("transactions.expired", partition=self.partition.index, count=len(dead))

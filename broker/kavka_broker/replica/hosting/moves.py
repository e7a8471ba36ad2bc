"""Moving replicas between the log directories of this broker (KIP-113), while they are in use.

A move makes an empty log in the other directory (`orders-3.<id>-future`), copies the partition's log into it a piece at
a time, and follows what is appended meanwhile. When the copy has everything it is synced in a thread; what came during
that is copied, and in one step of the loop the copy takes the log's place. Readers and writers notice nothing but that.

A log that is cut meanwhile (its broker follows a new leader) has its copy cut at the same place. A restart goes on
where the copy ends: the copy itself is the note that the move was asked for.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.throttles import Throttle
from kavka_broker.storage.future_logs import FoundCopy, beyond_common, first_to_copy
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.log_manager import LogManager

log = get("replica")

PIECE_BYTES: Final = 1024 * 1024
#: Records that came during a sync are synced on the loop, up to this number.
SYNC_AT_ONCE_MAX: Final = 10_000
#: The longest wait before the rate is looked at again.
BREATH_S_MAX: Final = 0.5
Place = tuple[str, int]


class Move:
    """A replica on its way into another directory. `found` is a copy from an earlier start that is not opened yet."""

    def __init__(
        self, partition: Partition, directory: LogDirectory, future: Log | None, found: FoundCopy | None = None
    ) -> None:
        self.partition = partition
        self.directory = directory
        self.future = future
        self.found = found
        self.truncations = partition.log.truncations
        self.is_dropped = False

    @property
    def size_bytes(self) -> int:
        return 0 if self.future is None else self.future.size_bytes

    @property
    def lag(self) -> int:
        log, copied = self.partition.log, 0 if self.future is None else self.future.log_end_offset
        return max(0, log.log_end_offset - max(copied, log.log_start_offset))


class Moves:
    """All moves of this broker, one after the other. `moved` is called with each replica that has moved."""

    def __init__(
        self,
        logs: LogManager,
        clock: Clock,
        *,
        throttle: Throttle,
        moved: Callable[[Partition], None],
        crash: Callable[[BaseException], None],
    ) -> None:
        self._logs = logs
        self._clock = clock
        self.throttle = throttle
        self._moved = moved
        self.crash = crash
        self.pause_seconds = BREATH_S_MAX
        self._moves: dict[Place, Move] = {}
        self._task: asyncio.Task[None] | None = None

    def get(self, topic: str, index: int) -> Move | None:
        return self._moves.get((topic, index))

    # --- begin and end ------------------------------------------------------------------------------------------

    def begin(self, partition: Partition, directory: LogDirectory) -> None:
        """Move the replica to `directory`; ends a move elsewhere, and does nothing where the replica is there already.

        Raises KAFKA_STORAGE_ERROR.
        """
        present = self._moves.get((partition.topic, partition.index))
        if present is not None and present.directory is directory:
            return
        self.cancel(partition)
        if self._logs.directory_of(partition.topic, partition.index) is directory:
            return
        future = self._logs.futures.make(partition.log, directory, self._clock.now_ms())
        self._add(Move(partition, directory, future))
        log.info("move.begun", partition=str(partition), to=directory.path)

    def resume(self, hosted: Callable[[str, int], Partition | None], is_placed: Callable[[str, int], bool]) -> None:
        """Continue the moves that an earlier process left half done.

        A copy that lost its id begins again. A copy whose log is placed here but offline is left alone, for it may
        be the last copy of the records; a copy of nothing that is placed here is kept under another name.
        """
        for found in self._logs.futures.take_found():
            partition = hosted(*found.name)
            if partition is None and is_placed(*found.name):
                continue
            is_away = self._logs.directory_of(*found.name) is not found.directory
            if partition is None or not is_away or found.topic_id not in (partition.topic_id, ZERO):
                self._logs.futures.set_aside(found)
            elif found.topic_id == ZERO or found.name in self._moves:
                self._logs.drop_future(found.path)
                if found.name not in self._moves:
                    self._try_begin(partition, found.directory)
            else:
                self._add(Move(partition, found.directory, None, found))
                log.info("move.resumed", partition=str(partition), to=found.directory.path)

    def _try_begin(self, partition: Partition, directory: LogDirectory) -> None:
        try:
            self.begin(partition, directory)
        except BrokerError as error:
            log.error("move.failed", partition=str(partition), to=directory.path, reason=str(error))

    def _add(self, move: Move) -> None:
        self._moves[move.partition.topic, move.partition.index] = move
        if self._task is None:
            task = asyncio.get_running_loop().create_task(self._run(), name="moves between directories")
            self._task = watch(task, self.crash, forget=self._forget_task)

    def cancel(self, partition: Partition) -> None:
        """End the move: the replica stays, or leaves this broker. The copy of an offline replica stays for the next
        start, since it may be all that can be read of it.
        """
        move = self._moves.pop((partition.topic, partition.index), None)
        home = self._logs.directory_of(partition.topic, partition.index)
        if move is None:
            return
        if home is None or home.is_online:
            self._drop(move)
            log.info("move.cancelled", partition=str(partition), to=move.directory.path)
        elif move.future is not None:
            move.future.abandon()

    def _drop(self, move: Move) -> None:
        move.is_dropped = True
        if move.future is not None:
            move.future.abandon()
            self._logs.drop_future(move.future.directory)
        elif move.found is not None:
            self._logs.drop_future(move.found.path)

    async def stop(self) -> None:
        """Stop moving; the copies stay, and the next start continues them."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        moves, self._moves = self._moves, {}
        for move in moves.values():
            if move.future is not None:
                await asyncio.to_thread(self._close, move.future)

    def _close(self, future: Log) -> None:
        try:
            future.close()
        except BrokerError as error:
            log.error("move.not_kept", partition=str(future.name), reason=str(error))

    def _forget_task(self, _: "asyncio.Task[None]") -> None:
        self._task = None

    # --- the work -----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while self._moves:
            place, move = next(iter(self._moves.items()))
            try:
                if move.found is not None:
                    await self._open(place, move, move.found)
                await self._carry_out(place, move)
            except BrokerError as error:
                log.error("move.failed", partition=str(move.partition), to=move.directory.path, reason=str(error))
                if self._moves.get(place) is move:
                    self.cancel(move.partition)

    async def _open(self, place: Place, move: Move, found: FoundCopy) -> None:
        """Open the copy that an earlier process left."""
        config, now_ms = move.partition.log.config, self._clock.now_ms()
        future = await asyncio.to_thread(self._logs.futures.open, found, config, now_ms)
        if self._moves.get(place) is not move:
            future.abandon()
            if move.is_dropped and self._logs.disk.exists(found.path):
                self._logs.drop_future(found.path)
            return
        move.future, move.found = future, None
        move.truncations = move.partition.log.truncations
        await self._cut_to_common(place, move, future)

    async def _carry_out(self, place: Place, move: Move) -> None:
        while self._moves.get(place) is move:
            assert move.future is not None
            self._check_directory(move)
            if move.partition.log.truncations != move.truncations:
                move.truncations = move.partition.log.truncations
                await self._cut_to_common(place, move, move.future)
                continue
            if is_to_begin(move.future, move.partition.log):
                await self._begin_copy(move, move.future)
                continue
            copied, is_behind = self._copy(move, move.future), move.lag > 0
            if copied:
                await self._breathe(copied)
            if is_behind:
                continue
            synced_to = move.future.log_end_offset
            await asyncio.to_thread(self._secure, move.future)
            if self._moves.get(place) is move and move.partition.log.truncations == move.truncations:
                self._check_directory(move)
                if is_to_begin(move.future, move.partition.log):
                    continue
                self._copy(move, move.future)
                if not move.lag and move.future.log_end_offset - synced_to < SYNC_AT_ONCE_MAX:
                    self._finish(place, move, move.future)

    async def _cut_to_common(self, place: Place, move: Move, future: Log) -> None:
        """Cut off the records of the copy that its log does not have."""
        while self._moves.get(place) is move:
            before = (future.epochs.latest, future.log_end_offset)
            offset = beyond_common(future, move.partition.log)
            if offset is None:
                return
            future.truncation.plan_cut(offset)
            await self._cut_as_planned(future)
            is_shorter = future.is_closed or (future.epochs.latest, future.log_end_offset) < before
            assert is_shorter, f"{future.directory} goes back at every round"

    async def _begin_copy(self, move: Move, future: Log) -> None:
        """Begin an empty copy, or one that ends in front of its log's start, at the log's start."""
        await asyncio.to_thread(future.durability.secure)
        first = first_to_copy(move.partition.log)
        if future.log_end_offset < first and not future.is_closed:
            future.truncation.plan_start(first)
            await self._cut_as_planned(future)

    async def _cut_as_planned(self, future: Log) -> None:
        """Cut as a follower's log is cut (`following.truncation`): threads do what waits for the disk."""
        await asyncio.to_thread(future.durability.sync_records)
        if future.durability.may_be_cut and not future.is_closed:
            future.truncation.carry_out()
            await asyncio.to_thread(future.durability.sync_records)

    def _secure(self, future: Log) -> None:
        """Sync the copy before it takes the place of its log. Blocks."""
        future.flush()
        self._logs.forget_former({future.name})

    def _check_directory(self, move: Move) -> None:
        if not move.directory.is_online:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{move.directory.path} is offline")

    def _copy(self, move: Move, future: Log) -> int:
        source = move.partition.log
        # The log is read as a reader does, so that a batch changed by the disk is reported too.
        offset = max(future.log_end_offset, source.log_start_offset)
        chunk = move.partition.read(offset, PIECE_BYTES, source.log_end_offset, at_least_one=True)
        for part in chunk.parts:
            future.append_as_follower(part, self._clock.now_ms())
        future.producers.transactions.replicated(future.log_end_offset)  # no reader asks for the copy's stable offset
        return chunk.size_bytes

    async def _breathe(self, size_bytes: int) -> None:
        """Wait while the rate is too high, in short steps, as the limit may be altered. A limit of 0 is a pause."""
        self.throttle.record(size_bytes)
        await asyncio.sleep(0)
        while True:
            if not self.throttle.is_exceeded and not self.throttle.allows_nothing:
                return
            await asyncio.sleep(self.pause_seconds)

    def _finish(self, place: Place, move: Move, future: Log) -> None:
        partition = move.partition
        future.config = partition.log.config
        future.advance_start(partition.log.log_start_offset)
        partition.log = self._logs.replace(future, move.directory, self._clock.now_ms())
        del self._moves[place]
        partition.synced()  # the copy is synced; the former log is neither synced nor cut any more
        log.info("move.done", partition=str(partition), to=move.directory.path)
        self._moved(partition)


def is_to_begin(future: Log, current: Log) -> bool:
    """Whether the id of a copy's topic is not synced yet, or its log begins behind its end."""
    return not future.durability.is_secured or (
        future.log_end_offset < current.log_start_offset and future.log_end_offset < first_to_copy(current)
    )
